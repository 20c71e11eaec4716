"""The progressive loop and who is compared in it: tacit, a learner that sees the reward, uniform choice."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.environments.finite import FiniteEnvironment, FiniteInstance
from tacit.errors import InvalidInputError
from tacit.evaluation.progressive import Curve, play
from tacit.evaluation.sighted import play_sighted
from tacit.evaluation.uniform import play_uniform

EXPLORE, ROUNDS, BATCH = 40, 400, 20


@pytest.fixture
def instance() -> FiniteInstance:
    """Two contexts, three actions, one of them always right; feedback says which, and one context reverses it."""
    f = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    phi = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    often = torch.tensor([0.5, 0.5], dtype=torch.float64)
    return FiniteInstance(often, f, phi, torch.stack([1 - phi, phi], 1), alpha=1.0, theta=1.0)


@pytest.fixture
def environment(instance) -> FiniteEnvironment:
    return FiniteEnvironment(instance, seed=0)


def models(instance: FiniteInstance) -> tacit.FiniteClasses:
    """The truth about feedback, and rewards that are right or wrong about where the best action is."""
    return tacit.FiniteClasses(torch.stack([instance.f.roll(1, -1), instance.f]), instance.phi[None])


def learner(instance: FiniteInstance) -> tacit.OnPolicy:
    problem = models(instance).problem
    return tacit.OnPolicy(3, problem.context, problem.feedback, explore=EXPLORE, models=models(instance), seed=1)


def test_uniform_rounds_count_as_chance_and_later_ones_as_they_were(instance, environment):
    played = play(environment, learner(instance), ROUNDS, BATCH)
    means = played.curve.hidden_means()
    assert torch.equal(played.curve.rounds(), torch.arange(BATCH, ROUNDS + 1, BATCH))
    assert means[: EXPLORE // BATCH].tolist() == pytest.approx([1 / 3] * (EXPLORE // BATCH))
    assert means[-5:].mean() > 0.9
    assert played.progressive == pytest.approx(float(means.mean()))
    assert played.test == 1.0


def test_decoded_rewards_are_missing_only_while_exploring(instance, environment):
    decoded = play(environment, learner(instance), ROUNDS, BATCH).curve.decoded_means()
    assert decoded.isnan().tolist() == [True] * (EXPLORE // BATCH) + [False] * ((ROUNDS - EXPLORE) // BATCH)


def test_where_feedback_tells_all_seeing_the_reward_is_no_advantage(instance, environment):
    blind = play(environment, learner(instance), ROUNDS, BATCH)
    sighted = play_sighted(environment, EXPLORE, models(instance), ROUNDS, BATCH, seed=1)
    assert torch.equal(sighted.curve.hidden_means(), blind.curve.hidden_means())
    assert (sighted.progressive, sighted.test) == (blind.progressive, blind.test)
    assert bool(sighted.curve.decoded_means().isnan().all())


def test_a_learner_that_never_leaves_exploration_scores_chance(instance, environment):
    played = play(environment, learner(instance), EXPLORE // 2, BATCH)
    assert (played.progressive, played.test) == (pytest.approx(1 / 3), 1 / 3)


def test_uniform_choice_gets_what_chance_gives(environment):
    played = play_uniform(environment, 3_000, 100)
    assert played.progressive == pytest.approx(1 / 3, abs=0.035)  # four standard errors
    assert play_uniform(environment, 3_000, 100).progressive == played.progressive
    assert play_uniform(environment, 3_000, 100, seed=1).progressive != played.progressive


def test_progress_is_heard_and_adds_up(instance, environment):
    heard: list[int] = []
    play(environment, learner(instance), 50, BATCH, heard.append)
    play_sighted(environment, EXPLORE, models(instance), 50, BATCH, advance=heard.append)
    play_uniform(environment, 50, BATCH, advance=heard.append)
    assert heard == [20, 20, 10] * 3


def test_batches_weigh_by_their_size():
    curve = Curve()
    curve.add(torch.ones(3), torch.ones(3))
    curve.add(torch.zeros(1), torch.ones(1))
    assert curve.progressive() == 0.75


def test_a_pass_needs_rounds(instance, environment):
    with pytest.raises(InvalidInputError, match="at least"):
        play(environment, learner(instance), 0, BATCH)
