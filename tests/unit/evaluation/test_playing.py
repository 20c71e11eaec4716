"""The progressive loop and who is compared in it: tacit, a learner that sees the reward, uniform choice."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit import interactions
from tacit.environments import Arrival, Environment, HeldOut
from tacit.environments.classification import Classification, FeedbackRule, Labelled, Neighbour, Signs
from tacit.environments.finite import FiniteEnvironment, FiniteInstance
from tacit.errors import InvalidInputError
from tacit.evaluation.progressive import Curve, play
from tacit.evaluation.sighted import play_sighted
from tacit.evaluation.uniform import play_uniform
from tests import worlds

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


def test_every_round_of_the_sighted_learner_counts_once(instance, environment):
    curve = play_sighted(environment, EXPLORE, models(instance), ROUNDS, BATCH).curve
    assert torch.equal(curve.rounds(), torch.arange(BATCH, ROUNDS + 1, BATCH))


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


# -- data of one's own is checked as it comes --------------------------------------------------------------------------


class Silence(FeedbackRule):
    """Somebody's own rule: minutes, and once in a while no number at all."""

    @property
    def space(self) -> tacit.Table:
        return tacit.Table(1)

    def feedback(self, labels: torch.Tensor, rewards: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        minutes = torch.rand(len(labels), 1, generator=source) + rewards[:, None]
        minutes[7] = torch.nan
        return minutes


class Own(Environment):
    """Somebody's own world: another one, in which a column is not what it should be in the third batch."""

    def __init__(self, column: str) -> None:
        self._world, self._column = worlds.signs(), column

    @property
    def problem(self):
        return self._world.problem

    @property
    def horizon(self) -> int | None:
        return None

    def stream(self, rounds: int, batch: int):
        for number, arrival in enumerate(self._world.stream(rounds, batch)):
            contexts = arrival.contexts.clone()
            if (number, self._column) == (2, "contexts"):
                contexts[5, 1] = torch.nan
            yield Arrival(contexts, lambda actions, n=number, react=arrival.react: self._spoilt(n, react(actions)))

    def held_out(self) -> HeldOut:
        return self._world.held_out()

    def _spoilt(self, number: int, reaction):
        feedback, hidden = reaction
        if (number, self._column) == (2, "feedback"):
            feedback[5] = 4
        return feedback, hidden


def test_feedback_of_somebodys_own_rule_that_is_not_a_number_is_refused():
    labels = torch.randint(4, (400,), generator=torch.Generator().manual_seed(0))
    people = Labelled(labels, labels, classes=4)
    world = Classification(people, people, tacit.Category(4), Silence(), seed=0)
    with pytest.raises(InvalidInputError, match=r"feedback: not a finite number .* in row 7"):
        play(world, worlds.on_policy(world, worlds.networks(), explore=200), 400, BATCH)


@pytest.mark.parametrize(
    ("column", "problem"),
    [("contexts", "contexts: not a finite number .* in row 5"), ("feedback", r"feedback: outside 0\.\.3 .* in row 5")],
)
def test_what_a_world_of_ones_own_shows_is_checked_batch_by_batch(column, problem):
    world = Own(column)
    with pytest.raises(InvalidInputError, match=problem):
        play(world, worlds.on_policy(world, worlds.networks(), explore=200), 400, BATCH)


def test_worlds_that_were_checked_as_a_whole_say_so_and_wait_for_no_check(instance, monkeypatch):
    rows = torch.arange(4.0)[:, None]
    examples = Labelled(rows, torch.arange(4), classes=4)
    made = [Classification(examples, examples, tacit.Table(1), rule, seed=0) for rule in (
        Neighbour(examples, tacit.Table(1)), Signs.personal(4, torch.Generator().manual_seed(0)),
    )]  # fmt: skip
    assert all(environment.checked for environment in (*made, FiniteEnvironment(instance, 0)))
    assert not Own("").checked
    left_out = []
    monkeypatch.setattr(Neighbour, "feedback", lambda *_: left_out.append(interactions._CHECKED_BEFORE.get()) or rows)
    play(made[0], worlds.on_policy(made[0], worlds.networks(), explore=200), 4, 4)
    assert left_out == [True]


def test_examples_that_are_shown_as_feedback_are_checked_as_a_whole():
    examples = Labelled(torch.tensor([[0.0], [torch.nan]]), torch.arange(2), classes=2)
    with pytest.raises(InvalidInputError, match=r"examples: not a finite number .* in row 1"):
        Neighbour(examples, tacit.Table(1))
