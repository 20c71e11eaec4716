"""What holds for everything that learns from rounds and answers: inverse and reward models, oracles, policies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tacit.errors import NotFittedError
from tests.contracts.components import ACTIONS, MODELS, Model, source


@pytest.fixture(params=MODELS)
def model(request) -> Model:
    return MODELS[request.param]


def taught(model: Model, seed: int = 0) -> tuple[Any, torch.Generator]:
    draws = source(seed)
    made = model.make(draws)
    model.learn(made)
    return made, draws


def snapshot(made: Any) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in made.tensors().items()}


def assert_answers(model: Model, answers: Tensor) -> None:
    assert answers.shape == (len(model.asked[0]),) + (() if model.single else (ACTIONS,))
    assert answers.is_floating_point()
    assert answers.isfinite().all()
    assert not answers.requires_grad
    if model.bounded:
        assert ((answers >= 0) & (answers <= 1)).all()
    if model.sums_to_one:
        torch.testing.assert_close(answers.sum(1), torch.ones(len(answers)).to(answers))


def test_before_it_has_learned_it_answers_in_range_or_says_that_it_cannot(model):
    made = model.make(source(0))
    if model.ready:
        assert_answers(model, model.ask(made, *model.asked))
    else:
        with pytest.raises(NotFittedError):
            model.ask(made, *model.asked)


def test_it_answers_with_numbers_in_range(model):
    assert_answers(model, model.ask(taught(model)[0], *model.asked))


def test_asking_changes_nothing(model):
    made, draws = taught(model)
    before, drawn = snapshot(made), draws.get_state()
    first = model.ask(made, *model.asked).clone()
    assert torch.equal(model.ask(made, *model.asked), first)
    after = made.tensors()
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert torch.equal(draws.get_state(), drawn)


def test_what_it_is_asked_stays_as_it_was(model):
    kept = [column.clone() for column in model.asked]
    model.ask(taught(model)[0], *model.asked)
    assert all(map(torch.equal, kept, model.asked))


def test_a_batch_is_answered_as_its_rows_one_by_one(model):
    made, _ = taught(model)
    at_once = model.ask(made, *model.asked)
    rows = [model.ask(made, *(column[i : i + 1] for column in model.asked)) for i in range(len(at_once))]
    # Sums over more or fewer rows are rounded differently.
    torch.testing.assert_close(torch.cat(rows), at_once, atol=1e-5, rtol=1e-4)


def test_the_same_seed_gives_the_same_answers_and_another_seed_others(model):
    first, again, other = (model.ask(taught(model, seed)[0], *model.asked) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert torch.equal(first, other) is not model.seeded


@pytest.mark.parametrize("learned", [False, True])
def test_restored_it_answers_and_learns_on_as_the_one_that_was_saved(model, learned):
    made, draws = taught(model) if learned else (model.make(draws := source(0)), draws)
    other = source(5)
    again = model.make(other)
    again.restore(snapshot(made))
    other.set_state(draws.get_state())
    if learned or model.ready:
        assert torch.equal(model.ask(again, *model.asked), model.ask(made, *model.asked))
    model.learn(made)
    model.learn(again)
    assert torch.equal(model.ask(again, *model.asked), model.ask(made, *model.asked))


def test_restored_it_does_not_share_what_it_learns_with_the_one_that_was_saved(model):
    made, _ = taught(model)
    again = model.make(source(5))
    again.restore(made.tensors())
    before = snapshot(made)
    model.learn(again)
    after = made.tensors()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_the_rounds_it_learns_from_stay_as_they_were(model):
    kept = [column.clone() for column in model.taught]
    taught(model)
    assert all(map(torch.equal, kept, model.taught))
