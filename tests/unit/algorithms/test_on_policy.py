"""Algorithm 2: explore, learn to decode, and from then on prefer what looks best."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.algorithms import ledger, theory
from tacit.errors import InvalidInputError, NotFittedError
from tacit.health import sample
from tacit.inverse import InverseTraining
from tacit.oracles.vovk import regret_bound
from tests import worlds

EXPLORE = 400
BRIEF = InverseTraining(contrast_steps=0, steps=4)
MODELS = {"finite": worlds.classes(), "networks": worlds.networks()}


def learner(**settings) -> tacit.OnPolicy:
    return worlds.on_policy(worlds.finite(), worlds.classes(), **{"explore": EXPLORE, **settings})


@pytest.mark.parametrize("batch", [1, 40, 150])
def test_it_explores_until_as_many_rounds_as_asked_for_have_had_their_feedback(batch):
    acting = learner()
    for arrival in worlds.finite().stream(600, batch):
        explored = acting.exploring
        decision = acting.choose(arrival.contexts)
        uniform = bool((decision.probabilities == 0.25).all())
        assert explored is uniform is (int(decision.ids[0]) < EXPLORE)
        decoded = acting.learn(decision, arrival.react(decision.actions)[0])
        assert decoded.isnan().tolist() == [explored] * len(decision)


@pytest.mark.parametrize(
    ("schedule", "gamma"),
    [
        (None, lambda t: (4 * t) ** 0.5),
        (tacit.SquareRoot(3.0), lambda t: 3 * (4 * t) ** 0.5),
        (tacit.Constant(7.0), lambda t: 7.0),
    ],
)
def test_probabilities_are_those_of_inverse_gap_weighting_with_the_gamma_of_each_round(schedule, gamma):
    acting = learner(schedule=schedule)
    worlds.play(acting, worlds.finite(), 450)
    decision = acting.choose([0, 1, 2, 2])
    for row, t in enumerate(range(451, 455)):
        values = acting._oracle.predict(decision.contexts[[row]])[0].tolist()
        best = max(range(4), key=values.__getitem__)
        expected = [1 / (4 + gamma(t) * (values[best] - value)) for value in values]
        expected[best] = 1 - sum(expected[:best] + expected[best + 1 :])
        assert decision.probabilities[row].tolist() == pytest.approx(expected, rel=1e-5)


def test_late_feedback_to_an_exploration_round_is_decoded_and_learned_from():
    acting = learner()
    arrival = next(worlds.finite().stream(EXPLORE + 20, EXPLORE + 20))
    decision = acting.choose(arrival.contexts)
    feedback, _ = arrival.react(decision.actions)
    acting.learn(decision[:EXPLORE], feedback[:EXPLORE])
    before = acting._oracle.tensors()["log_weights"]
    assert not acting.learn(decision[EXPLORE:], feedback[EXPLORE:]).isnan().any()
    assert not torch.equal(acting._oracle.tensors()["log_weights"], before)


@pytest.mark.parametrize("models", [MODELS["finite"], worlds.networks(BRIEF)], ids=MODELS)
def test_where_feedback_says_nothing_it_warns_where_it_was_called_and_goes_on_exploring(models):
    acting = worlds.on_policy(worlds.finite(), models, explore=100)
    with pytest.warns(tacit.DecoderWarning, match="does not tell which action was taken") as warned:
        worlds.play(acting, worlds.Noise(worlds.finite()), 240, batch=20)
    # At 100 rounds, then at half as many again, then again.
    assert ["after 100 ", "after 160 ", "after 240 "] == [str(warning.message)[:10] for warning in warned]
    assert {warning.filename for warning in warned} == {worlds.__file__}
    assert acting.exploring
    assert (acting.choose([0, 1]).probabilities == 0.25).all()
    with pytest.raises(NotFittedError):
        acting.greedy([0])


def test_it_recovers_when_feedback_starts_to_say_something():
    acting = learner(explore=100)
    with pytest.warns(tacit.DecoderWarning):
        worlds.play(acting, worlds.Noise(worlds.finite()), 100)
    with pytest.warns(tacit.DecoderWarning) as warned:
        worlds.play(acting, worlds.finite(), 1_500)
    # Only the latest rounds count, so it does not take for ever.
    assert len(warned) < 5
    assert acting.greedy([0, 1, 2]).tolist() == list(worlds.BEST)


def test_a_decoder_that_reads_no_reward_at_all_is_not_acted_on():
    # Posteriors go up to 0.9 here, and a reward is read from 0.95 on.
    acting = learner(decoder=tacit.Decoder(1.0, 0.05))
    said = r"none of 400 rounds is decoded as rewarded: the ramp starts at 0\.95"
    with pytest.warns(tacit.DecoderWarning, match=said):
        worlds.play(acting, worlds.finite(), EXPLORE)
    assert acting.fit_quality.better_than_chance
    assert acting.exploring


def test_a_warning_turned_into_an_error_loses_no_feedback():
    acting = learner(explore=50)
    arrival = next(worlds.Noise(worlds.finite()).stream(50, 50))
    decision = acting.choose(arrival.contexts)
    feedback, _ = arrival.react(decision.actions)
    # Warnings are errors in these tests.
    with pytest.raises(tacit.DecoderWarning):
        acting.learn(decision, feedback)
    acting.learn(decision, feedback)
    assert acting._store.rounds().feedback.tolist() == feedback.tolist()


def test_a_horizon_sets_exploration_and_gamma_by_the_theorem():
    classes = worlds.classes()
    sizes = len(classes.f) * len(classes.phi), len(classes.f)
    horizon = tacit.Horizon(10**6, *sizes)
    acting = learner(explore=horizon)
    sigma = acting.decoder.sigma
    gamma = theory.on_policy_gamma(10**6, 4, sigma, sizes[0], regret_bound(sizes[1]))
    assert acting.schedule == tacit.Constant(gamma)
    assert acting.explore == theory.on_policy_rounds(10**6, 4, sigma, sizes[0], gamma)
    assert learner(explore=horizon, schedule=tacit.SquareRoot()).schedule == tacit.SquareRoot()


def test_a_horizon_that_exploration_would_outlast_is_refused():
    with pytest.raises(InvalidInputError, match="explore: the theory asks for"):
        learner(explore=tacit.Horizon(100, 128, 8))


@pytest.mark.parametrize("schedule", [1.0, "square root"])
def test_a_schedule_is_a_schedule(schedule):
    with pytest.raises(InvalidInputError, match="schedule"):
        learner(schedule=schedule)


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
def test_what_it_holds_does_not_grow_with_the_rounds(models, monkeypatch):
    monkeypatch.setattr(ledger, "WINDOW", 512)
    monkeypatch.setattr(sample, "LATEST", 256)
    acting = worlds.on_policy(worlds.finite(), models, explore=800)
    worlds.play(acting, worlds.finite(), 800)
    held = []
    for _ in range(3):
        worlds.play(acting, worlds.finite(), 900)
        held.append(sum(tensor.nbytes for part in acting.parts().values() for tensor in part.values()))
    assert held == held[:1] * 3
