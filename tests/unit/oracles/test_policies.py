"""The best policy on decoded rounds: exactly, over a finite class; by gradient, for a network."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.errors import CorruptFileError, NotFittedError
from tacit.oracles import FinitePolicies, NetworkPolicies, policy_network
from tacit.seeding import generator, initialisation
from tacit.training import subset
from tests import worlds


def value(policy, contexts, actions, decoded) -> float:
    """The decoded reward of the rounds in which the policy would have done the same."""
    return sum(
        r for x, a, r in zip(contexts.tolist(), actions.tolist(), decoded.tolist(), strict=True) if policy[x] == a
    )


@given(
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(2, 4), st.integers(1, 40)),
    seed=st.integers(0, 2**32),
)  # fmt: skip
def test_it_is_the_best_policy_that_brute_force_finds(sizes, seed):
    candidates, X, K, n = sizes
    source = torch.Generator().manual_seed(seed)
    f = torch.rand(candidates, X, K, generator=source)
    contexts, actions = (torch.randint(size, (n,), generator=source) for size in (X, K))
    decoded = torch.rand(n, generator=source)
    policies = FinitePolicies(f)
    policies.maximise(contexts, actions, decoded)
    chosen = policies.scores(torch.arange(X)).argmax(-1).tolist()
    values = [value(rewards.argmax(-1).tolist(), contexts, actions, decoded) for rewards in f]
    assert value(chosen, contexts, actions, decoded) == pytest.approx(max(values))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_indices_of_any_integer_type_mean_the_same(source, kind):
    f = torch.rand(9, 100, 4, generator=source)
    contexts, actions = torch.arange(100), torch.randint(4, (100,), generator=source)
    decoded = torch.rand(100, generator=source)
    wide, narrow = FinitePolicies(f), FinitePolicies(f)
    wide.maximise(contexts, actions, decoded)
    narrow.maximise(contexts.to(kind), actions.to(kind), decoded)
    assert torch.equal(narrow.scores(contexts.to(kind)), wide.scores(contexts))


@pytest.mark.parametrize("chosen", [-1, 2])
def test_a_policy_of_another_class_is_not_restored(chosen):
    with pytest.raises(CorruptFileError, match="class of 2"):
        FinitePolicies(torch.rand(2, 3, 4, generator=generator(0, "test"))).restore({"chosen": torch.tensor(chosen)})


def decoded_rounds(rounds: int = 1_500):
    """Rounds of the world of signs, decoded without a fault."""
    environment = worlds.signs()
    log = worlds.uniform_log(environment, rounds)
    return log.contexts, log.actions, (log.contexts.argmax(1) == log.actions).float()


def network(seed: int = 0, space=None) -> NetworkPolicies:
    return NetworkPolicies(space or tacit.Table(4), 4, worlds.ORACLE, generator(seed, "test"))


def test_a_network_finds_the_policy_that_is_right_nearly_always():
    policies = network()
    policies.maximise(*decoded_rounds())
    held = worlds.signs().held_out()
    right = held.reward(policies.scores(held.contexts).argmax(-1)).values.mean()
    # The largest of four noisy numbers misleads in far less than one case in a thousand.
    assert right > 0.98


def test_a_second_search_starts_afresh():
    contexts, actions, decoded = decoded_rounds()
    policies = network()
    policies.maximise(contexts, actions, decoded)
    # Now the action after the right one is rewarded.
    policies.maximise(contexts, (actions + 1) % 4, decoded)
    chosen = policies.scores(contexts).argmax(-1)
    assert (chosen == (contexts.argmax(1) + 1) % 4).float().mean() > 0.9
    policies.maximise(contexts[:5], actions[:5], torch.zeros(5))
    assert (policies.scores(contexts).argmax(-1) == chosen).float().mean() < 0.9


def encoder() -> tacit.encoders.Encoder:
    with initialisation(generator(7, "elsewhere")):
        made = tacit.Table(4).encoder()
    made.prepare(torch.randn(50, 4, generator=generator(7, "rows")))
    return made


@pytest.mark.parametrize("warm_up", [0, 1])
def test_the_search_starts_from_an_encoder_unless_nothing_is_to_be_warmed_up(monkeypatch, warm_up):
    """The paper's policies, with a warm-up of 0, take over nothing from h."""
    monkeypatch.setattr(policy_network, "EPOCHS", 0)
    training = replace(worlds.ORACLE, warm_up=warm_up)
    plain, offered = (NetworkPolicies(tacit.Table(4), 4, training, generator(0, "test")) for _ in range(2))
    given = encoder()
    plain.maximise(*decoded_rounds(200))
    offered.maximise(*decoded_rounds(200), given)
    expected = given.state_dict() if warm_up else subset(plain.tensors(), "network.context")
    found = subset(offered.tensors(), "network.context")
    assert found.keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in found.items())


def test_what_is_learned_from_an_encoder_leaves_it_as_it_was(monkeypatch):
    monkeypatch.setattr(policy_network, "EPOCHS", 2)
    given, policies = encoder(), network()
    before = {name: value.clone() for name, value in given.state_dict().items()}
    policies.maximise(*decoded_rounds(300), given)
    assert all(torch.equal(value, before[name]) for name, value in given.state_dict().items())


@pytest.mark.parametrize("policies", [network(), FinitePolicies(torch.full((2, 3, 4), 0.5))])
def test_before_a_policy_was_chosen_there_are_no_scores(policies):
    with pytest.raises(NotFittedError, match="maximise"):
        policies.scores(torch.zeros(1, 4))
    policies.restore(policies.tensors())
    with pytest.raises(NotFittedError, match="maximise"):
        policies.scores(torch.zeros(1, 4))


def test_weights_of_another_network_are_not_restored():
    other = network(space=tacit.Table(5))
    other.maximise(torch.zeros(1, 5), torch.tensor([0]), torch.tensor([0.0]))
    with pytest.raises(CorruptFileError, match="policy"):
        network().restore(other.tensors())
