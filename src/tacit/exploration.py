"""How actions are drawn: uniformly, or by inverse-gap weighting; always with the probability of every action.

| here             | paper                              | meaning                                        |
|------------------|------------------------------------|------------------------------------------------|
| inverse_gap      | Eq. (7)                            | 1/(K + gamma * gap), the greedy action the rest |
| Constant         | Theorem 2                          | the gamma that the theory asks for             |
| SquareRoot       | Appendix, gamma_t = sqrt(K t)      | grows with the round, times a scale g          |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from tacit.errors import InvalidInputError
from tacit.interactions import check_real


def uniform(n: int, K: int, device: torch.device | str = "cpu") -> Tensor:
    """The same probability (n, K) for every action."""
    return torch.full((n, K), 1 / K, device=device)


def inverse_gap(values: Tensor, gamma: Tensor | float) -> Tensor:
    """Probabilities (..., K) from values (..., K): an action's falls with its gap to the best.

    gamma is one number or one per round (..., 1). Ties go to the lowest action, as in argmax.
    """
    best, greedy = values.max(-1, keepdim=True)
    others = 1 / (values.shape[-1] + gamma * (best - values))
    others = others.scatter(-1, greedy, 0.0)
    return others.scatter(-1, greedy, 1 - others.sum(-1, keepdim=True))


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Actions (...) from probabilities (..., K) and uniform numbers in [0, 1) (...), by inverting the sum.

    The numbers are passed in, so that a draw can be repeated, and so that it can run inside a CUDA graph.
    """
    reached = probabilities.cumsum(-1) > uniforms[..., None]
    # Rounding can leave the total just under the number drawn; the last action that can be drawn then takes it.
    last = (probabilities > 0).to(torch.int8).cumsum(-1).argmax(-1)
    return torch.where(reached.any(-1), reached.to(torch.int8).argmax(-1), last)


class Schedule(ABC):
    """How strongly inverse-gap weighting prefers the best action at round t."""

    @abstractmethod
    def gamma(self, t: Tensor, K: int) -> Tensor:
        """gamma for the rounds numbered t (n,), counted from 1."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The same gamma in every round; the theory's choice depends on T and is `algorithms.theory.on_policy_gamma`."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _positive("gamma", self.value))

    def gamma(self, t: Tensor, K: int) -> Tensor:
        return torch.full_like(t, self.value, dtype=torch.get_default_dtype())


@dataclass(frozen=True)
class SquareRoot(Schedule):
    """gamma_t = scale * sqrt(K t); scale 1 is the paper's choice in its experiments."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive("scale", self.scale))

    def gamma(self, t: Tensor, K: int) -> Tensor:
        return self.scale * (K * t.to(torch.get_default_dtype())).sqrt()


def _positive(name: str, value: object) -> float:
    number = check_real(value, name)
    if not (math.isfinite(number) and number > 0):
        raise InvalidInputError(name, f"must be a positive number, got {value}")
    return number
