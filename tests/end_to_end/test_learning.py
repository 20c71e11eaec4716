"""From uniform choice to the best policy, on feedback alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import tacit
from tacit.environments import Environment
from tacit.environments.finite import FiniteEnvironment, FiniteInstance, function_classes, random_instance
from tacit.evaluation.progressive import play
from tacit.inverse import InverseTraining
from tests import worlds

T = 20_000


def random_world(seed: int) -> tuple[FiniteInstance, tacit.FiniteClasses]:
    source = torch.Generator().manual_seed(seed)
    instance = random_instance(source, contexts=4, actions=4, feedbacks=4, theta=0.7, alpha=1.0)
    classes = function_classes(instance, source, rewards=16, decoders=32)
    return instance, tacit.FiniteClasses(classes.f, classes.phi)


def learner(kind, instance: FiniteInstance, models: tacit.FiniteClasses, explore, seed: int = 0) -> tacit.Learner:
    problem = models.problem
    return kind(
        problem.actions, problem.context, problem.feedback, explore=explore, decoder=instance.decoder, models=models,
        seed=seed,
    )  # fmt: skip


def best(instance: FiniteInstance) -> list[int]:
    return instance.f.argmax(-1).tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("explore", ["by hand", "by theory"])
@pytest.mark.parametrize("kind", [tacit.OffPolicy, tacit.OnPolicy])
def test_with_exact_models_the_best_policy_is_found(kind, explore, seed):
    instance, models = random_world(seed)
    size = len(models.f) * len(models.phi)
    asked = 2_000 if explore == "by hand" else tacit.Horizon(T, size, len(models.f), scale=0.2)
    acting = learner(kind, instance, models, asked)
    played = play(FiniteEnvironment(instance, seed), acting, T, batch=100)
    assert acting.greedy(torch.arange(4)).tolist() == best(instance)
    # Lately it earns what the best policy earns, but for the exploration that is left.
    optimal = float(instance.contexts @ instance.f.amax(-1))
    assert played.curve.hidden_means()[-20:].mean() > 0.85 * optimal


@pytest.mark.parametrize("kind", [tacit.OffPolicy, tacit.OnPolicy])
def test_a_decoded_reward_never_overstates_the_hidden_one_and_equals_it_for_the_best_action(kind):
    instance, models = random_world(0)
    acting = learner(kind, instance, models, 2_000)
    rounds = FiniteEnvironment(instance, 0).stream(8_000, 1_000)
    for arrival in rounds:
        decision = acting.choose(arrival.contexts)
        feedback, hidden = arrival.react(decision.actions)
        decoded = acting.learn(decision, feedback)
        if not decoded.isnan().any():
            assert (decoded <= hidden.values + 1e-6).all()
            right = decision.actions == instance.f.argmax(-1)[arrival.contexts]
            torch.testing.assert_close(decoded[right].double(), hidden.values[right])
    assert not acting.exploring


NETWORKS = {
    "adamw": worlds.networks(),
    "cocob and log loss": worlds.networks(
        replace(worlds.INVERSE, optimiser="cocob", loss="log"), replace(worlds.ORACLE, optimiser="cocob", loss="log")
    ),
    "the paper's": replace(
        tacit.Networks.paper(on="cpu"), inverse_training=InverseTraining(
            optimiser="cocob", contrast=0, contrast_steps=0, average=0, dropout=0, steps=900, interval=45, batch=64
        ),
    ),
}


@pytest.mark.parametrize("models", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("kind", [worlds.off_policy, worlds.on_policy])
def test_with_networks_nearly_every_choice_becomes_right(kind, models):
    environment = worlds.signs()
    acting = kind(environment, models, 1_000)
    played = play(environment, acting, 4_000, batch=20)
    # Chance is a quarter; what the numbers say is nearly always right.
    assert played.test > 0.9
    assert played.progressive > (0.5 if kind is worlds.on_policy else 0.4)


def test_two_views_act_nearly_always_right_and_a_refinement_that_is_used_decodes_better():
    kept = []
    for seed in range(3):
        environment = worlds.signs(seed)
        # h learns for so short a time that there is something left to refine.
        models = tacit.Networks(replace(worlds.INVERSE, steps=150), on="cpu")
        acting = worlds.two_view(environment, models, 1_000, seed=seed)
        played = play(environment, acting, 4_000, batch=20)
        assert played.test > 0.95
        assert played.progressive > 0.75  # 1,000 of the rounds count as a quarter: .81 at most
        arrival = next(worlds.signs(seed).stream(1_000, 1_000))
        actions = torch.arange(1_000) % 4
        feedback, hidden = arrival.react(actions)
        rounds = tacit.Interactions(arrival.contexts, actions, torch.full((1_000, 4), 0.25), feedback)
        of_h = acting.decoder.decode(acting._inverse.posterior(rounds.contexts, rounds.feedback), actions)
        missed, missed_by_h = ((decoded - hidden.values).abs().mean() for decoded in (acting._decode(rounds), of_h))
        assert missed < 0.7 * missed_by_h if acting.refinement.kept else missed == missed_by_h
        kept.append(acting.refinement.kept)
    assert any(kept)


def late(acting: tacit.Learner, environment: Environment, rounds: int, delay: int) -> None:
    """Every batch's feedback comes `delay` batches later, half of it before the other half."""
    waiting: list[tuple[tacit.Decision, Tensor]] = []
    for arrival in environment.stream(rounds, 50):
        decision = acting.choose(arrival.contexts)
        waiting.append((decision, arrival.react(decision.actions)[0]))
        if len(waiting) > delay:
            old, feedback = waiting.pop(0)
            acting.learn(old[1::2], feedback[1::2])
            acting.learn(old[0::2], feedback[0::2])


@pytest.mark.parametrize("kind", [tacit.OffPolicy, tacit.OnPolicy])
def test_feedback_that_is_always_late_is_no_obstacle(kind):
    instance, models = random_world(1)
    acting = learner(kind, instance, models, 1_000)
    late(acting, FiniteEnvironment(instance, 1), 8_000, delay=10)
    assert acting.greedy(torch.arange(4)).tolist() == best(instance)


@pytest.mark.parametrize("models", ["finite", "networks"])
def test_the_same_seed_gives_the_same_run_and_another_seed_another(models):
    def run(seed: int) -> tuple[Tensor, Tensor]:
        if models == "finite":
            instance, classes = random_world(0)
            acting: tacit.Learner = learner(tacit.OnPolicy, instance, classes, 500, seed)
            environment: Environment = FiniteEnvironment(instance, 0)
        else:
            environment = worlds.signs()
            acting = worlds.on_policy(environment, worlds.networks(), 1_000, seed=seed)
        curve = play(environment, acting, 1_500, batch=50).curve
        return curve.hidden_means(), curve.decoded_means()

    first, again, other = run(0), run(0), run(1)
    for one, two in zip(first, again, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0, equal_nan=True)
    assert not torch.equal(first[0], other[0])
