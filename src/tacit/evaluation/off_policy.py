"""What a policy would have earned, in decoded reward, on a log that other policies wrote.

A round counts with its weight, w = policy(a|x) / probability of a in the log, and a prediction q(x, a) of the decoded
reward g, made without that round, takes out what is known already:

    Z = w (g - q(x, a)) + sum over all actions a' of policy(a'|x) q(x, a')          E[Z | past] = the policy's value

whatever q is. No prediction (q = 0) gives IPS, a regression model the doubly robust estimate, and the mean so far is
self-normalisation. The log may be collected by a policy that changes with all that it has seen.

For the lower end of the interval, q is cut so that w q <= floor for all actions, where floor is the largest w q of the
rounds before, though at most sqrt(n): then Z >= -floor. That changes q, not the mean. The upper end is found the same
way, from the loss 1 - g. So no weight has to be bounded in advance. Where an action has probability zero in the log,
nothing is known of its reward: its part of the value lies between 0 and all. The interval says so by itself, as the cut
predictions are 0 there, of the reward for the lower end and of the loss for the upper.
(Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, "Anytime-valid off-policy inference for contextual bandits".)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tacit.errors import InvalidInputError
from tacit.evaluation.intervals import before, lower_bound
from tacit.interactions import (
    PROBABILITY_TOLERANCE,
    Interactions,
    as_tensor,
    check_actions,
    check_count,
    check_finite,
    check_interactions,
    check_positive_count,
)  # fmt: skip

FEW_ROUNDS = 100
LARGE_SHARE = 0.05
STRANGE_WEIGHTS = 5.0  # standard errors


@dataclass(frozen=True)
class Estimate:
    """A policy's value in decoded reward, per round, and an interval that contains it with the stated confidence.

    `value` is the estimator's own: that of IPS can leave 0..1. effective_rounds is (sum of weights)^2 / sum of squared
    weights: what the log is worth for this policy. `note` says in words what stands against the numbers, or nothing.
    """

    value: float
    lower: float
    upper: float
    confidence: float
    rounds: int
    effective_rounds: float
    largest_weight: float
    note: str

    def __str__(self) -> str:
        interval = f"{self.value:.4f}, {100 * self.confidence:g} % between {self.lower:.4f} and {self.upper:.4f}"
        return f"{interval}; {self.rounds} rounds, worth {self.effective_rounds:.0f}{'; ' * bool(self.note)}{self.note}"


@dataclass(frozen=True, eq=False)
class Weighted:
    """Checked rounds beside a policy, float64: probabilities and policy (n, K), actions (n,); `planned` rounds."""

    probabilities: Tensor
    actions: Tensor
    policy: Tensor
    planned: int

    @classmethod
    def of(cls, rounds: Interactions, policy: object, planned: int | None) -> Weighted:
        check_interactions(rounds)
        wanted = _policy_table(policy, rounds).to(rounds.probabilities.device)
        planned = len(rounds) if planned is None else check_positive_count(planned, "planned")
        return cls(rounds.probabilities.double(), rounds.actions.long(), wanted, planned)

    @property
    def weights(self) -> Tensor:
        """(n, K) of every action: infinite for what the policy does and the log never could."""
        return torch.where(self.policy > 0, self.policy / self.probabilities, 0.0)

    def taken(self, values: Tensor) -> Tensor:
        """What of (n, K) belongs to the action that was taken (n,)."""
        return values.gather(1, self.actions[:, None])[:, 0]

    def corrected(self, rewards: Tensor, predictions: Tensor) -> Tensor:
        """Z (n,) for rewards (n,) and predictions (n, K)."""
        surprise = self.taken(self.weights) * (rewards - self.taken(predictions))
        return surprise + (self.policy * predictions).sum(1)

    def at_least(self, rewards: Tensor, predictions: Tensor, risk: float) -> float:
        """What the policy's mean reward is below with probability at most `risk`."""
        weights = self.weights
        weighted = torch.where(predictions > 0, weights * predictions, 0.0)
        largest = torch.where(weighted.isfinite(), weighted, 0.0).amax(1)
        # Bets shrink as the floor grows; up to sqrt(n) they stay large enough for what chance does in n rounds.
        floor = before(largest.cummax(0).values).clamp(max=math.sqrt(self.planned))
        cut = torch.where(weighted <= floor[:, None], predictions, floor[:, None] / weights)
        return float(lower_bound(self.corrected(rewards, cut), floor, risk, self.planned))

    def at_most(self, rewards: Tensor, predictions: Tensor, risk: float) -> float:
        """What it is above with probability at most `risk`."""
        return 1 - self.at_least(1 - rewards, 1 - predictions, risk)


def ips(
    rounds: Interactions, decoded: object, policy: object, *, confidence: float = 0.95, planned: int | None = None
) -> Estimate:
    """Inverse probability weighting: the mean of w g. Unbiased, and wide where weights are large.

    rounds in the order of the log, decoded rewards (n,) in [0, 1]; policy (n, K) probabilities on the same contexts,
    or (n,) actions of one that does not draw. Neither policy nor decoder may have learned from these very rounds.
    `planned` is needed only if what the log showed decided when it ended: the number of rounds it was meant to have.

    >>> rounds = Interactions.of(contexts=[[0.0]] * 4, actions=[0, 1, 0, 1], probabilities=[[0.5, 0.5]] * 4,
    ...                          feedback=[[0.0]] * 4)
    >>> ips(rounds, [1.0, 0.0, 0.5, 0.0], policy=[0, 0, 0, 0]).value
    0.75
    """
    log, rewards = Weighted.of(rounds, policy, planned), check_rewards(decoded, rounds, "decoded")
    predictions = torch.zeros_like(log.policy)
    return _estimate(log, rewards, predictions, float(log.corrected(rewards, predictions).mean()), confidence)


def self_normalised(
    rounds: Interactions, decoded: object, policy: object, *, confidence: float = 0.95, planned: int | None = None
) -> Estimate:
    """Sum of w g over sum of w: slightly biased, seldom worse than IPS and never outside 0..1. Arguments as for `ips`.

    NaN if the log never does what the policy does.
    """
    log, rewards = Weighted.of(rounds, policy, planned), check_rewards(decoded, rounds, "decoded")
    weights = log.taken(log.weights)
    value = float((weights * rewards).sum() / weights.sum())
    return _estimate(log, rewards, running_mean(log, rewards), value, confidence)


def doubly_robust(
    rounds: Interactions, decoded: object, policy: object, predictions: object,
    *, confidence: float = 0.95, planned: int | None = None,
) -> Estimate:  # fmt: skip
    """The mean of Z for predictions (n, K) in [0, 1] of the decoded reward: the better they are, the narrower.

    Row t of them may come from other rounds and from the rounds before t, not from t or later. Otherwise as `ips`.
    """
    log, rewards = Weighted.of(rounds, policy, planned), check_rewards(decoded, rounds, "decoded")
    predicted = check_rewards(predictions, rounds, "predictions", log.policy.shape)
    return _estimate(log, rewards, predicted, float(log.corrected(rewards, predicted).mean()), confidence)


def running_mean(log: Weighted, rewards: Tensor) -> Tensor:
    """The self-normalised mean of the rounds before each, the same for all actions (n, K); 1/2 before the first."""
    weights = log.taken(log.weights)
    means = (0.5 + before((weights * rewards).cumsum(0))) / (1 + before(weights.cumsum(0)))
    return means[:, None].expand_as(log.policy)


def check_rewards(values: object, rounds: Interactions, name: str, shape: tuple[int, ...] | None = None) -> Tensor:
    """Rewards in [0, 1] of the shape asked for, (n,) if none is, as float64 beside the rounds."""
    rewards = as_tensor(values, name).to(rounds.probabilities.device)
    expected = (len(rounds),) if shape is None else tuple(shape)
    if tuple(rewards.shape) != expected:
        raise InvalidInputError(name, f"expected shape {expected} for {len(rounds)} rounds, got {tuple(rewards.shape)}")
    check_finite(rewards, name)
    _refuse(((rewards < 0) | (rewards > 1)).view(len(rounds), -1).any(1), name, "outside 0..1")
    return rewards.double()


def check_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InvalidInputError("confidence", f"expected a number between 0 and 1, such as 0.95, got {confidence}")
    return confidence


def notes(log: Weighted) -> str:
    """What stands against an estimate, in words; nothing if nothing does."""
    weights = log.taken(log.weights)
    total = float(weights.sum())
    impossible = float(torch.where(log.probabilities > 0, 0.0, log.policy).sum(1).mean())
    found = []
    if impossible > 0:
        found.append(f"{impossible:.1%} of what the policy does was impossible in the log, worth anything from 0 to 1")
    if total == 0:
        return "; ".join([*found, "the log never does what the policy does, and says nothing of it"])
    if (worth := effective_rounds(weights)) < FEW_ROUNDS:
        found.append(f"few effective rounds: for this policy the log is worth {worth:.0f} rounds")
    if (share := float(weights.max()) / total) > LARGE_SHARE:
        found.append(f"weights too large: one round carries {share:.0%} of all weight")
    mean, error = float(weights.mean()), float(weights.std(correction=0)) / math.sqrt(len(weights))
    if worth >= FEW_ROUNDS and abs(mean - (1 - impossible)) > STRANGE_WEIGHTS * error + PROBABILITY_TOLERANCE:
        found.append(
            f"weights average {mean:.3g} and not {1 - impossible:.3g}: either the logged probabilities are not those "
            "that actions were drawn from, or weights far larger than any in the log are possible"
        )
    return "; ".join(found)


def effective_rounds(weights: Tensor) -> float:
    squares = float(weights.square().sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def _estimate(log: Weighted, rewards: Tensor, predictions: Tensor, value: float, confidence: float) -> Estimate:
    risk = (1 - check_confidence(confidence)) / 2
    lower, upper = log.at_least(rewards, predictions, risk), log.at_most(rewards, predictions, risk)
    if not math.isnan(value):
        # Its two ends lean on the log's order, the value does not; a wider interval is no less valid.
        inside = min(max(value, 0.0), 1.0)
        lower, upper = min(lower, inside), max(upper, inside)
    weights = log.taken(log.weights)
    return Estimate(
        value, lower, upper, confidence, len(weights), effective_rounds(weights), float(weights.max()), notes(log)
    )


def _policy_table(policy: object, rounds: Interactions) -> Tensor:
    """Probabilities (n, K), float64, of a policy given as such or as actions (n,)."""
    K, wanted = rounds.action_count, as_tensor(policy, "policy")
    if wanted.ndim == 1:
        check_count(wanted, len(rounds), "policy")
        check_actions(wanted, K)
        return functional.one_hot(wanted.long(), K).double()
    if tuple(wanted.shape) != (len(rounds), K):
        raise InvalidInputError(
            "policy", f"expected the probabilities of {K} actions in each of {len(rounds)} rounds, or one action for "
            f"each, got shape {tuple(wanted.shape)}"
        )
    check_finite(wanted, "policy")
    _refuse((wanted < 0).any(1), "policy", "a probability is negative")
    totals = wanted.double().sum(1, keepdim=True)
    _refuse((totals[:, 0] - 1).abs() > PROBABILITY_TOLERANCE, "policy", "probabilities do not sum to 1")
    return wanted.double() / totals


def _refuse(wrong: Tensor, name: str, problem: str) -> None:
    if bool(wrong.any()):
        row, share = int(wrong.int().argmax()), f"{int(wrong.sum())} of {len(wrong)} rows are wrong"
        raise InvalidInputError(name, f"{problem} in row {row}; {share}")
