"""Which logs can be learned from, and how much their rounds count."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import tacit
from tacit.algorithms.log import best_limit, learnable, refuse_contradiction, weights
from tacit.errors import InvalidInputError, LogWarning
from tests import worlds

N = 4_000


def log_of(probabilities: Tensor, contexts: Tensor | None = None, seed: int = 0) -> tacit.Interactions:
    """Rounds whose actions were drawn from these probabilities (n, K), with feedback that does not matter here."""
    n = len(probabilities)
    source = torch.Generator().manual_seed(seed)
    contexts = torch.randint(3, (n,), generator=source) if contexts is None else contexts
    actions = tacit.exploration.draw(probabilities, torch.rand(n, generator=source))
    return tacit.Interactions.of(
        contexts=contexts, actions=actions, probabilities=probabilities, feedback=torch.zeros(n, dtype=torch.long)
    )


def uniform(n: int = N, K: int = 4) -> Tensor:
    return torch.full((n, K), 1 / K)


def certain(n: int = N, action: int = 1) -> Tensor:
    return torch.nn.functional.one_hot(torch.full((n,), action), 4).float()


def refusal(log: tacit.Interactions) -> str:
    with pytest.raises(InvalidInputError) as refused:
        learnable(log)
    return str(refused.value)


@pytest.mark.parametrize("probabilities", [uniform(), worlds.stubborn(torch.zeros(N)), uniform(8)], ids=str)
def test_a_log_in_which_every_action_had_a_chance_counts_as_it_is(probabilities):
    log = log_of(probabilities)
    assert learnable(log) is log


def test_hardly_a_round_is_too_few():
    assert refusal(log_of(uniform(7))) == "log: 7 rounds are too few for 4 actions; thousands are usual"


def test_a_log_without_any_exploration_is_hopeless_and_says_what_to_do():
    said = refusal(log_of(certain()))
    assert "leaves nothing to chance: the likeliest action had probability 1 on average" in said
    assert "its 4000 rounds are worth 0.0 uniform ones" in said
    assert "draw some actions at random" in said


def test_next_to_no_exploration_is_no_better():
    nearly = 0.9999 * certain() + 0.0001 * uniform()
    assert "probability 0.999925 on average" in refusal(log_of(nearly))


def test_an_action_that_never_had_a_chance_is_named():
    never = torch.tensor([0.5, 0.0, 0.5, 0.0]).expand(N, 4)
    assert "no round gave action 1, 3 a chance" in refusal(log_of(never))


def test_different_actions_without_a_chance_in_every_round_are_refused():
    contexts = torch.arange(N) % 2
    halves = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])[contexts]
    assert "in all but 0 of 4000 rounds some action had no chance" in refusal(log_of(halves, contexts))


@pytest.mark.parametrize("table", [False, True])
def test_a_context_in_which_only_one_action_ever_had_a_chance_is_named(table):
    contexts = torch.arange(N) % 4
    probabilities = torch.where(contexts[:, None] == 2, certain(), uniform())
    contexts = torch.eye(4)[contexts] if table else contexts
    said = refusal(log_of(probabilities, contexts))
    assert "in 1 of 4 contexts (1000 of 4000 rounds)" in said
    assert "in that of row 2, only action 1 ever had one" in said


def test_rounds_without_a_choice_are_left_out_with_a_warning():
    explored = torch.arange(N) % 10 == 0
    log = log_of(torch.where(explored[:, None], uniform(), certain()))
    with pytest.warns(LogWarning, match="3600 of 4000 rounds are left out"):
        used = learnable(log)
    assert torch.equal(used.actions, log.actions[explored])


def test_contexts_that_came_once_are_not_taken_for_closed():
    source = torch.Generator().manual_seed(1)
    probabilities = torch.where(torch.rand(N, 1, generator=source) < 0.5, uniform(), certain())
    with pytest.warns(LogWarning, match="left out"):
        learnable(log_of(probabilities, torch.rand(N, 2, generator=source)))


CONTEXTS = {
    "category": torch.arange(N) % 3,
    "bytes": (torch.arange(N) % 3).to(torch.uint8),
    "table": torch.rand(N, 5, generator=torch.Generator().manual_seed(2)),
    "constant column": torch.ones(N, 1),
    "image": torch.randint(256, (N, 4, 4), generator=torch.Generator().manual_seed(2)).to(torch.uint8),
}


@pytest.mark.parametrize("contexts", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("seed", range(10))
def test_an_honest_log_contradicts_nothing(contexts, seed):
    refuse_contradiction(log_of(uniform(), contexts, seed))
    source = torch.Generator().manual_seed(seed)
    refuse_contradiction(log_of((3 * torch.randn(N, 4, generator=source)).softmax(1), contexts, seed))


def test_probabilities_that_were_rounded_contradict_nothing():
    log = log_of(torch.tensor([0.0996, 0.8004, 0.05, 0.05]).expand(400_000, 4))
    refuse_contradiction(replace(log, probabilities=torch.tensor([0.1, 0.8, 0.05, 0.05]).expand(400_000, 4)))


def test_actions_that_are_not_uniform_as_stated_are_refused_with_numbers():
    log = replace(log_of(worlds.stubborn(torch.zeros(N))), probabilities=uniform())
    taken = int((log.actions == 2).sum())
    assert f"in all action 2 was taken {taken:,} times, where the probabilities sum to 1,000" in refusal(log)


@pytest.mark.parametrize("table", [False, True])
def test_actions_that_depend_on_the_context_as_stated_probabilities_do_not_are_refused(table):
    contexts = torch.arange(N) % 4
    # On the whole each action comes as often as any other.
    preferred = 0.5 * torch.nn.functional.one_hot(contexts, 4) + 0.5 * uniform()
    shown = torch.stack([contexts, contexts == 3], 1).float() if table else contexts
    said = refusal(replace(log_of(preferred, shown), probabilities=uniform()))
    assert ("weighted by column" if table else "in context") in said


def test_uniform_rounds_weigh_one_to_the_last_bit():
    for K in (2, 3, 7, 10):
        assert torch.equal(weights(log_of(uniform(K=K))), torch.ones(N))


def test_weights_make_up_for_the_policy():
    log = log_of(worlds.stubborn(torch.zeros(N)))
    found = weights(log)
    torch.testing.assert_close(found, torch.where(log.actions == 2, 0.25 / 0.775, 0.25 / 0.075))


def test_a_limit_on_the_weights_is_the_best_by_its_own_definition_and_is_stated():
    # One round in a hundred in which the other actions are all but impossible.
    rare = torch.tensor([1 - 3e-6, 1e-6, 1e-6, 1e-6])
    probabilities = torch.where(torch.arange(N)[:, None] % 100 == 0, rare, worlds.stubborn(torch.zeros(N)))
    limit, bias = best_limit(probabilities)
    least = probabilities.amin(1).double()

    def error(most: float) -> float:
        variance = (1 / least).clamp(max=most).mean() / N
        return float(((1 - most * least).clamp(min=0).mean().square() + variance).sqrt())

    assert limit == pytest.approx(1 / 0.075)
    assert bias == pytest.approx(0.01, rel=1e-3)
    assert error(limit) < 0.5 * error(1e6)
    log = log_of(probabilities)
    with pytest.warns(LogWarning, match=r"limited to 13.33.*understated by up to 0.01"):
        assert weights(log).max() <= limit / 4


def test_where_a_limit_would_hardly_help_there_is_none():
    assert best_limit(worlds.stubborn(torch.zeros(N))) == (math.inf, 0.0)
    assert best_limit(worlds.hardening(torch.arange(N) % 3)) == (math.inf, 0.0)
