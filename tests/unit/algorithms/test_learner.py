"""Choosing and learning, as both algorithms do it: what is drawn, what counts, what is refused and loses nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import tacit
from tacit.errors import InvalidInputError, NotFittedError, UnknownDecisionError
from tests import worlds

KINDS = {"off_policy": worlds.off_policy, "on_policy": worlds.on_policy}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def exploring(kind) -> tacit.Learner:
    return kind(worlds.finite(), worlds.classes())


@pytest.fixture(params=["exploring", "grounded"])
def learner(request, exploring) -> tacit.Learner:
    """Before and after it has learned to decode."""
    if request.param == "grounded":
        worlds.play(exploring, worlds.finite(), 1_000)
    assert exploring.exploring is (request.param == "exploring")
    return exploring


def state(learner: tacit.Learner) -> dict[str, Tensor]:
    """All that a learner knows, generators apart: a refused call may have drawn, but not learned."""
    return {
        f"{part}/{name}": value.clone()
        for part, entries in learner.parts().items() if part != "generators"
        for name, value in entries.items()
    }  # fmt: skip


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def reaction(decision: tacit.Decision, seed: int = 0) -> Tensor:
    return torch.randint(3, (len(decision),), generator=torch.Generator().manual_seed(seed))


def learn_in_parts(learner: tacit.Learner, decision: tacit.Decision, feedback: Tensor, parts) -> None:
    for rows in parts:
        learner.learn(decision[rows.numpy()], feedback[rows])


def test_every_decision_carries_the_probability_of_every_action(learner):
    decision = learner.choose([0, 1, 2, 1])
    assert decision.probabilities.shape == (4, 4)
    torch.testing.assert_close(decision.probabilities.sum(1), torch.ones(4).to(decision.probabilities))
    assert (decision.probabilities.gather(1, decision.actions[:, None]) > 0).all()
    assert decision.contexts.tolist() == [0, 1, 2, 1]


def test_actions_are_drawn_as_often_as_their_probabilities_say(learner):
    n = 20_000
    decision = learner.choose(torch.zeros(n, dtype=torch.long))
    often = torch.nn.functional.one_hot(decision.actions, 4).double().mean(0)
    expected = decision.probabilities.double().mean(0)
    # Five standard deviations: once in two million times for each action.
    allowed = 5 * (expected * (1 - expected) / n).sqrt()
    assert ((often - expected).abs() <= allowed + 1e-9).all()


def test_while_exploring_all_actions_are_equally_likely(exploring):
    assert exploring.choose([0, 1]).probabilities.tolist() == [[0.25] * 4] * 2


def test_contexts_may_be_lists_arrays_and_tensors(learner):
    for contexts in ([2, 0], np.array([2, 0]), np.array([2, 0], dtype=np.uint8), torch.tensor([2, 0])):
        assert learner.choose(contexts).contexts.tolist() == [2, 0]


def test_the_memory_of_the_contexts_may_be_used_again(learner):
    contexts = np.array([0, 1, 2])
    decision = learner.choose(contexts)
    contexts[:] = 0
    assert decision.contexts.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "contexts",
    [[], [3], [-1], [0.5], [float("nan")], [[0], [1]], 0, ["a"], None, [0, None], [2**70], [1j]],
    ids=str,
)
def test_contexts_of_another_kind_are_refused(learner, contexts):
    for call in (learner.choose, learner.greedy):
        with pytest.raises(InvalidInputError) as refusal:
            call(contexts)
        assert refusal.value.argument == "contexts"


def test_nothing_to_choose_for_is_refused(learner):
    with pytest.raises(InvalidInputError, match="contexts: there are none"):
        learner.choose(torch.zeros(0, dtype=torch.long))


@pytest.mark.parametrize("row", [[float("nan"), 0, 0, 0], [float("inf"), 0, 0, 0], [0, 0, 0], [[0, 0, 0, 0]]], ids=str)
def test_rows_of_another_kind_are_refused(kind, row):
    learner = kind(worlds.signs(), worlds.networks())
    for contexts in ([[0, 0, 0, 0], row], [row]):
        with pytest.raises(InvalidInputError, match="contexts"):
            learner.choose(contexts)


@pytest.mark.parametrize(
    "feedback",
    [[0, 1], [0, 1, 2, 3], [0, 1, 3], [0, -1, 1], [0, 1, 0.5], [0, 1, float("nan")], [[0], [1], [2]], "abc", None],
    ids=str,
)
def test_feedback_of_another_kind_is_refused_and_loses_nothing(learner, feedback):
    decision = learner.choose([0, 1, 2])
    before = state(learner)
    with pytest.raises(InvalidInputError) as refusal:
        learner.learn(decision, feedback)
    assert refusal.value.argument == "feedback"
    assert same(state(learner), before)
    learner.learn(decision, [0, 1, 2])
    assert not same(state(learner), before)


def test_feedback_to_a_decision_of_another_learner_is_refused(kind, learner):
    with pytest.raises(UnknownDecisionError, match="another learner"):
        learner.learn(kind(worlds.finite(), worlds.classes()).choose([0]), [0])


def test_feedback_to_a_decision_that_was_never_made_is_refused_whole(learner):
    decision = learner.choose([0, 1])
    invented = tacit.Decision(
        decision.stream, decision.ids + np.array([0, 1]), decision.contexts, decision.actions, decision.probabilities
    )
    before = state(learner)
    with pytest.raises(UnknownDecisionError):
        learner.learn(invented, [0, 1])
    assert same(state(learner), before)


def test_feedback_given_twice_counts_once(learner):
    decision = learner.choose([0, 1, 2, 0])
    learner.learn(decision[1:3], [2, 1])
    before = state(learner)
    again = learner.learn(decision[[2, 1, 1]], [0, 0, 1])
    assert again.isnan().all()
    assert same(state(learner), before)
    # What was not given yet still counts.
    learner.learn(decision, [0, 0, 0, 0])
    assert not same(state(learner), before)


def test_of_feedback_repeated_in_one_batch_the_first_counts(kind):
    repeated, once = kind(worlds.finite(), worlds.classes()), kind(worlds.finite(), worlds.classes())
    for learner, rows, feedback in ((repeated, [1, 0, 1, 0], [2, 1, 0, 0]), (once, [1, 0], [2, 1])):
        learner.learn(learner.choose([0, 1, 2])[rows], feedback)
    assert same(state(repeated), state(once))


def test_only_rounds_that_count_are_decoded():
    learner = worlds.on_policy(worlds.finite(), worlds.classes())
    worlds.play(learner, worlds.finite(), 1_000)
    decision = learner.choose([0, 1, 2, 0])
    learner.learn(decision[[1]], [0])
    decoded = learner.learn(decision[[3, 1, 2, 3]], [1, 0, 2, 1])
    assert decoded.isnan().tolist() == [False, True, False, True]
    assert ((decoded >= 0) & (decoded <= 1))[[0, 2]].all()


@pytest.mark.parametrize("order", ["reversed", "shuffled", "in parts"])
def test_feedback_may_come_late_in_any_order_and_in_parts(kind, order):
    """The exact models do not care about the order of rounds, so nothing may come out differently."""
    prompt, late = kind(worlds.finite(), worlds.classes(), 100), kind(worlds.finite(), worlds.classes(), 100)
    n = 100 if kind is worlds.on_policy else 200
    contexts = torch.arange(n) % 3
    mine, other = prompt.choose(contexts), late.choose(contexts)
    assert torch.equal(mine.actions, other.actions)
    feedback = reaction(mine)
    source = torch.Generator().manual_seed(1)
    # The two halves of Algorithm 1 stay what they are.
    rows = torch.cat([torch.randperm(n // 2, generator=source), n // 2 + torch.randperm(n // 2, generator=source)])
    if order == "reversed":
        rows = torch.cat([torch.arange(n // 2).flip(0), torch.arange(n // 2, n).flip(0)])
    parts = rows.split(7 if order == "in parts" else n)
    said = []
    for learner, decision, pieces in ((prompt, mine, [torch.arange(n)]), (late, other, parts)):
        with pytest.warns(tacit.DecoderWarning) as warned:
            learn_in_parts(learner, decision, feedback, pieces)
        said.append([str(warning.message) for warning in warned])
    # Random feedback is no reason to stop exploring; how far from chance it was is the same to the last digit shown.
    assert said[0] == said[1]


def test_feedback_that_could_not_be_learned_from_can_be_given_again(kind, monkeypatch):
    """Memory runs out in the middle of the first fit."""
    spared, hit = kind(worlds.finite(), worlds.classes()), kind(worlds.finite(), worlds.classes())
    fit = type(hit._inverse).fit
    failures = iter([MemoryError("no room")])

    def fails_once(self, rounds):
        for failure in failures:
            raise failure
        return fit(self, rounds)

    n = 400 if kind is worlds.on_policy else 800
    for learner in (spared, hit):
        arrival = next(worlds.finite().stream(n, n))
        decision = learner.choose(arrival.contexts)
        feedback, _ = arrival.react(decision.actions)
        if learner is hit:
            learner.learn(decision[:100], feedback[:100])
            monkeypatch.setattr(type(hit._inverse), "fit", fails_once)
            with pytest.raises(MemoryError):
                learner.learn(decision, feedback)
            assert learner.exploring
        learner.learn(decision, feedback)
        assert not learner.exploring
    assert hit.fit_quality == spared.fit_quality
    assert same(state(hit), state(spared))


def test_it_can_be_asked_for_the_best_action_without_being_told_of_a_decision(kind):
    learner = kind(worlds.finite(), worlds.classes())
    worlds.play(learner, worlds.finite(), 1_000)
    before = state(learner)
    assert learner.greedy([0, 1, 2, 0]).tolist() == [*worlds.BEST, worlds.BEST[0]]
    assert same(state(learner), before)
    assert learner.ledger.issued == 1_000


def test_before_there_is_a_policy_the_best_action_is_not_guessed(exploring):
    with pytest.raises(NotFittedError):
        exploring.greedy([0])


def test_nothing_that_was_passed_in_is_changed(learner):
    contexts, feedback = torch.tensor([0, 1, 2, 2]), torch.tensor([2, 1, 0, 0])
    decision = learner.choose(contexts)
    kept = [column.clone() for column in (decision.contexts, decision.actions, decision.probabilities)]
    learner.learn(decision[[2, 0]], feedback[:2])
    learner.learn(decision, feedback)
    assert (contexts.tolist(), feedback.tolist()) == ([0, 1, 2, 2], [2, 1, 0, 0])
    assert all(map(torch.equal, kept, (decision.contexts, decision.actions, decision.probabilities)))


@pytest.mark.parametrize("actions", [1, 0, -3, 2.0, True, None])
def test_fewer_than_two_actions_are_no_choice(actions):
    with pytest.raises(InvalidInputError, match="actions"):
        tacit.OnPolicy(actions, tacit.Category(2), tacit.Category(2), explore=10)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True])
def test_a_seed_is_a_whole_number(kind, seed):
    with pytest.raises(InvalidInputError, match="seed"):
        kind(worlds.finite(), worlds.classes(), seed=seed)


@pytest.mark.parametrize("explore", [0, -1, 1.5, "10", True])
def test_exploration_is_a_number_of_rounds(kind, explore):
    with pytest.raises(InvalidInputError, match="explore"):
        kind(worlds.finite(), worlds.classes(), explore)


@pytest.mark.parametrize(
    "change",
    [
        {"actions": torch.tensor([0, 99])}, {"actions": torch.tensor([0])}, {"actions": [0, 1]}, {"ids": [0, 1]},
        {"contexts": torch.tensor([0])}, {"contexts": torch.tensor([0, 99])},
    ],
    ids=str,
)  # fmt: skip
def test_a_decision_that_was_tampered_with_is_refused_and_nothing_is_learned(learner, change):
    decision = learner.choose([0, 1])
    before = state(learner)
    with pytest.raises(InvalidInputError):
        learner.learn(replace(decision, **change), reaction(decision))
    assert same(before, state(learner))


@pytest.mark.parametrize("decision", [None, 3, "decision", np.zeros(2)])
def test_what_is_no_decision_is_refused(learner, decision):
    with pytest.raises(InvalidInputError, match=r"^decision: expected what choose gave"):
        learner.learn(decision, [0, 1])
