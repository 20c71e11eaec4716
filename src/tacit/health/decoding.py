"""The checks of what is decoded: can reward be told at all, and does the data contradict the assumptions behind it?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tacit.decoder import G
from tacit.health import checks
from tacit.health.evidence import Evidence
from tacit.health.report import Check
from tacit.health.statistics import Estimate, critical, information
from tacit.inverse.base import FEWEST, worth

NOT_ASKED = "not asked: too few uniform rounds"
LITTLE = 0.1  # of one rewarded action in each context, decoded under uniform draws
COMMON = 0.5  # of uniform rounds read as reward: no longer the rarer event
SHRUNK, LOST = 0.6, 0.3  # what the posterior says, times this, is what happens
TRACE = 0.08  # of the doubt among the other actions that feedback may take away, beyond reward
WEAK = 0.3  # of what feedback tells in the other rounds that it has to tell in a segment


def chance(evidence: Evidence) -> Check:
    """Does feedback tell, better than chance, which action was taken?"""
    fit = evidence.subject.fit
    if not evidence.enough:
        return Check("chance", "ok", NOT_ASKED)
    z = critical()
    gain = _gain(evidence)
    found = f"feedback takes away {gain.percent(z)} of the doubt about which action was taken, on rounds held out"
    if gain.low(z) <= 0 and not (fit is not None and fit.held_out and fit.better_than_chance):
        advice = (
            "No better than chance: check that feedback is joined to the right decisions and depends on how good the "
            "action was; else draw more actions uniformly"
        )
        return Check("chance", "broken", found, advice, gain.value)
    return Check("chance", "ok", found, effect=gain.value)


def margin(evidence: Evidence) -> Check:
    """Is anything decoded as reward, and enough to tell a good action by?"""
    if not evidence.enough:
        return Check("margin", "ok", NOT_ASKED)
    rounds, decoder = evidence.uniform.rounds, evidence.subject.decoder
    # The decoder in use, where there is one: it learned from these rounds, but from all of them.
    h = evidence.honest if evidence.subject.predict is None else evidence.own(evidence.uniform)
    decoded = Estimate.mean(decoder.decode(h, rounds.actions)).scaled(evidence.K)
    z = critical()
    found = f"of one good action in each context, {decoded.percent(z)} is decoded as reward"
    fit = evidence.subject.fit
    blind = evidence.subject.predict is None and fit is not None and fit.better_than_chance
    if blind or decoded.high(z) < LITTLE:
        advice = (
            f"Posteriors rarely reach the ramp, which starts at {decoder.beta:.2f}: the wrong actions are too much "
            "like the right one, or the same feedback follows both. Offer actions that differ more, collect clearer "
            "feedback, or state a smaller theta/alpha if several actions are good"
        )
        severe = blind or decoded.high(z) < LITTLE / 2
        return Check("margin", "broken" if severe else "watch", found, advice, decoded.value)
    return Check("margin", "ok", found, effect=decoded.value)


def rarity(evidence: Evidence) -> Check:
    """Is reward 1 the rarer event, everywhere?"""
    if not evidence.enough:
        return Check("rarity", "ok", NOT_ASKED)
    decoder = evidence.subject.decoder
    read = (G(evidence.honest.amax(1), decoder.beta, decoder.sigma) > 0).double()
    parts = _parts(evidence)
    z = critical(len(parts))
    shares = [(Estimate.mean(read[rows]), name) for name, rows in parts]
    worst, where = max(shares, key=lambda share: share[0].low(z))
    if worst.low(z) > COMMON:
        found = f"{worst.percent(z)} of uniform rounds are read as reward for some action, in {where}"
        advice = (
            "Reward 1 must be the rarer event, or it cannot be told from reward 0: offer more actions, or define "
            "reward so that few of them earn it"
        )
        return Check("rarity", "broken", found, advice, worst.value)
    everywhere = shares[0][0]
    found = f"{everywhere.percent(z)} of uniform rounds are read as reward for some action, under half everywhere"
    return Check("rarity", "ok", found, effect=everywhere.value)


def sign(evidence: Evidence) -> Check:
    """Does the decoder in use point to the actions taken, or away from them?"""
    if not _own_tells(evidence):
        return Check("sign", "ok", "not asked: since the decoder was learned, too little was left to chance")
    slope = _own_slope(evidence)
    z = critical()
    if slope.high(z) < 0:
        found = f"the decoder in use points away from the actions that are taken now (slope {slope.value:.2f})"
        advice = "Feedback seems to have turned round: stop acting on it, and learn again from new uniform rounds"
        return Check("sign", "broken", found, advice, slope.value)
    return Check("sign", "ok", "the decoder in use does not point away from the actions taken", effect=slope.value)


def calibration(evidence: Evidence) -> Check:
    """When the posterior says 0.8, is it 0.8?"""
    if not evidence.enough:
        return Check("calibration", "ok", NOT_ASKED)
    rounds = evidence.uniform.rounds
    slopes = []
    if _gain(evidence).low(critical()) > 0:
        slopes.append(("on uniform rounds held out", _slope(evidence.honest, rounds.actions, rounds.probabilities)))
    if _own_tells(evidence):
        slopes.append(("since the decoder was learned", _own_slope(evidence)))
    if not slopes:
        return Check("calibration", "ok", "not asked: the posterior is at chance")
    z = critical(len(slopes))
    slope, where = min(((slope, where) for where, slope in slopes), key=lambda pair: pair[0].high(z))
    found = f"what happens is {slope.value:.2f} times what the posterior says (at most {slope.high(z):.2f}), {where}"
    if slope.high(z) < SHRUNK:
        advice = "The posterior claims more than it knows: train it for fewer epochs, or on more or newer rounds"
        return Check("calibration", "broken" if slope.high(z) < LOST else "watch", found, advice, slope.value)
    return Check("calibration", "ok", found, effect=slope.value)


def trace(evidence: Evidence) -> Check:
    """Given context and reward, does feedback still tell the action?"""
    if not evidence.enough or evidence.subject.predict is None or evidence.K < 3:
        return Check("trace", "ok", "not asked: it takes a learned policy, three actions and enough uniform rounds")
    left = _left_over(evidence)
    if left is None:
        return Check("trace", "ok", NOT_ASKED)
    z = critical()
    found = f"beyond reward, feedback takes away {left.percent(z)} of the doubt among the actions that are not the best"
    if left.low(z) > 0 and left.value > TRACE:
        advice = (
            "Feedback must depend on the action through the reward alone: leave out what names or shows the action, "
            "such as its text, its place or which button was pressed"
        )
        return Check("trace", "broken" if left.value > 2 * TRACE else "watch", found, advice, left.value)
    return Check("trace", "ok", found, effect=left.value)


def segments(evidence: Evidence) -> Check:
    """Is there a kind of context in which feedback tells nothing?"""
    if not evidence.enough or not evidence.segments:
        return Check("segments", "ok", "not asked: too few uniform rounds in any segment")
    rounds = evidence.uniform.rounds
    towards, _ = information(evidence.honest, rounds.actions, rounds.probabilities.double())
    spread, z = float(towards.std()), critical(len(evidence.segments))
    own = None
    if evidence.subject.predict is not None:
        own, _ = information(evidence.own(evidence.uniform), rounds.actions, rounds.probabilities.double())
    found = []
    for name, rows in evidence.segments:
        within = torch.zeros_like(towards, dtype=torch.bool).index_fill(0, rows, True)
        lack = Estimate.mean(towards[~within], spread).minus(Estimate.mean(towards[within], spread))
        # Each model has to fail there, the one in use as well: those of a half may have had too few rounds of it.
        shares = [_share(towards[half], within[half]) for half, _ in evidence.halves]
        shares += [] if own is None else [_share(own, within)]
        found.append((max(shares), lack.low(z), name))
    share, lack_low, where = min(found)
    text = f"in {where}, the weakest of {len(found)} segments, feedback tells {100 * share:.0f} % as much as elsewhere"
    if share < WEAK and lack_low > 0:
        advice = "There the decoded reward means little: leave these rounds out, or find out how feedback arises there"
        return Check("segments", "broken", text, advice, share)
    return Check("segments", "ok", text, effect=share)


def _share(towards: Tensor, within: Tensor) -> float:
    """How much feedback tells within a segment, as a share of what it tells elsewhere."""
    elsewhere = float(towards[~within].mean())
    return float(towards[within].mean()) / elsewhere if elsewhere > 0 else 1.0


def _gain(evidence: Evidence) -> Estimate:
    rounds = evidence.uniform.rounds
    towards, _ = information(evidence.honest, rounds.actions, rounds.probabilities.double())
    return Estimate.mean(towards).scaled(1 / (1 - 1 / evidence.K))


def _slope(h: Tensor, actions: Tensor, probabilities: Tensor) -> Estimate:
    return Estimate.ratio(*information(h, actions, probabilities.double()))


def _own_tells(evidence: Evidence) -> bool:
    """Whether the rounds since the decoder was learned leave enough to chance: a greedy policy's say nothing of h."""
    acted = evidence.acted
    return len(acted) >= evidence.fewest and worth(acted.rounds.probabilities) >= FEWEST


def _own_slope(evidence: Evidence) -> Estimate:
    rounds = evidence.acted.rounds
    return _slope(evidence.own(evidence.acted), rounds.actions, rounds.probabilities)


def _parts(evidence: Evidence) -> list[tuple[str, Tensor]]:
    everything = torch.arange(len(evidence.uniform), device=evidence.uniform.when.device)
    return [("all contexts", everything), *evidence.segments]


def _left_over(evidence: Evidence) -> Estimate | None:
    """How much feedback tells about actions that are not the best, beyond what other feedback of that reward tells.

    Given context and reward, the assumption makes feedback of other rounds as good as a round's own. So the posterior
    with its own feedback is compared with the mean of those with others', which are of the same best action and, with
    this context, lie on the same side of chance for it: of the same reward.
    """
    best, found = evidence.greedy(evidence.uniform), []
    rounds, K = evidence.uniform.rounds, evidence.K
    for half, model in evidence.halves:
        for action in best.unique().tolist():
            group = half[best[half] == action]
            rows = group[rounds.actions[group] != action]
            if not len(rows):
                continue
            h = evidence.honest[rows]
            others = evidence.swapped(rows, model, evidence.pick(group, len(rows)))
            alike = ((others[..., action] > 1 / K) == (h[:, action] > 1 / K)[:, None]).double()
            keep = alike.any(1).nonzero()[:, 0]
            own, theirs = _without(h, action), (_without(others, action) * alike[..., None]).sum(1)
            theirs = theirs / alike.sum(1, keepdim=True).clamp(min=1)
            taken = torch.nn.functional.one_hot(rounds.actions[rows], K).double()
            found.append(((taken - theirs) * (own - theirs)).sum(1)[keep])
    values = torch.cat(found) if found else torch.empty(0)
    return Estimate.mean(values).scaled(1 / (1 - 1 / (K - 1))) if len(values) >= evidence.fewest else None


def _without(h: Tensor, action: int) -> Tensor:
    """Posteriors (..., K) given that this action was not taken."""
    rest = h.index_fill(-1, torch.tensor([action], device=h.device), 0.0)
    return rest / rest.sum(-1, keepdim=True).clamp(min=1e-6)


ALL: tuple[Callable[[Evidence], Check], ...] = (
    checks.rounds, checks.constant, checks.repeats, checks.draws, chance, margin, rarity, sign, calibration, trace,
    checks.drift, segments,
)  # fmt: skip
