"""Means with intervals, at a level that is shared by all checks of a report."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

LEVEL = 0.01  # how often a report may raise an alarm though all is well
CHECKS = 9  # that raise an alarm by a test, and share the level equally


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error, or a sum of such."""

    value: float
    error: float

    @classmethod
    def mean(cls, values: Tensor, spread: float | None = None) -> Estimate:
        """Of values (n,); `spread` is their standard deviation, if it is known better than from so few."""
        deviation = float(values.std()) if spread is None else spread
        return cls(float(values.mean()), deviation / len(values) ** 0.5)

    @classmethod
    def weighted(cls, values: Tensor, weights: Tensor, spread: float) -> Estimate:
        """The mean of values (n,) by weights (n,), their standard deviation known."""
        total = float(weights.sum())
        return cls(float(values @ weights) / total, spread * float(weights.square().sum()) ** 0.5 / total)

    @classmethod
    def ratio(cls, above: Tensor, below: Tensor) -> Estimate:
        """Sum of `above` (n,) over sum of `below` (n,)."""
        total = float(below.sum())
        if total <= 0:
            return cls(0.0, float("inf"))
        value = float(above.sum()) / total
        return cls(value, float((above - value * below).square().sum().sqrt()) / total)

    def scaled(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, self.error * abs(factor))

    def minus(self, other: Estimate) -> Estimate:
        """The difference to an independent estimate."""
        return Estimate(self.value - other.value, (self.error**2 + other.error**2) ** 0.5)

    def low(self, z: float) -> float:
        return self.value - z * self.error

    def high(self, z: float) -> float:
        return self.value + z * self.error

    def percent(self, z: float) -> str:
        return f"{100 * self.value:.0f} % ({100 * self.low(z):.0f} to {100 * self.high(z):.0f} %)"


def critical(tests: int = 1) -> float:
    """How many standard errors one of `tests` one-sided tests of a check has to exceed."""
    return NormalDist().inv_cdf(1 - LEVEL / CHECKS / max(tests, 1))


def information(h: Tensor, actions: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """By round, how far the posterior moved towards the action taken, and how far it moved: (n,) and (n,).

    h (n, K) is the posterior under uniform draws, p (n, K) the probabilities of the draw. If the posterior under p is
    right, both have the same mean; if feedback has nothing to do with the action, the first has mean 0.
    """
    moved = posterior_under(h, p) - p
    towards = moved.gather(1, actions[:, None])[:, 0] - (p * moved).sum(1)
    return towards, moved.square().sum(1)


def posterior_under(h: Tensor, p: Tensor) -> Tensor:
    """p_a h_a / sum over b of p_b h_b: (n, K)."""
    joint = p * h
    return joint / joint.sum(1, keepdim=True).clamp(min=torch.finfo(h.dtype).tiny)
