"""Two views of one reward: what a refinement may do, when there is one, and what it must never do."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import tacit
from tacit.algorithms import two_view
from tacit.algorithms.two_view import Refinement, TwoView
from tacit.environments.finite import FiniteEnvironment
from tacit.errors import NotFittedError
from tacit.oracles import VovkOracle
from tests import worlds
from tests.unit.algorithms.certain import (
    ALWAYS_GOOD,
    CERTAIN,
    EVERY,
    EXPLORE,
    TRUTH,
    TURNED,
    UNSURE,
    decoded_by_h,
    fixed,
    learner,
    numbers_of,
    play,
    started,
    unsure,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_where_rewards_are_certain_every_one_is_decoded_as_it_was(seed):
    acting, world = learner(seed=seed), FiniteEnvironment(CERTAIN, seed)
    for arrival in world.stream(4 * EXPLORE, 50):
        exploring = acting.exploring
        decision = acting.choose(arrival.contexts)
        feedback, hidden = arrival.react(decision.actions)
        decoded = acting.learn(decision, feedback)
        if not exploring:
            torch.testing.assert_close(decoded.double(), hidden.values.double(), atol=1e-6, rtol=0)
    assert acting.refinement.rounds == 4 * EXPLORE
    assert acting.greedy([0, 1, 2]).tolist() == list(worlds.BEST)
    # h is exact here, and rounding is no contradiction: a warning would have failed this.
    assert abs(acting.refinement.excess) < two_view.NEGLIGIBLE


@pytest.mark.parametrize("instance", [CERTAIN, worlds.instance()], ids=["certain", "stochastic"])
def test_a_refinement_finds_what_feedback_means(instance):
    acting = learner(instance)
    play(acting, 2 * EXPLORE, instance)
    assert acting.refinement.rounds == 2 * EXPLORE
    assert torch.equal(acting._reward.predict(*EVERY), TRUTH)


def test_a_refined_decoder_is_surer_than_an_unsure_one_and_right():
    acting = started()
    assert numbers_of(play(acting, EXPLORE - 50)) == UNSURE
    play(acting, 50)
    assert acting.refinement.kept
    assert not acting.refinement.contradicts
    for arrival in FiniteEnvironment(CERTAIN, 1).stream(400, 50):
        decision = acting.choose(arrival.contexts)
        feedback, hidden = arrival.react(decision.actions)
        assert torch.equal(acting.learn(decision, feedback).double(), hidden.values.double())


def test_refined_it_reads_the_lucky_reward_of_an_action_that_is_not_the_best():
    """h cannot: it decodes a lower bound, which is the reward for the best action alone."""
    world = worlds.instance()
    acting = learner(world)
    play(acting, EXPLORE, world)
    unsure(acting, 0.7)
    play(acting, EXPLORE, world)
    assert acting.refinement.kept
    contexts = torch.arange(3).repeat(200)
    arrival = acting.choose(contexts)
    lucky = world.phi.argmax(1)[contexts]  # some feedback that means reward 1
    worse = arrival.actions != torch.tensor(worlds.BEST)[contexts]
    assert worse.any()
    rounds = tacit.Interactions(arrival.contexts, arrival.actions, arrival.probabilities, lucky)
    assert not decoded_by_h(acting, rounds)[worse].any()
    assert acting.learn(arrival, lucky).tolist() == [1.0] * 600


def test_with_a_refinement_all_that_was_acted_on_is_decoded_and_learned_again():
    acting = started()
    play(acting, EXPLORE)
    assert acting.refinement.kept
    rounds, decoded = acting._memory.rounds()
    assert torch.equal(decoded, CERTAIN.phi[rounds.contexts, rounds.feedback])
    fresh = VovkOracle(acting.models.f)
    for part in range(0, len(rounds), 100):
        rows = slice(part, part + 100)
        fresh.update(rounds.contexts[rows], rounds.actions[rows], decoded[rows])
    torch.testing.assert_close(acting._oracle.predict(torch.arange(3)), fresh.predict(torch.arange(3)))


# -- what must not be used ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "reading"), [(0, ALWAYS_GOOD), (1, TURNED)], ids=["all is good", "turned round"])
def test_a_reading_that_is_far_off_is_caught_not_used_and_warned_of(monkeypatch, number, reading):
    acting = started()
    assert torch.equal(acting.models.phi[number], reading)
    fixed(monkeypatch, number)
    with pytest.warns(tacit.DecoderWarning, match=r"refined after 800 rounds, dropped: \+1\.\d+ in loss") as warned:
        play(acting, EXPLORE)
    assert [warning.filename for warning in warned] == [worlds.__file__]
    assert acting.refinement.contradicts
    assert not acting.refinement.kept
    with pytest.raises(NotFittedError):  # the reading is forgotten, too
        acting._reward.predict(*EVERY)
    rounds, decoded = acting._memory.rounds()
    assert torch.equal(decoded, decoded_by_h(acting, rounds))
    assert numbers_of(play(acting, 100))[-1] == UNSURE[-1]
    assert acting.greedy([0, 1, 2]).tolist() == list(worlds.BEST)


def test_after_a_drop_rewards_are_decoded_as_before_the_first_refinement(monkeypatch):
    acting = started()
    fixed(monkeypatch, len(acting.models.phi) - 1, 0)
    play(acting, EXPLORE)
    assert acting.refinement.kept
    assert float(play(acting, 200).amax()) == 1.0
    with pytest.warns(tacit.DecoderWarning, match="dropped"):
        play(acting, 2 * EXPLORE - 200)
    rounds, decoded = acting._memory.rounds()
    assert torch.equal(decoded, decoded_by_h(acting, rounds))
    torch.testing.assert_close(decoded.amax(), torch.tensor(0.7).double())


def test_a_refinement_that_is_worse_by_chance_is_dropped_without_a_word_and_taught_on(monkeypatch):
    acting = started()
    monkeypatch.setattr(TwoView, "_compared", lambda self: (0.02, 0.01))
    play(acting, EXPLORE)
    assert not acting.refinement.kept
    assert torch.equal(acting._reward.predict(*EVERY), TRUTH)
    rounds, decoded = acting._memory.rounds()
    assert torch.equal(decoded, decoded_by_h(acting, rounds))


@pytest.mark.parametrize(
    ("excess", "error", "kept", "contradicts"),
    [
        (-0.1, 0.01, True, False), (0.0, 0.0, True, False), (0.02, 0.01, False, False), (0.031, 0.01, False, True),
        (0.0009, 0.0, False, False), (0.0011, 0.0, False, True),
    ],
)  # fmt: skip
def test_a_refinement_is_kept_if_it_is_no_worse_and_contradicts_beyond_chance(excess, error, kept, contradicts):
    found = Refinement(1_600, 1_000, 500, excess, error)
    assert (found.kept, found.contradicts) == (kept, contradicts)
    assert f"refined after 1,600 rounds, {'kept' if kept else 'dropped'}: {excess:+.4f} in loss" in str(found)
    assert "from 1,000 good and 500 bad rounds" in str(found)


def test_the_comparison_is_that_of_squared_losses_on_the_anchor():
    acting = started()
    play(acting, EXPLORE)
    excess, error = acting._compared()
    anchor = acting._anchor
    losses = []
    for x, y, a in zip(anchor.contexts, anchor.feedback, anchor.actions, strict=True):
        f = acting._oracle.predict(x[None])[0].clamp(1e-3, 1 - 1e-3)
        good = f if CERTAIN.phi[x, y] else 1 - f
        mine, hers = good / good.sum(), acting._inverse.posterior(x[None], y[None])[0]
        taken = torch.nn.functional.one_hot(a, 4)
        losses.append(float(((mine - taken) ** 2).sum() - ((hers - taken) ** 2).sum()))
    assert excess == pytest.approx(sum(losses) / len(losses))
    assert error == pytest.approx(float(torch.tensor(losses).double().std()) / len(losses) ** 0.5)


def test_a_warning_turned_into_an_error_leaves_nothing_half_done(monkeypatch):
    acting = started()
    fixed(monkeypatch, len(acting.models.phi) - 1, 0)
    play(acting, 3 * EXPLORE - 50)
    assert acting.refinement.kept
    with pytest.raises(tacit.DecoderWarning):  # warnings are errors in these tests
        play(acting, 50)
    rounds, decoded = acting._memory.rounds()
    assert torch.equal(decoded, decoded_by_h(acting, rounds))
    fresh = VovkOracle(acting.models.f)
    fresh.relearn(rounds.contexts, rounds.actions, decoded)
    assert torch.equal(acting._oracle.tensors()["log_weights"], fresh.tensors()["log_weights"])


def test_without_examples_of_both_kinds_there_is_no_refinement(monkeypatch):
    monkeypatch.setattr(two_view, "FEWEST", 10_000)
    acting = started()
    play(acting, 3 * EXPLORE)
    assert acting.refinement is None
    assert numbers_of(play(acting, 200))[-1] == UNSURE[-1]




# -- when --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def refined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many rounds there was a refinement."""
    found: list[int] = []
    refine = TwoView._refine
    monkeypatch.setattr(TwoView, "_refine", lambda self: found.append(self._seen) or refine(self))
    return found


@pytest.mark.parametrize("batch", [1, 50, 80])
def test_it_refines_after_two_four_eight_times_the_uniform_rounds(refined, batch):
    play(learner(), 8 * EXPLORE, batch=batch)
    assert refined == [2 * EXPLORE, 4 * EXPLORE, 8 * EXPLORE]


@pytest.mark.parametrize("batch", [7, 130, 333, 1_500])
def test_the_number_of_refinements_grows_with_the_logarithm_of_the_rounds(refined, batch):
    acting = learner()
    play(acting, 12_000, batch=batch)
    assert 1 <= len(refined) <= math.log2(12_000 / acting.explored) + 1
    assert all(later >= 2 * earlier for earlier, later in pairwise(refined))


def test_the_refinements_after_a_longer_exploration_are_counted_from_its_end(refined):
    acting = learner(explore=100)  # an anchor of ten rounds is too small to trust
    with pytest.warns(tacit.DecoderWarning, match="does not tell which action was taken"):
        play(acting, 3_500)
    assert 300 <= acting.explored < 500
    assert refined == [2 * acting.explored, 4 * acting.explored, 8 * acting.explored]


@pytest.mark.parametrize("seed", range(2))
def test_late_unordered_and_repeated_feedback_is_learned_once_and_teaches_the_same(refined, seed):
    acting, waiting = learner(seed=seed), []
    order = torch.Generator().manual_seed(seed)
    for arrival in FiniteEnvironment(CERTAIN, seed).stream(3_600, 50):
        decision = acting.choose(arrival.contexts)
        feedback, hidden = arrival.react(decision.actions)
        waiting.append((decision, feedback, hidden.values))
        if len(waiting) > 6:
            decision, feedback, rewards = waiting.pop(int(torch.randint(6, (), generator=order)))
            rows = torch.randperm(50, generator=order).numpy()
            for part in (rows[:20], rows[20:], rows[10:30]):
                decoded = acting.learn(decision[part], feedback[part])
                known = ~decoded.isnan()
                torch.testing.assert_close(decoded[known].double(), rewards[part][known].double(), atol=1e-6, rtol=0)
            assert decoded.isnan().all()  # all of the last part had been told before
    assert acting._seen == 3_600 - 6 * 50
    assert [rounds // EXPLORE for rounds in refined] == [2, 4, 8]
    assert acting.greedy([0, 1, 2]).tolist() == list(worlds.BEST)


def test_exploration_is_uniform_and_then_inverse_gap_weighting_of_its_own_strength():
    acting = learner(schedule=None)
    for arrival in FiniteEnvironment(CERTAIN, 0).stream(EXPLORE, 50):
        decision = acting.choose(arrival.contexts)
        assert bool((decision.probabilities == 0.25).all())
        assert acting.learn(decision, arrival.react(decision.actions)[0]).isnan().all()
    decision = acting.choose([0, 1, 2])
    values = acting._oracle.predict(torch.arange(3))
    gamma = two_view.STRENGTH * (4 * torch.arange(EXPLORE + 1, EXPLORE + 4)).sqrt()
    expected = tacit.exploration.inverse_gap(values, gamma[:, None])
    torch.testing.assert_close(decision.probabilities, expected)
