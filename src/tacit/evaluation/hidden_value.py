"""From decoded to hidden value: what the decoder may have added or missed, stated apart from chance.

Let h be the posterior if actions are uniform, and G the decoder's ramp. If the paper's assumptions hold, the ramp is
theirs and h is right, then feedback that reward 0 made is too flat for G, and the best action explains feedback that
reward 1 made well enough for a full G. So, in every round,

    G(h_a) for the action taken  <=  hidden reward  =  G(max over a of h_a), the ceiling.

The lower end of the mean decoded reward and the upper end of the mean ceiling then hold the hidden value between them.
How far a learned h is off can be seen in part, on uniform rounds that it has not learned from: among the rounds of one
group, each action should have been taken as often as h says. What cancels within a group is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tacit.decoder import Decoder, G
from tacit.errors import InvalidInputError
from tacit.evaluation.off_policy import Weighted, check_confidence, check_rewards, notes, running_mean
from tacit.interactions import Interactions, as_tensor, check_count
from tacit.inverse.base import is_uniform

LEVELS = 10
TRUSTED = "if the paper's assumptions hold and the posterior is right, which nothing here has checked"
MEASURED = (
    "if the paper's assumptions hold and the decoder is off by no more than was measured: {overstated:.4f} too much "
    "and {missed:.4f} missed, on {rounds} uniform rounds in {groups} groups; what cancels within a group is not seen"
)


@dataclass(frozen=True)
class DecoderError:
    """By how much a round's decoded reward is too high and its ceiling too low, under a policy.

    A measurement, not a bound: chance in the groups' frequencies adds to both, and what cancels within a group is
    missing from both.
    """

    overstated: float
    missed: float
    rounds: int
    groups: int


@dataclass(frozen=True)
class HiddenInterval:
    """Holds a policy's hidden value with the stated confidence, under the condition stated in `note`."""

    lower: float
    upper: float
    confidence: float
    note: str


def decoder_error(
    rounds: Interactions, posteriors: object, decoder: Decoder, policy: object, groups: object | None = None
) -> DecoderError:
    """Compare posteriors (n, K) with how often actions were taken, on uniform rounds that were not learned from.

    policy as for `ips`, on these rounds. groups (n,) of whole numbers say which rounds are compared together, such as a
    kind of context with a kind of feedback; without them, rounds of the same sharpest action at the same sharpness.
    """
    log, h = Weighted.of(rounds, policy, None), _posteriors(posteriors, rounds)
    if not is_uniform(rounds.probabilities):
        raise InvalidInputError(
            "probabilities", f"the decoder's error is measured on uniformly drawn actions only, 1/{h.shape[1]} "
            "everywhere, and these were drawn by another policy; give rounds that were drawn uniformly"
        )
    group, sizes, frequency = _frequencies(log, h, groups)
    beta, sigma = decoder.beta, decoder.sigma
    # A round alone in its group tells nothing, so that both readings are taken for wrong.
    alone = sizes[group] == 1
    overstated = (G(log.taken(h), beta, sigma) - G(log.taken(frequency), beta, sigma)).clamp(min=0)
    seen = torch.where(alone, 1.0, G(frequency.amax(1), beta, sigma))
    missed = (seen - G(h.amax(1), beta, sigma)).clamp(min=0)
    weights = log.taken(log.weights)
    return DecoderError(
        float((weights * overstated).mean()), float((weights * missed).mean()), len(rounds), len(sizes)
    )


def hidden_interval(
    rounds: Interactions, posteriors: object, decoder: Decoder, policy: object, *,
    error: DecoderError | None = None, confidence: float = 0.95, planned: int | None = None,
) -> HiddenInterval:  # fmt: skip
    """Where a policy's hidden value lies, from a log's posteriors (n, K); each end is widened by a measured error.

    rounds, policy and the rest as for `ips`; the log's own actions need not be uniform, but h must be the posterior for
    uniform ones, as every inverse model here gives it. With a ramp other than the assumptions' the ends mean nothing.
    """
    log, h = Weighted.of(rounds, policy, planned), _posteriors(posteriors, rounds)
    risk = (1 - check_confidence(confidence)) / 2
    decoded, ceiling = decoder.decode(h, log.actions), G(h.amax(1), decoder.beta, decoder.sigma)
    lower = log.at_least(decoded, running_mean(log, decoded), risk)
    upper = log.at_most(ceiling, running_mean(log, ceiling), risk)
    condition = TRUSTED
    if error is not None:
        lower, upper = max(lower - error.overstated, 0.0), min(upper + error.missed, 1.0)
        condition = MEASURED.format(
            overstated=error.overstated, missed=error.missed, rounds=error.rounds, groups=error.groups
        )
    return HiddenInterval(lower, upper, confidence, "; ".join(filter(None, [condition, notes(log)])))


def _posteriors(values: object, rounds: Interactions) -> Tensor:
    return check_rewards(values, rounds, "posteriors", rounds.probabilities.shape)


def _frequencies(log: Weighted, h: Tensor, groups: object | None) -> tuple[Tensor, Tensor, Tensor]:
    """Each round's group (n,), the groups' sizes, and how often its other rounds took each action (n, K)."""
    n, K = h.shape
    if groups is None:
        sharpness, sharpest = h.max(1)
        asked = sharpest * (LEVELS + 1) + (sharpness * LEVELS).long()
    else:
        asked = as_tensor(groups, "groups").to(h.device)
        if asked.ndim != 1 or asked.is_floating_point():
            raise InvalidInputError("groups", f"expected a column of whole numbers, got {asked.dtype} {asked.ndim}-d")
        check_count(asked, n, "groups")
    _, group = asked.unique(return_inverse=True)
    taken = functional.one_hot(log.actions, K).to(h)
    counts = h.new_zeros(int(group.max()) + 1, K).index_add(0, group, taken)
    sizes = counts.sum(1)
    others = (counts[group] - taken) / (sizes[group, None] - 1).clamp(min=1)
    return group, sizes, others
