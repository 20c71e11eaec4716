"""What can be learned from a log that another policy wrote, and how much its rounds count.

Actions were drawn from probabilities p (n, K). Nothing is learned about an action that had no chance, so a round counts
only if each of its actions was likelier than once in n rounds.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch.nn import functional

from tacit.errors import InvalidInputError, LogWarning
from tacit.interactions import Interactions
from tacit.inverse.base import FEWEST, ROUNDING, worth

# Actions that contradict their probabilities come by chance in one honest log of so many.
LEVEL = 1e-9
CHUNK = 8_192  # rounds at a time
LIMITS = 200  # how many limits on the weights are compared
WORTHWHILE = 0.1  # by how much a limit has to lower the expected error
ADVICE = (
    "Let the policy that writes the log draw some actions at random, in every context (say, uniformly in one round of "
    "ten), and log the probabilities of all of them"
)


def learnable(log: Interactions) -> Interactions:
    """The rounds that count; refuses a log that leaves too little to chance, or whose actions contradict it."""
    n, K = log.probabilities.shape
    if n < 2 * K:
        raise InvalidInputError("log", f"{n} rounds are too few for {K} actions; thousands are usual")
    refuse_contradiction(log)
    counts = log.probabilities.amin(1) * n >= 1
    used = log if bool(counts.all()) else log[counts]
    if worth(used.probabilities) < 2 * K:
        raise InvalidInputError("probabilities", f"{_what_is_missing(log, used)}. {ADVICE}")
    if len(used) < n:
        _refuse_closed_contexts(log, counts)
        warnings.warn(
            f"{n - len(used)} of {n} rounds are left out: in them, some action had less than one chance in {n}",
            LogWarning, stacklevel=3,
        )  # fmt: skip
    return used


def weights(rounds: Interactions) -> Tensor:
    """1/(K p) (n,) of the actions taken: with them, decoded rewards add up as if actions had been uniform.

    Limited where that lowers the expected error, and then with a warning that states the bias.
    """
    K = rounds.action_count
    taken = rounds.probabilities.gather(1, rounds.actions[:, None])[:, 0]
    found = (1 / K) / taken
    limit, bias = best_limit(rounds.probabilities)
    if math.isinf(limit):
        return found
    warnings.warn(
        f"weights 1/p are limited to {limit:.4g}: some actions of the log are so unlikely that single rounds would "
        f"decide. The value of a policy is understated by up to {bias:.2g} for it. {ADVICE}",
        LogWarning, stacklevel=4,
    )  # fmt: skip
    return found.clamp(max=limit / K)


def best_limit(probabilities: Tensor) -> tuple[float, float]:
    """A limit C on 1/p, infinite for none, and the bias it brings to the estimated value of a policy.

    It is the largest whose error, the root of bias^2 + variance, is within WORTHWHILE of the least. For rewards within
    0..1 and any policy, the mean of r min(1/p, C) falls short by at most the mean of (1 - C q)+, where q is the least
    probability of a round, and its variance is at most the mean of min(1/q, C), over n.
    """
    least = probabilities.amin(1).double()
    limits = (1 / least).unique()
    if len(limits) > LIMITS:
        limits = limits[torch.linspace(0, len(limits) - 1, LIMITS).round().long().to(limits.device)]
    bias = torch.stack([(1 - C * least).clamp(min=0).mean() for C in limits])
    variance = torch.stack([(1 / least).clamp(max=C).mean() for C in limits]) / len(least)
    error = (bias.square() + variance).sqrt()
    best = int((error <= (1 + WORTHWHILE) * error.min()).nonzero()[-1])
    return (math.inf, 0.0) if best == len(limits) - 1 else (float(limits[best]), float(bias[best]))


def refuse_contradiction(log: Interactions) -> None:
    """Refuse a log whose actions cannot have been drawn from its probabilities, whatever the context.

    For features z of the context within 0..1, sum z (e_a - p) has mean 0 and variance sum z^2 p (1 - p), and
    Bernstein's inequality bounds how likely each excess over that is. The features are a constant and each category,
    or each column of numbers.
    """
    called, (taken, expected, variance) = _tallies(log)
    excess = ((taken - expected).abs() - ROUNDING * expected).clamp(min=0)
    unlikely = excess.square() / (2 * (variance + excess / 3))
    bound = math.log(2 * excess.numel() / LEVEL)
    # An expectation of nothing at all that was missed by nothing divides nothing by nothing.
    feature, action = divmod(int(unlikely.nan_to_num(nan=0.0).argmax()), log.action_count)
    if unlikely[feature, action] > bound:
        raise InvalidInputError(
            "probabilities", f"the actions contradict them: {called[feature]} action {action} was taken "
            f"{float(taken[feature, action]):,.0f} times, where the probabilities sum to "
            f"{float(expected[feature, action]):,.0f}. Chance does that to fewer than one log in {1 / LEVEL:,.0f}. "
            "Log the probabilities that the actions were drawn from, in the order of the actions, and leave no round "
            "out because of what came back"
        )


def _tallies(log: Interactions) -> tuple[list[str], list[Tensor]]:
    """Sums over rounds of z e_a, z p and z^2 p (1 - p) (features, K), and what each feature is called."""
    p = log.probabilities.double()
    columns = functional.one_hot(log.actions, log.action_count).double(), p, p * (1 - p)
    everywhere = [column.sum(0, keepdim=True) for column in columns]
    if log.contexts.ndim == 1 and not log.contexts.is_floating_point():
        groups, number = log.contexts.unique(return_inverse=True)
        sums = [column.new_zeros(len(groups), column.shape[1]).index_add(0, number, column) for column in columns]
        names = [f"in context {group}" for group in groups.tolist()]
    else:
        sums = _column_sums(log.contexts.reshape(len(log), -1), columns)
        names = [
            f"weighted by column {number} of the context (0 at its lowest, 1 at its highest),"
            for number in range(len(sums[0]))
        ]
    names.insert(0, "in all")
    return names, [torch.cat(both) for both in zip(everywhere, sums, strict=True)]


def _column_sums(rows: Tensor, columns: tuple[Tensor, ...]) -> list[Tensor]:
    parts = [slice(start, start + CHUNK) for start in range(0, len(rows), CHUNK)]
    low = torch.stack([rows[part].double().amin(0) for part in parts]).amin(0)
    span = torch.stack([rows[part].double().amax(0) for part in parts]).amax(0) - low
    sums = [column.new_zeros(rows.shape[1], column.shape[1]) for column in columns]
    for part in parts:
        z = (rows[part].double() - low) / torch.where(span > 0, span, 1.0)
        for total, weight, column in zip(sums, (z, z, z.square()), columns, strict=True):
            total += weight.T @ column[part]
    return sums


def _what_is_missing(log: Interactions, used: Interactions) -> str:
    n, K = log.probabilities.shape
    left = worth(log.probabilities)
    if left < 2 * K:
        mean = float(log.probabilities.amax(1).double().mean())
        return (
            f"the log leaves nothing to chance: the likeliest action had probability {mean:.6g} on average, so that "
            f"its {n} rounds are worth {left:.1f} uniform ones. What people think of other actions is not in it"
        )
    never = (log.probabilities.amax(0) * n < 1).nonzero()[:, 0].tolist()
    if never:
        return f"no round gave action {', '.join(map(str, never))} a chance: leave it out of the actions, or try it"
    return f"in all but {len(used)} of {n} rounds some action had no chance, less than one in {n}"


def _refuse_closed_contexts(log: Interactions, counts: Tensor) -> None:
    """Refuse contexts that came often, and never in a round that counts."""
    n = len(log)
    groups, number, sizes = log.contexts.reshape(n, -1).unique(dim=0, return_inverse=True, return_counts=True)
    closed = (sizes >= FEWEST) & (number[counts].bincount(minlength=len(groups)) == 0)
    if not bool(closed.any()):
        return
    rows = closed[number]
    first = int(rows.int().argmax())
    chance = log.probabilities[number == number[first]].amax(0) * n >= 1
    having = ", ".join(map(str, chance.nonzero()[:, 0].tolist()))
    raise InvalidInputError(
        "probabilities", f"in {int(closed.sum())} of {len(groups)} contexts ({int(rows.sum())} of {n} rounds) no round "
        f"gave every action a chance; in that of row {first}, only action {having} ever had one. Nothing can be "
        f"learned about the others there: leave the rounds of these contexts out to learn about the rest. {ADVICE}"
    )
