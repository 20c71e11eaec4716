"""Algorithm 1: explore, learn to decode from one half, the policy from the other, and keep to it."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

import tacit
from tacit.algorithms import theory
from tacit.errors import InvalidInputError, NotFittedError, UntrustworthyDecoderError
from tacit.inverse import InverseTraining
from tests import worlds

BRIEF = InverseTraining(contrast_steps=0, steps=4)
MODELS = {"finite": worlds.classes(), "networks": worlds.networks()}


def learner(models: tacit.Models = MODELS["finite"], **settings) -> tacit.OffPolicy:
    return worlds.off_policy(worlds.finite(), models, **{"explore": None, **settings})


@pytest.fixture(scope="module")
def log() -> tacit.Interactions:
    return worlds.uniform_log(worlds.finite(), 6_000)


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
def test_from_a_log_it_learns_the_best_policy_and_follows_it_without_exploring(log, models):
    fitted = learner(models)
    assert fitted.fit(log) is fitted
    assert not fitted.exploring
    assert fitted.fit_quality.better_than_chance
    decision = fitted.choose([0, 1, 2, 0])
    best = [*worlds.BEST, worlds.BEST[0]]
    assert decision.actions.tolist() == fitted.greedy([0, 1, 2, 0]).tolist() == best
    assert torch.equal(decision.probabilities, torch.nn.functional.one_hot(torch.tensor(best), 4).float())


def test_the_first_half_teaches_the_inverse_model_and_the_second_the_policy(log, monkeypatch):
    seen = {}
    fitted = learner()
    fit, maximise = type(fitted._inverse).fit, type(fitted._policies).maximise
    monkeypatch.setattr(type(fitted._inverse), "fit", lambda self, rounds: seen.update(fit=rounds) or fit(self, rounds))
    monkeypatch.setattr(
        type(fitted._policies), "maximise",
        lambda self, *given: seen.update(maximise=given[:3]) or maximise(self, *given),
    )  # fmt: skip
    fitted.fit(log)
    assert torch.equal(seen["fit"].feedback, log.feedback[:3_000])
    contexts, actions, decoded = seen["maximise"]
    assert torch.equal(contexts, log.contexts[3_000:])
    assert torch.equal(actions, log.actions[3_000:])
    assert torch.equal(decoded, fitted.decode(log[slice(3_000, None)]))


def test_live_it_explores_for_twice_as_many_rounds_as_asked_for():
    acting = learner(explore=200)
    decoded = worlds.play(acting, worlds.finite(), 500)
    assert decoded.isnan().tolist() == [True] * 400 + [False] * 100
    assert acting.greedy([0, 1, 2]).tolist() == list(worlds.BEST)


def test_the_policy_does_not_change_any_more_but_feedback_is_still_decoded(log):
    acting = learner(MODELS["networks"]).fit(log)
    before = {name: tensor.clone() for name, tensor in acting._policies.tensors().items()}
    assert not worlds.play(acting, worlds.finite(), 100).isnan().any()
    assert all(torch.equal(tensor, before[name]) for name, tensor in acting._policies.tensors().items())


def test_rewards_are_decoded_from_the_posterior_of_the_action_taken(log):
    fitted = learner().fit(log)
    posterior = fitted._inverse.posterior(log.contexts, log.feedback)
    assert torch.equal(fitted.decode(log), fitted.decoder.decode(posterior, log.actions))


def test_rounds_of_any_policy_are_decoded_alike(log):
    fitted = learner().fit(log)
    others = replace(log, probabilities=torch.tensor([0.7, 0.1, 0.1, 0.1]).expand(len(log), 4))
    assert torch.equal(fitted.decode(others), fitted.decode(log))


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("kind", [torch.int8, torch.int32])
def test_logged_actions_may_be_of_any_integer_type(log, models, kind):
    log = log[slice(2_000)]
    narrow = replace(log, actions=log.actions.to(kind))
    fitted = learner(models).fit(narrow)
    assert torch.equal(fitted.decode(narrow), fitted.decode(log))


@pytest.mark.parametrize("models", [MODELS["finite"], worlds.networks(BRIEF)], ids=MODELS)
def test_a_log_whose_feedback_says_nothing_is_refused(log, models):
    fitted = learner(models)
    with pytest.raises(UntrustworthyDecoderError, match="does not tell which action was taken"):
        fitted.fit(worlds.noise(log))
    assert fitted.exploring
    with pytest.raises(NotFittedError, match="fit"):
        fitted.choose([0])
    with pytest.raises(NotFittedError, match="fit"):
        fitted.greedy([0])
    with pytest.raises(NotFittedError, match="fit"):
        fitted.decode(log)


def test_a_decoder_that_reads_no_reward_at_all_is_refused(log):
    with pytest.raises(UntrustworthyDecoderError, match="none of 3000 rounds is decoded as rewarded"):
        learner(decoder=tacit.Decoder(1.0, 0.05)).fit(log)


def test_live_where_feedback_says_nothing_it_warns_where_it_was_called_and_goes_on_exploring():
    acting = learner(explore=50)
    with pytest.warns(tacit.DecoderWarning, match="after 100 uniform rounds") as warned:
        worlds.play(acting, worlds.Noise(worlds.finite()), 120)
    assert [warning.filename for warning in warned] == [worlds.__file__]
    assert (acting.choose([0]).probabilities == 0.25).all()


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("failing", ["_inverse", "_trusted", "_policies"])
@pytest.mark.parametrize("error", [UntrustworthyDecoderError("no"), InvalidInputError("no", "no"), KeyboardInterrupt()])
def test_a_log_that_fails_half_way_leaves_what_an_earlier_one_taught(log, monkeypatch, models, failing, error):
    fitted = learner(models).fit(log)
    quality, decoded, decision = fitted.fit_quality, fitted.decode(log), fitted.choose([0, 1, 2])
    before = copy.deepcopy(fitted.parts())
    scores = fitted._values(torch.arange(3))

    def learned_and_then(really):
        def fails(*arguments):
            really(*arguments)
            raise error

        return fails

    with monkeypatch.context() as patch:
        owner = fitted if failing == "_trusted" else getattr(fitted, failing)
        name = {"_inverse": "fit", "_trusted": "_trusted", "_policies": "maximise"}[failing]
        patch.setattr(owner, name, learned_and_then(getattr(owner, name)))
        with pytest.raises(type(error)):
            fitted.fit(worlds.uniform_log(worlds.finite(3), 3_000, seed=3))
    assert not fitted.exploring
    assert fitted.fit_quality == quality
    assert torch.equal(fitted.decode(log), decoded)
    assert torch.equal(fitted._values(torch.arange(3)), scores)
    assert fitted.choose([0, 1, 2]).actions.tolist() == list(worlds.BEST)
    after = fitted.parts()
    for part in ("inverse", "policies", "sample"):
        assert before[part].keys() == after[part].keys()
        assert all(torch.equal(value, after[part][name]) for name, value in before[part].items())
    assert not fitted.learn(decision, [0, 0, 0]).isnan().any()


def test_after_a_log_that_says_nothing_the_policy_of_an_earlier_one_is_followed(log):
    fitted = learner().fit(log)
    quality = fitted.fit_quality
    with pytest.raises(UntrustworthyDecoderError):
        fitted.fit(worlds.noise(log))
    assert fitted.fit_quality == quality
    assert fitted.greedy([0, 1, 2]).tolist() == list(worlds.BEST)


def test_fitted_again_it_is_as_fitted_once(log):
    other = worlds.uniform_log(worlds.finite(3), 3_000, seed=3)
    twice = learner().fit(other).fit(log)
    once = learner().fit(log)
    assert torch.equal(twice.decode(log), once.decode(log))
    assert torch.equal(twice._policies.tensors()["chosen"], once._policies.tensors()["chosen"])


@pytest.mark.parametrize("asked", ["fit", "decode"])
@pytest.mark.parametrize(
    ("column", "values", "argument"),
    [
        ("probabilities", torch.full((20, 5), 1 / 5), "probabilities"),
        ("probabilities", torch.full((20, 4), 0.3), "probabilities"),
        ("actions", torch.full((20,), 4), "actions"),
        ("actions", torch.full((20,), 1.0), "actions"),
        ("contexts", torch.full((20,), 3), "contexts"),
        ("contexts", torch.zeros(20, 2, dtype=torch.long), "contexts"),
        ("feedback", torch.full((20,), -1), "feedback"),
        ("feedback", torch.full((20,), torch.nan), "feedback"),
        ("feedback", torch.zeros(19, dtype=torch.long), "interactions"),
    ],
)
def test_a_log_that_does_not_fit_the_problem_is_refused_and_changes_nothing(log, asked, column, values, argument):
    fitted = learner().fit(log)
    before = fitted.decode(log)
    with pytest.raises(InvalidInputError) as refusal:
        getattr(fitted, asked)(replace(log[slice(20)], **{column: values}))
    assert refusal.value.argument == argument
    assert torch.equal(fitted.decode(log), before)


@pytest.mark.parametrize("policy", [worlds.stubborn, worlds.hardening])
@pytest.mark.parametrize("models", [MODELS["finite"], worlds.networks(InverseTraining())], ids=MODELS)
def test_from_the_log_of_another_policy_it_learns_the_best_policy(models, policy):
    fitted = learner(models).fit(worlds.log_of(worlds.finite(), policy, 24_000))
    assert fitted.greedy([0, 1, 2]).tolist() == list(worlds.BEST)


@pytest.mark.parametrize("policy", [worlds.stubborn, lambda contexts: torch.full((len(contexts), 4), 0.25)])
def test_decoded_rewards_count_for_more_the_less_likely_their_actions_were(policy, monkeypatch):
    seen = []
    fitted = learner()
    monkeypatch.setattr(type(fitted._policies), "maximise", lambda self, *rounds: seen.append(rounds))
    log = worlds.log_of(worlds.finite(), policy, 6_000)
    fitted.fit(log)
    half = log[slice(3_000, None)]
    taken = half.probabilities.gather(1, half.actions[:, None])[:, 0]
    assert torch.equal(seen[0][2], 0.25 / taken * fitted.decode(half))


def test_a_log_whose_probabilities_are_wrong_is_refused(log):
    with pytest.raises(InvalidInputError, match="the actions contradict them"):
        learner().fit(replace(log, probabilities=torch.tensor([0.7, 0.1, 0.1, 0.1]).expand(len(log), 4)))


def test_a_log_with_hardly_a_round_is_refused(log):
    with pytest.raises(InvalidInputError, match="7 rounds are too few for 4 actions"):
        learner().fit(log[slice(7)])


def test_without_exploration_it_waits_for_a_log():
    with pytest.raises(NotFittedError, match="fit"):
        learner().choose([0])


def test_a_horizon_sets_exploration_by_the_theorem():
    acting = learner(explore=tacit.Horizon(10**6, 128, 8))
    assert acting.explore == theory.off_policy_rounds(10**6, 4, acting.decoder.sigma, 128)
    with pytest.raises(InvalidInputError, match="explore: the theory asks for"):
        learner(explore=tacit.Horizon(100, 128, 8))
