"""The checks of the data itself: enough of it, varied, joined to the right decisions, drawn as it says, steady.

Each asks one question of the evidence and answers with a severity. A check that goes by a test speaks only if the test
exceeds its share of the report's level and what it found is large enough to matter.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tacit.encoders import Category
from tacit.health.evidence import Evidence
from tacit.health.report import Check
from tacit.health.sample import Kept
from tacit.health.statistics import Estimate, critical, information

OTHER_FEEDBACK = 10  # rounds at least whose feedback is not the most frequent one
APART = range(53, 200, 7)  # rounds between two feedbacks that have nothing to do with each other
REPEATS = 0.05  # consecutive rounds more than by chance with the same feedback
DRAWN = 0.05  # off the share of rounds in which an action should be drawn
FORETOLD = 0.02  # of the doubt about the action that the context alone may take away
CHANGED = 0.1  # of the share of one feedback, or of the chance that a later number is the larger
STRATUM = 40  # rounds of both times in a part that is compared by itself
MOST_NUMBERS = 24  # of a feedback that are looked at one by one


def rounds(evidence: Evidence) -> Check:
    """Are there enough rounds to tell anything?"""
    found = f"{len(evidence.uniform):,} uniformly drawn rounds are at hand, {evidence.fewest:,} are needed to judge"
    if not evidence.enough:
        return Check("rounds", "watch", found, "Draw more actions uniformly before relying on what is decoded")
    return Check("rounds", "ok", found)


def constant(evidence: Evidence) -> Check:
    """Does feedback vary at all?"""
    codes = _codes(evidence.kept.rounds.feedback)
    others = len(codes) - int(codes.bincount().max())
    if others < OTHER_FEEDBACK and len(codes) > OTHER_FEEDBACK:
        found = f"all but {others} of {len(codes):,} rounds have the same feedback"
        return Check("constant", "broken", found, "Look at where feedback is recorded: it carries nothing", others)
    return Check("constant", "ok", f"feedback varies: {int(codes.max()) + 1:,} different ones were seen")


def repeats(evidence: Evidence) -> Check:
    """Do consecutive rounds, of different contexts, have the same feedback more often than by chance?"""
    kept = evidence.kept
    feedback, contexts = _codes(kept.rounds.feedback), _codes(kept.rounds.contexts)
    follows = (kept.when[1:] - kept.when[:-1] == 1) & (contexts[1:] != contexts[:-1])
    if int(follows.sum()) < evidence.fewest:
        return Check("repeats", "ok", "not asked: too few consecutive rounds of different contexts")
    same = (feedback[1:] == feedback[:-1])[follows].double()
    # What chance is: feedback some rounds away, too far to be a copy and too near for the policy to have changed much.
    far = torch.cat([
        (feedback[lag:] == feedback[:-lag])[contexts[lag:] != contexts[:-lag]].double() for lag in APART
    ])  # fmt: skip
    excess = Estimate.mean(same).minus(Estimate(float(far.mean()), 0.0))
    z = critical()
    found = f"consecutive rounds share their feedback {excess.percent(z)} more often than distant ones"
    if excess.low(z) > 0 and excess.value > REPEATS:
        advice = "Check the join: the same feedback seems to be given to several decisions"
        return Check("repeats", "broken", found, advice, excess.value)
    return Check("repeats", "ok", found, effect=excess.value)


def draws(evidence: Evidence) -> Check:
    """Were actions drawn with the probabilities that are logged?"""
    z = critical(4 * evidence.K + 1)
    worst, where = 0.0, ""
    for name, kept in (("uniform rounds", evidence.uniform), ("the latest rounds", evidence.latest)):
        if len(kept) < evidence.fewest:
            continue
        p = kept.rounds.probabilities.double()
        off = (torch.nn.functional.one_hot(kept.rounds.actions, evidence.K) - p).mean(0)
        error = (p * (1 - p)).sum(0).sqrt() / len(kept)
        off = torch.where(off.abs() > z * error, off, 0.0)
        if (largest := float(off.abs().max())) > worst:
            worst, action = largest, int(off.abs().argmax())
            where = f"in {name} action {action} was taken {100 * float(off[action]):+.0f} % of all rounds off its share"
    advice = "The logged probabilities are not those of the draw: find out which policy acted, and log its own"
    if worst > DRAWN:
        return Check("draws", "broken", where, advice, worst)
    foretold = _foretold(evidence)
    if foretold is not None and foretold.low(z) > 0 and foretold.value > FORETOLD:
        found = f"the context alone takes away {foretold.percent(z)} of the doubt about uniformly drawn actions"
        return Check("draws", "broken", found, advice, foretold.value)
    return Check("draws", "ok", "actions were taken as often as the logged probabilities say", effect=worst)


def drift(evidence: Evidence) -> Check:
    """Does feedback to the same action in the same kind of context change over time?"""
    changes = list(_changes(evidence))
    if not changes:
        return Check("drift", "ok", "not asked: too few rounds to compare times")
    z = critical(2 * len(changes))
    real = [(abs(change.value), name) for name, change in changes if abs(change.value) > z * change.error]
    effect, name = max(real, default=(0.0, ""))
    if effect > CHANGED:
        found = f"feedback changed over time: {name}, by {100 * effect:.0f} % of all rounds"
        advice = "Learn the decoder again from recent uniform rounds, and find out what changed"
        return Check("drift", "broken" if effect > 2 * CHANGED else "watch", found, advice, effect)
    return Check("drift", "ok", f"feedback did not change noticeably in {len(changes)} comparisons", effect=effect)


def _foretold(evidence: Evidence) -> Estimate | None:
    """How much of the doubt about uniform draws the context takes away: with other rounds' feedback, if any is."""
    if not evidence.enough:
        return None
    found = []
    for rows, model in evidence.halves:
        part = evidence.uniform.rounds[rows]
        h = evidence.swapped(rows, model, evidence.pick(rows, len(rows))).mean(1)
        found.append(information(h, part.actions, part.probabilities.double())[0])
    return Estimate.mean(torch.cat(found)).scaled(1 / (1 - 1 / evidence.K))


def _changes(evidence: Evidence) -> Iterator[tuple[str, Estimate]]:
    """Differences between two times, by part of the rounds and by number of the feedback."""
    K, uniform = evidence.K, evidence.uniform
    if evidence.enough:
        half = len(uniform) // 2
        everything = torch.arange(len(uniform), device=uniform.when.device)
        for name, rows in [("all contexts", everything), *evidence.segments]:
            early, late = rows[rows < half], rows[rows >= half]
            yield from _compared(f"early and late uniform rounds, {name}", uniform[early], uniform[late], evidence)
    if evidence.subject.predict is None:
        return
    acted = evidence.acted
    greedy, before = evidence.greedy(acted), evidence.greedy(uniform)
    first_half = torch.arange(len(acted), device=acted.when.device) < len(acted) // 2
    for action in range(K):
        # Only where the action is the best: which contexts these are does not depend on who drew it.
        taken = (acted.rounds.actions == action) & (greedy == action)
        explored = (uniform.rounds.actions == action) & (before == action) & ~uniform.decoded
        name = f"action {action} where it seems best"
        then, now = uniform[explored.nonzero()[:, 0]], acted[taken.nonzero()[:, 0]]
        yield from _compared(f"uniform and latest rounds, {name}", then, now, evidence)
        sooner, later = (acted[(taken & when).nonzero()[:, 0]] for when in (first_half, ~first_half))
        yield from _compared(f"within the latest rounds, {name}", sooner, later, evidence)


def _compared(name: str, one: Kept, other: Kept, evidence: Evidence) -> Iterator[tuple[str, Estimate]]:
    if min(len(one), len(other)) < STRATUM:
        return
    both = torch.cat([one.rounds.feedback, other.rounds.feedback])
    early = torch.arange(len(both), device=both.device) < len(one)
    # By the inverse of the probability with which the action was taken, contexts count as often as they come.
    weights = torch.cat([1 / _taken(kept) for kept in (one, other)])
    for number, values in _numbers(both, isinstance(evidence.subject.problem.feedback, Category)):
        spread = float(values.std())
        if spread > 0:
            means = [Estimate.weighted(values[when], weights[when], spread) for when in (~early, early)]
            yield f"{name}, {number}", means[0].minus(means[1])


def _numbers(feedback: Tensor, categories: bool) -> Iterator[tuple[str, Tensor]]:
    """What is compared of feedback (n, ...): each category's occurrence, or each number's rank between 0 and 1."""
    if categories:
        for value in feedback.unique().tolist():
            yield f"feedback {value}", (feedback == value).double()
        return
    columns = feedback.flatten(1).double()
    # Many numbers, as of an image, are compared by the means of their neighbours.
    for number, column in enumerate(columns.tensor_split(min(columns.shape[1], MOST_NUMBERS), 1)):
        yield f"number {number} of the feedback", _ranks(column.mean(1))


def _taken(kept: Kept) -> Tensor:
    """The probability of the action that was taken (n,)."""
    return kept.rounds.probabilities.double().gather(1, kept.rounds.actions[:, None])[:, 0]


def _ranks(values: Tensor) -> Tensor:
    """The share of values below each, ties counting half: (n,)."""
    ordered = values.sort()[0]
    below, upto = (torch.searchsorted(ordered, values, right=right) for right in (False, True))
    return (below + upto).double() / (2 * len(values))


def _codes(values: Tensor) -> Tensor:
    """Equal values (n, ...) as equal numbers (n,)."""
    codes: Tensor = values.flatten(1).unique(dim=0, return_inverse=True)[1] if values.ndim > 1 else values.unique(
        return_inverse=True
    )[1]
    return codes
