"""A lower bound for a mean, from rounds that may depend on the rounds before them.

Rounds Z_1, Z_2, ... with Z_t >= -floor_t, where floor_t is known before round t, and E[Z_t | past] <= mu for some mu in
[0, 1]. For bets b_t, known before round t too, with 0 <= b_t (floor_t + 1) < 1, what a gambler owns who thinks that the
mean exceeds m,

    capital_t(m) = product over s <= t of (1 + b_s (Z_s - m)),

is positive for all m in [0, 1], and capital_t(mu) is not expected to grow: it is a supermartingale from 1. So the
chance that it ever reaches 1/risk is at most risk (Ville's inequality), whatever chose the actions, and whenever one
looks. As the capital falls with m, the m at which it reached 1/risk are those below one number, which is the bound. Z
has no upper limit: a large weight makes the bound loose, never wrong.

Bets close to sqrt(2 log(1/risk) / (n variance)) are the best for n rounds; the variance is estimated from the past.
(Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024, sections 3 and 4.)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LARGEST_BET = 0.75  # as a share of what would lose everything in the worst case
HALVINGS = 40  # 2^-40 is finer than any log can tell


def lower_bound(rounds: Tensor, floor: Tensor, risk: float, planned: int) -> Tensor:
    """A number (...) in [0, 1] that exceeds the mean of rounds (..., n) with probability at most `risk`.

    floor (..., n) as above; `planned`, the number of rounds that the bets are meant for, must not depend on the rounds.
    """
    bets = (2 * math.log(1 / risk) / (planned * _variances_before(rounds))).sqrt()
    bets = torch.minimum(bets, LARGEST_BET / (floor + 1))
    low, high = rounds.new_zeros(rounds.shape[:-1]), rounds.new_ones(rounds.shape[:-1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        capital = (bets * (rounds - middle[..., None])).log1p().sum(-1)
        refused = capital >= math.log(1 / risk)
        low, high = torch.where(refused, middle, low), torch.where(refused, high, middle)
    return low


def before(totals: Tensor) -> Tensor:
    """What stood there one round earlier (..., n), 0 before the first."""
    return torch.nn.functional.pad(totals[..., :-1], (1, 0))


def _variances_before(rounds: Tensor) -> Tensor:
    """The variance (..., n) of the rounds before each, as if there had been one with mean 1/2 and variance 1/4."""
    seen = torch.arange(1, rounds.shape[-1] + 1, dtype=rounds.dtype, device=rounds.device)
    means = (0.5 + rounds.cumsum(-1)) / (seen + 1)
    # Each round is compared with the mean up to itself, which keeps the sum a running one.
    squares = before((rounds - means).square().cumsum(-1))
    return (0.25 + squares) / seen
