"""The inverse model as a network: it learns, it stops in time, and it owns up when there was nothing to learn."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import tacit
from tacit.decoder import posterior
from tacit.errors import CorruptFileError, InvalidInputError, NotFittedError
from tacit.inverse import InverseTraining, NetworkInverse
from tacit.inverse import network as module
from tacit.seeding import generator
from tests import worlds

BRIEF = InverseTraining(contrast_steps=0, steps=8)


def model(space=None, training: InverseTraining = worlds.INVERSE, seed: int = 0) -> NetworkInverse:
    return NetworkInverse(space or tacit.Category(3), tacit.Category(3), 4, training, generator(seed, "test"))


@pytest.fixture(scope="module")
def log() -> tacit.Interactions:
    return worlds.uniform_log(worlds.finite(), 1_500)


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("optimiser", ["adamw", "cocob"])
def test_it_comes_near_the_true_posterior(log, loss, optimiser):
    fitted = model(training=replace(worlds.INVERSE, loss=loss, optimiser=optimiser))
    fit = fitted.fit(log)
    assert fit.better_than_chance
    assert fit.chance == pytest.approx(0.75 if loss == "squared" else math.log(4))

    world = worlds.instance()
    truth = posterior(world.f[log.contexts], world.phi[log.contexts, log.feedback])
    missed = (fitted.posterior(log.contexts, log.feedback) - truth).square().sum(1).mean()
    # A model that answers 1/K always misses all of it.
    assert missed < 0.2 * (0.25 - truth).square().sum(1).mean()


def test_it_learns_from_rows_of_numbers():
    environment = worlds.signs()
    fitted = NetworkInverse(tacit.Table(4), environment.problem.feedback, 4, worlds.INVERSE, generator(0, "test"))
    assert fitted.fit(worlds.uniform_log(environment, 1_500)).better_than_chance


@pytest.mark.parametrize("rounds", [100, 1_500, 6_000])
def test_a_share_of_the_rounds_is_kept_back_to_score_on(log, rounds):
    many = tacit.Interactions.concatenate([log] * 4)[slice(rounds)]
    fit = model(training=InverseTraining(contrast_steps=0, steps=1, batch=1_000)).fit(many)
    assert fit.held_out
    assert module.LEAST_SHARE * rounds <= fit.rounds <= module.MOST_SHARE * rounds


def test_with_rounds_to_test_on_none_is_kept_back_and_none_of_those_is_learned_from(log, monkeypatch):
    train, test = log[slice(900)], log[slice(900, None)]
    given = []
    attempt = NetworkInverse._attempt
    monkeypatch.setattr(NetworkInverse, "_attempt", lambda self, *both: given.append(both) or attempt(self, *both))
    fit = model().fit(train, test)
    assert (fit.rounds, fit.held_out) == (600, True)
    ((learned, scored),) = given
    assert torch.equal(learned.feedback, train.feedback)
    assert torch.equal(scored.feedback, test.feedback)
    assert fit.better_than_chance


def test_the_quality_on_rounds_to_test_on_is_that_of_the_posterior_there(log):
    fitted, test = model(), log[slice(900, None)]
    fit = fitted.fit(log[slice(900)], test)
    h = fitted.posterior(test.contexts, test.feedback)
    losses = (h - torch.nn.functional.one_hot(test.actions, 4)).square().sum(1)
    assert fit.loss == pytest.approx(float(losses.mean()), abs=1e-6)
    assert fit.error == pytest.approx(float(losses.std()) / 600**0.5, rel=1e-4)


@pytest.mark.parametrize("column", ["contexts", "feedback"])
def test_rounds_to_test_on_are_checked_as_well(log, column):
    wrong = replace(log, **{column: getattr(log, column) + 1})
    with pytest.raises(InvalidInputError) as refusal:
        model().fit(log, wrong)
    assert refusal.value.argument == column


def test_of_rounds_that_are_worth_less_more_are_kept_back(log):
    many = tacit.Interactions.concatenate([log] * 4)
    training = InverseTraining(contrast_steps=0, steps=1, batch=1_000)
    uniform, biased = (
        model(training=training).fit(rounds).rounds
        for rounds in (many, worlds.log_of(worlds.finite(), worlds.stubborn, len(many)))
    )
    # Those of 0.3 uniform rounds each would be 2,000, more than the share allows.
    assert (uniform, biased) == (600, module.MOST_SHARE * len(many))


@pytest.mark.parametrize("policy", ["uniform", "stubborn"])
def test_feedback_that_says_nothing_is_not_believed(log, policy):
    if policy == "stubborn":
        log = worlds.log_of(worlds.finite(), worlds.stubborn, 1_500)
    # Fixed seeds; the rate is about one in a hundred.
    training = replace(worlds.INVERSE, steps=60)
    fits = [model(training=training, seed=seed).fit(worlds.noise(log, seed)) for seed in range(3)]
    assert not any(fit.better_than_chance for fit in fits)


@pytest.mark.parametrize("rounds", [1, 2, 3, 10])
def test_a_handful_of_rounds_is_no_reason_to_believe(log, rounds):
    assert not model(training=replace(BRIEF, steps=2)).fit(log[slice(rounds)]).better_than_chance


def test_it_is_left_as_in_its_best_epoch_and_not_as_in_its_last(log, monkeypatch):
    scores = []
    score = NetworkInverse._score

    def watched(self, network, rounds):
        scores.append(score(self, network, rounds))
        return scores[-1]

    monkeypatch.setattr(NetworkInverse, "_score", watched)
    # So few rounds are learned by heart, which helps with others for a while only.
    training = InverseTraining(contrast_steps=0, steps=200, interval=1, patience=200, batch=8)
    fit = model(training=training).fit(worlds.noise(log[slice(60)]))
    assert fit.loss == min(score.loss for score in scores)
    assert fit.loss < scores[-2].loss


def test_it_stops_when_patience_is_over(log, monkeypatch):
    epochs = []
    monkeypatch.setattr(
        module.NetworkInverse, "_score",
        lambda self, network, rounds: epochs.append(1) or tacit.Fit(1.0, 0.75, 0.1, len(rounds), held_out=True),
    )  # fmt: skip
    model(training=InverseTraining(contrast_steps=0, steps=500, interval=1, patience=2)).fit(log)
    # Before the first epoch, after each of two without a better one, and once more in the end; for each attempt.
    assert len(epochs) == module.ATTEMPTS * (1 + 2 + 1)


def test_it_tries_again_while_it_is_no_better_than_chance_and_keeps_the_best(log, monkeypatch):
    losses = iter([0.8, 0.76, 0.78])
    networks = []

    def attempt(self, train, test):
        networks.append(self._fresh())
        return networks[-1], tacit.Fit(next(losses), 0.75, 0.1, len(test), held_out=True)

    monkeypatch.setattr(NetworkInverse, "_attempt", attempt)
    fitted = model()
    assert fitted.fit(log).loss == 0.76
    assert len(networks) == module.ATTEMPTS
    kept = networks[1].state_dict()
    assert all(torch.equal(value, kept[name]) for name, value in fitted.tensors().items())


def test_its_encoders_are_those_of_the_network_that_was_kept(log):
    fitted = model(training=BRIEF)
    assert fitted.encoders is fitted.context_encoder is None
    fitted.fit(log)
    tensors = fitted.tensors()
    for name, encoder in zip(("context", "feedback"), fitted.encoders, strict=True):
        assert all(torch.equal(value, tensors[f"{name}.{key}"]) for key, value in encoder.state_dict().items())
    assert fitted.context_encoder is fitted.encoders[0]


def test_the_loss_counts_only_after_the_steps_of_contrast(log, monkeypatch):
    shares = []

    def watched(function):
        def call(*given):
            if len(given) > 2:  # a step in training, not an answer
                shares.append(float(given[4]))
            return function(*given)

        return call

    monkeypatch.setattr(module, "Replayed", watched)
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    # Six steps an epoch: training ends with the first epoch that has them all.
    model(training=InverseTraining(contrast_steps=10, steps=12, batch=150)).fit(log[slice(900)], log[slice(900, None)])
    assert shares == [0.0] * 10 + [1.0] * 14


def test_a_second_fit_starts_afresh(log):
    fitted = model()
    fitted.fit(log)
    assert not fitted.fit(worlds.noise(log)).better_than_chance


def test_it_forgets_what_it_knew_when_it_is_restored_to_before_it_was_fitted(log):
    fitted = model(training=BRIEF)
    fitted.fit(log)
    fitted.restore(model().tensors())
    with pytest.raises(NotFittedError):
        fitted.posterior(log.contexts, log.feedback)


def test_the_log_of_another_policy_leads_to_the_posterior_under_uniform_draws():
    biased = worlds.log_of(worlds.finite(), worlds.stubborn, 6_000)
    fitted = model()
    assert fitted.fit(biased).better_than_chance
    world = worlds.instance()
    contexts, feedback = torch.cartesian_prod(torch.arange(3), torch.arange(3)).unbind(1)
    truth = posterior(world.f[contexts], world.phi[contexts, feedback])
    found = fitted.posterior(contexts, feedback)
    # The posterior under the policy itself leans towards action 2 and is far away.
    own = posterior(world.f[contexts], world.phi[contexts, feedback], worlds.stubborn(contexts).double())
    assert (found - truth).square().sum(1).mean() < 0.2 * (own - truth).square().sum(1).mean()


@pytest.mark.parametrize("loss", ["squared", "log", None])
def test_chance_is_what_the_probabilities_alone_foretell(log, loss):
    biased = worlds.log_of(worlds.finite(), worlds.stubborn, 3_000)
    fit = model(training=replace(BRIEF, loss=loss)).fit(biased)
    p = worlds.stubborn(torch.zeros(1))[0]
    expected = 1 - p.square().sum() if loss == "squared" else -(p * p.log()).sum()
    # An average over some 900 rounds.
    assert fit.chance == pytest.approx(float(expected), abs=0.1)
    assert fit.worth == pytest.approx(0.3 * fit.rounds)


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_uniform_rounds_are_learned_from_as_if_there_were_no_probabilities_to_the_last_bit(log, loss, monkeypatch):
    training = replace(worlds.INVERSE, loss=loss, steps=60)
    fitted, plain = model(training=training), model(training=training)
    fit = fitted.fit(log)
    monkeypatch.setattr(module, "leanings", lambda probabilities: torch.zeros(probabilities.shape))
    assert plain.fit(log) == fit
    assert all(torch.equal(value, plain.tensors()[name]) for name, value in fitted.tensors().items())


def test_without_a_loss_uniform_rounds_are_fitted_by_squared_loss_and_others_by_log_loss(log):
    biased = worlds.log_of(worlds.finite(), worlds.stubborn, 1_500)
    for rounds, loss in ((log, "squared"), (biased, "log")):
        chosen, told = (model(training=replace(BRIEF, loss=name)) for name in (None, loss))
        assert chosen.fit(rounds) == told.fit(rounds)


@pytest.mark.parametrize("column", ["contexts", "feedback"])
def test_values_outside_of_their_kind_are_refused(log, column):
    with pytest.raises(InvalidInputError) as refusal:
        model().fit(replace(log, **{column: getattr(log, column) + 1}))
    assert refusal.value.argument == column


def test_weights_of_another_network_are_not_restored(log):
    other = model(tacit.Category(5), BRIEF)
    other.fit(log)
    with pytest.raises(CorruptFileError, match="inverse model"):
        model().restore(other.tensors())


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": 0}, {"batch": 0}, {"patience": 0}, {"interval": 0}, {"starts": 0}, {"contrast_steps": -1},
        {"contrast": -0.1}, {"contrast": math.nan}, {"contrast": math.inf}, {"contrast": 0}, {"average": 1},
        {"average": -0.1}, {"dropout": 1}, {"dropout": True}, {"loss": "huber"}, {"optimiser": "adam"},
        {"optimiser": None},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(InvalidInputError, match="InverseTraining"):
        InverseTraining(**settings)
