"""Finite worlds: they meet the paper's assumptions by construction, and say what is wrong where they cannot."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from tacit.decoder import posterior
from tacit.environments.finite import (
    FiniteEnvironment,
    FiniteInstance,
    FunctionClasses,
    close_race,
    draw_rounds,
    function_classes,
    random_instance,
    react,
    react_to_each,
    step_trap,
    widest_gap,
)  # fmt: skip
from tacit.errors import IdentifiabilityError, InvalidInputError

MARGIN = 0.01
MADE = {
    "random": lambda source: known(random_instance(source, 4, 5, 3, theta=0.6, alpha=1.0), source),
    "trap": lambda source: step_trap(4, MARGIN),
    "race": lambda source: close_race(8, 0.1),
}  # fmt: skip


def known(instance: FiniteInstance, source: torch.Generator) -> tuple[FiniteInstance, FunctionClasses]:
    return instance, function_classes(instance, source)


@pytest.fixture(params=MADE)
def world(request, source) -> tuple[FiniteInstance, FunctionClasses]:
    return MADE[request.param](source)


@st.composite
def instances(draw) -> FiniteInstance:
    """Random worlds of every shape and every alpha and theta that Assumption 3 allows."""
    K = draw(st.integers(2, 9))
    alpha = draw(st.floats(0.05, K / 2 - 0.01))
    least, most = alpha / (K - alpha), min(1.0, alpha)
    theta = least + draw(st.floats(0.01, 1.0)) * (most - least)
    source = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    return random_instance(source, draw(st.integers(1, 6)), K, draw(st.integers(2, 5)), min(theta, most), alpha)


def holds(candidates: Tensor, one: Tensor) -> bool:
    return bool((candidates == one).flatten(1).all(1).any())


@given(instances())
def test_random_worlds_meet_the_assumptions(instance):
    X, Y, K = instance.shape
    # 1 and 2: feedback is drawn from a table of context and reward, and what it can be tells the reward.
    assert instance.feedback.shape == (X, 2, Y)
    assert torch.allclose(instance.feedback.sum(-1), torch.ones(X, 2, dtype=torch.float64))
    for reward in (0, 1):
        assert (instance.phi == reward)[instance.feedback[:, reward] > 0].all()
    # 3: alpha and theta tell reward 1 from reward 0.
    assert (instance.f.sum(-1) <= instance.alpha + 1e-9).all()
    assert (instance.f.amax(-1) >= instance.theta - 1e-9).all()
    assert 0 < instance.alpha < K / 2
    assert instance.theta > instance.alpha / (K - instance.alpha)


@given(instances())
def test_random_worlds_have_one_best_action_and_personal_feedback(instance):
    assert (instance.f.topk(2).values.diff() < 0).all()
    if len(instance.phi) > 1:
        assert torch.equal(instance.phi[0], 1 - instance.phi[1])
    assert instance.contexts.min() > 0
    assert float(instance.contexts.sum()) == pytest.approx(1)


@given(instances())
def test_the_lower_bounds_are_below_and_meet_at_the_best_action(instance):
    assert instance.lower.shape == (2, *instance.f.shape)
    assert (instance.lower <= instance.f + 1e-9).all()
    for lower in instance.lower:
        assert torch.allclose(lower.amax(-1), instance.f.amax(-1))
        assert torch.equal(lower.argmax(-1), instance.f.argmax(-1))


@given(instances(), st.integers(3, 20), st.integers(1, 40))
def test_classes_have_the_sizes_asked_for_and_contain_the_truth(instance, rewards, decoders):
    classes = function_classes(instance, torch.Generator().manual_seed(0), rewards, decoders)
    assert (len(classes.f), len(classes.phi), classes.size) == (rewards, decoders, rewards * decoders)
    assert torch.equal(classes.f[-1], instance.f)
    assert torch.equal(classes.phi[-1], instance.phi)
    assert all(holds(classes.f, lower) for lower in instance.lower)


def test_every_world_is_in_its_classes_with_its_lower_bounds(world):
    instance, classes = world
    assert torch.equal(classes.f[-1], instance.f)
    assert torch.equal(classes.phi[-1], instance.phi)
    assert all(holds(classes.f, lower) for lower in instance.lower)
    assert not holds(classes.f[:-1], instance.f)


@given(instances(), st.integers(0, 2**31))
@settings(max_examples=30)
def test_feedback_depends_on_the_action_through_the_reward_only(instance, seed):
    source = torch.Generator().manual_seed(seed)
    contexts, uniforms = draw_rounds(instance, (200,), source)
    feedback, reward = react_to_each(instance, contexts, uniforms)
    for value in (0, 1):
        # With the same chance, all actions that have this reward have the same feedback.
        same = feedback.where(reward == value, -1)
        assert ((same == same.amax(-1, keepdim=True)) | (same == -1)).all()
    assert torch.equal(instance.phi[contexts[:, None], feedback], reward)


@given(instances(), st.integers(0, 2**31))
@settings(max_examples=30)
def test_each_action_meets_the_reaction_that_is_foretold(instance, seed):
    source = torch.Generator().manual_seed(seed)
    contexts, uniforms = draw_rounds(instance, (3, 50), source)
    actions = torch.randint(instance.shape[2], (3, 50), generator=source)
    foretold = [each.gather(-1, actions[..., None])[..., 0] for each in react_to_each(instance, contexts, uniforms)]
    assert all(map(torch.equal, foretold, react(instance, contexts, actions, uniforms)))


def test_contexts_rewards_and_feedback_come_as_often_as_the_tables_say(world, source):
    instance, _ = world
    n = 60_000
    contexts, uniforms = draw_rounds(instance, (n,), source)
    feedback, reward = react_to_each(instance, contexts, uniforms)
    assert (contexts.bincount() / n - instance.contexts).abs().max() < 0.01  # 5 standard errors
    for x, often in enumerate(instance.contexts):
        here = contexts == x
        tolerance = 2.5 / (n * float(often)) ** 0.5  # 5 standard errors of a share
        assert (reward[here].mean(0) - instance.f[x]).abs().max() < tolerance
        shares = torch.nn.functional.one_hot(feedback[here], instance.shape[1]).double().mean(0)
        assert (shares - instance.feedback_given_action[x]).abs().max() < tolerance


def test_the_environment_reacts_by_the_tables(world):
    instance, _ = world
    seen = []
    for arrival in FiniteEnvironment(instance, seed=3).stream(30_000, 4_000):
        best = instance.f.argmax(-1)[arrival.contexts]
        feedback, hidden = arrival.react(best)
        assert torch.equal(instance.phi[arrival.contexts, feedback], hidden.values)
        seen.append(hidden.values)
    expected = float(instance.contexts @ instance.f.amax(-1))
    assert float(torch.cat(seen).mean()) == pytest.approx(expected, abs=0.015)  # 5 standard errors


def test_a_policy_is_scored_by_its_expected_reward(world):
    instance, _ = world
    held = FiniteEnvironment(instance, seed=0).held_out()
    policy = torch.arange(instance.shape[0]) % instance.shape[2]
    scored = held.reward(policy[held.contexts]).values.mean()
    expected = instance.contexts @ instance.f[torch.arange(len(policy)), policy]
    assert float(scored) == pytest.approx(float(expected), abs=1e-3)


def test_the_same_source_makes_the_same_world():
    first, again, other = (
        random_instance(torch.Generator().manual_seed(seed), 4, 5, 3, theta=0.6, alpha=1.0) for seed in (1, 1, 2)
    )
    assert torch.equal(first.f, again.f)
    assert torch.equal(first.feedback, again.feedback)
    assert not torch.equal(first.f, other.f)


@pytest.mark.parametrize("K", [8, 16, 64])
def test_the_widest_gap_of_a_race_makes_the_second_best_action_one_of_many(K):
    f = close_race(K, widest_gap(K) - 1e-9)[0].f
    assert torch.allclose(f.sort(-1).values[:, :-1], f.amin(-1, keepdim=True).expand(-1, K - 1), atol=1e-6)
    with pytest.raises(InvalidInputError, match=r"^gap: expected more than 0 and less than "):
        close_race(K, widest_gap(K))


@pytest.mark.parametrize("K", [8, 16, 64])
def test_in_a_race_the_gap_is_the_smallest_and_sigma_the_same(K):
    instance, classes = close_race(K, 0.1)
    gaps = instance.gaps.sort(-1).values
    assert torch.allclose(gaps[:, 1], torch.full((2,), 0.1, dtype=torch.float64), atol=1e-5)
    assert instance.decoder.sigma == pytest.approx(0.15)
    # The two best may change places in one context, or in both.
    best, second = instance.f.topk(2).indices.T
    for order in ((best[0], second[1]), (second[0], best[1]), (second[0], second[1])):
        assert any((candidate.argmax(-1) == torch.stack(order)).all() for candidate in classes.f)


def test_in_the_trap_both_decoders_read_the_true_posterior_alike():
    instance, _ = step_trap(4, MARGIN)
    assert torch.equal(*instance.lower)


def test_in_the_trap_a_hardly_different_posterior_misleads_the_step_decoder_alone():
    instance, classes = step_trap(4, MARGIN)
    h = posterior(classes.f[:, :, None], instance.phi)
    truth = posterior(instance.f[:, None], instance.phi)
    apart = (h - truth).abs().amax((1, 2, 3))
    near = (apart > 0) & (apart < MARGIN)
    assert int(near.sum()) == 3
    rewarded = instance.phi == 1
    ramp, step = instance.decoder, instance.decoder.step()
    for wrong in h[near]:
        at_best = wrong.gather(2, instance.f.argmax(-1)[:, None, None].expand(-1, 2, 1))[rewarded]
        actions = torch.zeros(len(at_best), dtype=torch.long)
        assert step.decode(at_best, actions).min() == 0
        assert ramp.decode(at_best, actions).min() >= 1 - MARGIN / ramp.sigma


@pytest.mark.parametrize(("theta", "alpha", "argument"), [
    (0.6, 2.5, "alpha"),  # K/2
    (0.6, -1.0, "alpha"),
    (0.6, float("nan"), "alpha"),
    (0.25, 1.0, "theta"),  # alpha / (K - alpha)
    (1.1, 2.0, "theta"),
    (0.9, 0.8, "theta"),  # one action's reward exceeds the sum
])  # fmt: skip
def test_worlds_that_cannot_be_told_from_their_opposite_are_refused(source, theta, alpha, argument):
    with pytest.raises(IdentifiabilityError, match=f"^{argument}: ") as caught:
        random_instance(source, 3, 5, 2, theta, alpha)
    assert caught.value.argument == argument


@pytest.mark.parametrize(("make", "argument"), [
    (lambda source: random_instance(source, 0, 5, 2, 0.6, 1.0), "contexts"),
    (lambda source: random_instance(source, 3, 5, 1, 0.6, 1.0), "feedbacks"),
    (lambda source: random_instance(source, 3, 1, 2, 0.6, 0.4), "actions"),
    (lambda source: function_classes(step_trap()[0], source, rewards=2), "rewards"),
    (lambda source: function_classes(step_trap()[0], source, decoders=0), "decoders"),
    (lambda source: step_trap(actions=2), "actions"),
    (lambda source: step_trap(margin=0.0), "margin"),
    (lambda source: step_trap(margin=0.7), "margin"),
    (lambda source: close_race(actions=7), "actions"),
    (lambda source: close_race(gap=0.0), "gap"),
    (lambda source: close_race(gap=0.9), "gap"),
])  # fmt: skip
def test_sizes_that_make_no_world_are_refused(source, make, argument):
    with pytest.raises(InvalidInputError, match=argument):
        make(source)


@pytest.mark.parametrize(("changes", "error", "message"), [
    ({"alpha": 0.9}, IdentifiabilityError, "alpha: in some context the rewards sum to more than 0.9"),
    ({"theta": 0.7}, IdentifiabilityError, "theta: in some context no action's reward reaches 0.7"),
    ({"alpha": 2.0}, IdentifiabilityError, "alpha: "),
    ({"contexts": torch.tensor([0.5, 0.6])}, InvalidInputError, "contexts: probabilities"),
    ({"contexts": torch.tensor([1.5, -0.5])}, InvalidInputError, "contexts: probabilities"),
    ({"contexts": torch.ones(1)}, InvalidInputError, "differ in size"),
    ({"phi": torch.tensor([[0.0, 0.5], [1.0, 0.0]])}, InvalidInputError, "phi: "),
    ({"phi": torch.tensor([[1.0, 0.0], [1.0, 0.0]])}, InvalidInputError, "the opposite reward"),
    ({"f": torch.full((2, 4), float("nan"))}, InvalidInputError, "f: "),
])  # fmt: skip
def test_tables_that_break_an_assumption_are_refused(changes, error, message):
    instance, _ = step_trap()
    doubled = {name: table.double() if isinstance(table, Tensor) else table for name, table in changes.items()}
    with pytest.raises(error, match=message):
        replace(instance, **doubled)


def test_classes_that_speak_of_different_contexts_are_refused():
    instance, _ = step_trap()
    with pytest.raises(InvalidInputError, match="f, phi"):
        FunctionClasses(instance.f[None], instance.phi[None, :1])


@pytest.mark.parametrize(("rounds", "batch"), [(0, 1), (1, 0), (-1, 5)])
def test_a_stream_needs_rounds(rounds, batch):
    with pytest.raises(InvalidInputError, match="rounds, batch"):
        next(FiniteEnvironment(step_trap()[0], seed=0).stream(rounds, batch))


@pytest.mark.parametrize("actions", [torch.tensor([0, 1]), torch.tensor([0, 1, 4]), torch.tensor([0.0, 1.0, 2.0])])
def test_reactions_to_actions_that_were_not_asked_for_are_refused(actions):
    arrival = next(FiniteEnvironment(step_trap()[0], seed=0).stream(3, 3))
    with pytest.raises(InvalidInputError, match=r"^actions: "):
        arrival.react(actions)
