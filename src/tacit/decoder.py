"""The mathematics of the reward decoder, in the paper's notation.

| here               | paper                         | meaning                                             |
|--------------------|-------------------------------|-----------------------------------------------------|
| posterior          | Lemma 1, Eq. (1)              | Pr[a | x, y] when a was drawn with probabilities p  |
| G(v, beta, sigma)  | Lemma 4, Eq. (6)              | the ramp from 0 at beta to 1 at beta + sigma        |
| sigma_of           | Lemma 4                       | (theta/alpha - 1/(K - alpha)) / 2                   |
| Decoder            | Algorithm 1 line 4, Alg. 2    | r(x, y, a) = G(h_a(x, y), theta/alpha - sigma, sigma) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from tacit.errors import IdentifiabilityError, InvalidInputError
from tacit.interactions import check_action_count, check_real


def G(v: Tensor, beta: float, sigma: float) -> Tensor:
    """0 below beta, 1 from beta + sigma on, a ramp of slope 1/sigma between; sigma = 0 is the step at beta."""
    if sigma == 0:
        return (v >= beta).to(v.dtype)
    return ((v - beta) / sigma).clamp(0, 1)


def posterior(f: Tensor, phi: Tensor, p: Tensor | None = None) -> Tensor:
    """Pr[a | x, y] (..., K) from f(x, .) (..., K), phi(x, y) (...) and, unless uniform, p(. | x) (..., K).

    With p uniform this is Eq. (1) of the paper; the general form is the last line of its proof.
    """
    phi = phi[..., None]
    # As phi is 0 or 1, one of the two terms is zero before anything is divided.
    joint = phi * f + (1 - phi) * (1 - f)
    if p is not None:
        joint = p * joint
    return joint / joint.sum(-1, keepdim=True)


def sigma_of(alpha: float, theta: float, K: int) -> float:
    """The widest ramp that Lemma 4 allows; refuses values for which reward 1 and 0 cannot be told apart."""
    check_action_count(K)
    for name, value in (("alpha", alpha), ("theta", theta)):
        if not math.isfinite(check_real(value, name)) or value <= 0:
            raise IdentifiabilityError(name, f"must be a positive number, got {value}")
    if theta > min(1.0, alpha):
        raise IdentifiabilityError(
            "theta", f"is one action's expected reward: it cannot exceed 1, nor alpha = {alpha:g}, the sum over all "
            f"actions, got {theta:g}"
        )
    if alpha >= K / 2:
        raise IdentifiabilityError(
            "alpha", f"the rewards of all {K} actions must sum to less than K/2 = {K / 2:g}, got {alpha:g}: "
            "reward 1 must be the rarer event, or it cannot be told from reward 0"
        )
    sigma = (theta / alpha - 1 / (K - alpha)) / 2
    # Apart by less than rounding, the two sides of the assumption can leave no ramp.
    if theta <= alpha / (K - alpha) or sigma <= 0:
        raise IdentifiabilityError(
            "theta", f"the best action's expected reward must exceed alpha/(K - alpha) = {alpha / (K - alpha):.4g}, "
            f"got {theta:.4g}"
        )
    return sigma


@dataclass(frozen=True)
class Decoder:
    """r(x, y, a) = G(h_a(x, y), theta_over_alpha - sigma, sigma); sigma = 0 is the step decoder of prior work.

    >>> Decoder.from_assumption(alpha=1, theta=1, K=10).sigma
    0.4444444444444444
    """

    theta_over_alpha: float
    sigma: float

    def __post_init__(self) -> None:
        for name in ("theta_over_alpha", "sigma"):
            object.__setattr__(self, name, check_real(getattr(self, name), name))
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise InvalidInputError("sigma", f"the width of the ramp must be a number >= 0, got {self.sigma}")
        if not self.sigma < self.theta_over_alpha <= 1:
            raise InvalidInputError(
                "theta_over_alpha", f"must exceed sigma = {self.sigma:g}, so that the ramp starts above 0, and be at "
                f"most 1, as no posterior is larger, got {self.theta_over_alpha}"
            )

    @classmethod
    def from_assumption(cls, alpha: float, theta: float, K: int) -> Decoder:
        """The decoder of Lemma 4 for known alpha and theta."""
        sigma = sigma_of(alpha, theta, K)  # first, because it refuses what cannot be divided
        return cls(theta / alpha, sigma)

    @classmethod
    def widest(cls, alpha: float, theta: float, K: int) -> Decoder:
        """The ramp over all that lies between the posteriors of reward 0 and 1: twice as wide as that of Lemma 4.

        With reward 0 no posterior exceeds 1/(K - alpha), so that a ramp from there on does not overstate either, and
        every bound of the paper, which falls with sigma, falls further. It makes the most of learned posteriors, which
        seldom reach theta/alpha. docs/decisions/0004-widest-ramp.md has the reasoning.
        """
        sigma = sigma_of(alpha, theta, K)  # first, because it refuses what cannot be divided
        return cls(theta / alpha, 2 * sigma)

    @property
    def beta(self) -> float:
        return self.theta_over_alpha - self.sigma

    def step(self) -> Decoder:
        """The binary estimator with the same theta/alpha, which the paper compares against."""
        return Decoder(self.theta_over_alpha, 0.0)

    def decode(self, h: Tensor, actions: Tensor) -> Tensor:
        """Decoded rewards (n,) of the actions taken (n,), from posteriors h (n, K)."""
        return G(h.gather(1, actions[:, None])[:, 0], self.beta, self.sigma)
