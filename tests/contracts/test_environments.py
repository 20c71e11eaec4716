"""What holds for every environment."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tacit.environments import Environment
from tacit.errors import InvalidInputError
from tacit.interactions import HiddenReward
from tests.contracts.components import ENVIRONMENTS

ROUNDS = 70


@pytest.fixture(params=ENVIRONMENTS)
def make(request):
    return ENVIRONMENTS[request.param]


def played(environment: Environment, batch: int = 30, action: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Contexts, feedback and hidden rewards of one action throughout."""
    columns = []
    for arrival in environment.stream(ROUNDS, batch):
        feedback, hidden = arrival.react(torch.full((len(arrival.contexts),), action))
        columns.append((arrival.contexts, feedback, hidden.values))
    contexts, feedback, rewards = (torch.cat(column) for column in zip(*columns, strict=True))
    return contexts, feedback, rewards


def test_rounds_are_of_the_kind_that_the_problem_says(make):
    environment = make(0)
    problem = environment.problem
    contexts, feedback, rewards = played(environment)
    for space, column, name in ((problem.context, contexts, "contexts"), (problem.feedback, feedback, "feedback")):
        space.check(column, name)
        space.check_range(column, name)
        assert len(column) == ROUNDS
    assert rewards.shape == (ROUNDS,)
    assert ((rewards == 0) | (rewards == 1)).all()


def test_the_reward_is_of_a_type_of_its_own(make):
    environment = make(0)
    arrival = next(environment.stream(5, 5))
    assert isinstance(arrival.react(torch.zeros(5, dtype=torch.long))[1], HiddenReward)
    held = environment.held_out()
    hidden = held.reward(torch.zeros(len(held.contexts), dtype=torch.long))
    assert isinstance(hidden, HiddenReward)
    assert hidden.values.shape == (len(held.contexts),)
    assert ((hidden.values >= 0) & (hidden.values <= 1)).all()


def test_held_out_contexts_are_of_the_same_kind(make):
    environment = make(0)
    contexts = environment.held_out().contexts
    environment.problem.context.check(contexts, "contexts")
    environment.problem.context.check_range(contexts, "contexts")


@pytest.mark.parametrize("batch", [1, 30, ROUNDS, 10 * ROUNDS])
def test_as_many_rounds_come_as_were_asked_for_in_batches(make, batch):
    sizes = [len(arrival.contexts) for arrival in make(0).stream(ROUNDS, batch)]
    assert sum(sizes) == ROUNDS
    assert set(sizes[:-1]) <= {batch}


@pytest.mark.parametrize("batch", [1, 7, ROUNDS])
def test_contexts_come_in_the_same_order_whatever_the_batch(make, batch):
    assert torch.equal(played(make(0), batch)[0], played(make(0), 30)[0])


def test_the_same_seed_gives_the_same_rounds_and_another_seed_others(make):
    first, again, other = played(make(0)), played(make(0)), played(make(1))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])


def test_every_stream_starts_afresh(make):
    environment = make(0)
    first = played(environment)
    assert all(map(torch.equal, first, played(environment)))


def test_contexts_do_not_depend_on_actions(make):
    assert torch.equal(played(make(0), action=0)[0], played(make(0), action=1)[0])


def test_reacting_leaves_the_actions_as_they_were(make):
    arrival = next(make(0).stream(ROUNDS, ROUNDS))
    actions = torch.arange(ROUNDS) % make(0).problem.actions
    kept = actions.clone()
    arrival.react(actions)
    assert torch.equal(actions, kept)


def test_more_rounds_than_there_are_are_refused(make):
    environment = make(0)
    if environment.horizon is None:
        assert len(next(environment.stream(10**4, 10**4)).contexts) == 10**4
    else:
        with pytest.raises(InvalidInputError, match="rounds"):
            next(environment.stream(environment.horizon + 1, 10))
