"""What holds for every algorithm with every kind of models."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tacit
from tacit.errors import NotFittedError
from tests import worlds
from tests.contracts.components import ACTIONS, LEARNERS, values


@pytest.fixture(params=LEARNERS)
def name(request) -> str:
    return request.param


def made(name: str, seed: int = 0) -> tacit.Learner:
    return LEARNERS[name](seed)


def taught(name: str, seed: int = 0) -> tuple[tacit.Learner, Tensor]:
    """A learner that has left exploration, and refined its decoder if it can; the actions it took on the way."""
    learner, environment, actions = made(name, seed), worlds.signs() if "networks" in name else worlds.finite(), []
    for arrival in environment.stream(700, 50):
        decision = learner.choose(arrival.contexts)
        actions.append(decision.actions)
        learner.learn(decision, arrival.react(decision.actions)[0])
    assert not learner.exploring
    assert not isinstance(learner, tacit.TwoView) or learner.refinement
    return learner, torch.cat(actions)


def knowledge(learner: tacit.Learner) -> dict[str, Tensor]:
    parts = learner.parts()
    return {f"{part}/{name}": value.clone() for part, entries in parts.items() for name, value in entries.items()}


def some(learner: tacit.Learner, count: int = 20) -> Tensor:
    return values(learner.problem.context, count)


def test_before_it_has_learned_it_chooses_uniformly_and_knows_no_best_action(name):
    learner = made(name)
    assert learner.exploring
    assert (learner.choose(some(learner)).probabilities == 1 / ACTIONS).all()
    with pytest.raises(NotFittedError):
        learner.greedy(some(learner))


def test_decisions_have_the_shapes_and_ranges_that_are_promised(name):
    learner, _ = taught(name)
    contexts = some(learner)
    decision = learner.choose(contexts)
    assert len(decision) == len(contexts)
    assert decision.ids.tolist() == list(range(700, 720))
    assert decision.actions.shape == (20,)
    assert ((decision.actions >= 0) & (decision.actions < ACTIONS)).all()
    assert decision.probabilities.shape == (20, ACTIONS)
    assert (decision.probabilities >= 0).all()
    torch.testing.assert_close(decision.probabilities.sum(1), torch.ones(20).to(decision.probabilities))
    assert (decision.probabilities.gather(1, decision.actions[:, None]) > 0).all()
    decoded = learner.learn(decision, values(learner.problem.feedback, 20))
    assert decoded.shape == (20,)
    assert ((decoded >= 0) & (decoded <= 1)).all()


def test_asking_for_the_best_action_changes_nothing(name):
    learner, _ = taught(name)
    before, contexts = knowledge(learner), some(learner)
    kept = contexts.clone()
    learner.greedy(contexts)
    after = knowledge(learner)
    assert all(torch.equal(value, after[key]) for key, value in before.items())
    assert torch.equal(contexts, kept)


def test_the_best_actions_of_a_batch_are_those_of_its_rows(name):
    learner, _ = taught(name)
    contexts = some(learner)
    assert learner.greedy(contexts).tolist() == [int(learner.greedy(contexts[i : i + 1])) for i in range(20)]


def test_a_batch_of_one_is_a_batch(name):
    learner, _ = taught(name)
    for i in range(3):
        decision = learner.choose(some(learner)[i : i + 1])
        assert len(decision) == 1
        assert not learner.learn(decision, values(learner.problem.feedback, 1)).isnan().any()


def test_the_same_seed_gives_the_same_actions_and_knowledge_and_another_seed_others(name):
    (first, actions), (again, repeated), (_, others) = taught(name), taught(name), taught(name, seed=1)
    assert torch.equal(actions, repeated)
    mine, its = knowledge(first), knowledge(again)
    assert all(torch.equal(value, its[key]) for key, value in mine.items())
    assert not torch.equal(actions, others)


def test_saved_and_loaded_it_answers_as_before(name, tmp_path):
    learner, _ = taught(name)
    learner.save(tmp_path)
    loaded = tacit.load(tmp_path, device="cpu")
    contexts = some(learner)
    assert torch.equal(loaded.greedy(contexts), learner.greedy(contexts))
    mine, its = learner.choose(contexts), loaded.choose(contexts)
    assert torch.equal(mine.probabilities, its.probabilities)
    assert torch.equal(mine.actions, its.actions)
    assert mine.ids.tolist() == its.ids.tolist()
