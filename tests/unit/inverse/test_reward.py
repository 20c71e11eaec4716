"""The other view: from examples of good and bad rounds to what feedback means in its context."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import tacit
from tacit.errors import CorruptFileError
from tacit.inverse import FiniteReward, NetworkInverse, NetworkReward, reward
from tacit.seeding import generator
from tests import worlds

EVERY = torch.cartesian_prod(torch.arange(3), torch.arange(3)).unbind(1)
TRUTH = worlds.instance().phi[EVERY]


def model(context=None, feedback=None, seed: int = 0) -> NetworkReward:
    three = tacit.Category(3)
    return NetworkReward(context or three, feedback or three, worlds.INVERSE, generator(seed, "test"))


def examples(rounds: int = 600, wrong: float = 0.0, seed: int = 0) -> tuple[tacit.Interactions, tacit.Interactions]:
    """Good and bad rounds of the finite world; a share of them was taken for the other kind."""
    log = worlds.uniform_log(worlds.finite(seed), rounds)
    good = worlds.instance().phi[log.contexts, log.feedback] == 1
    good ^= torch.rand(rounds, generator=torch.Generator().manual_seed(seed)) < wrong
    return log[good.nonzero()[:, 0]], log[(~good).nonzero()[:, 0]]


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_it_learns_what_feedback_means_in_its_context_though_some_examples_are_wrong(wrong):
    fitted = model()
    fitted.fit(*examples(wrong=wrong), None)
    assert torch.equal(fitted.predict(*EVERY).round().double(), TRUTH)
    # Smoothed labels keep it from being surer than the examples are.
    assert bool(((fitted.predict(*EVERY) - 0.5).abs() < 0.49).all())


def test_the_finite_class_gives_the_truth_though_some_examples_are_wrong():
    classes = worlds.classes()
    fitted = FiniteReward(classes.phi)
    fitted.fit(*examples(wrong=0.1), None)
    assert torch.equal(fitted.predict(*EVERY), TRUTH)


def test_the_finite_class_counts_good_and_bad_rounds_alike_however_many_there_are():
    """Of ten good rounds nine are read as good, and of a thousand bad ones all but one in five as bad."""
    phi = torch.tensor([[[0.0, 0.0]], [[0.0, 1.0]]])  # nothing is good, or the second feedback is
    rounds = tacit.Interactions(
        torch.zeros(1_010, dtype=torch.long), torch.zeros(1_010, dtype=torch.long), torch.full((1_010, 2), 0.5),
        torch.tensor([1] * 9 + [0] + [1] * 200 + [0] * 800),
    )  # fmt: skip
    fitted = FiniteReward(phi)
    fitted.fit(rounds[slice(10)], rounds[slice(10, None)], None)
    assert fitted.predict(torch.zeros(2), torch.tensor([0, 1])).tolist() == [0.0, 1.0]


def test_a_second_fit_goes_on_from_the_first(monkeypatch):
    monkeypatch.setattr(reward, "STEPS", 150)
    good, bad = examples()
    once, twice, turned = model(), model(), model()
    once.fit(good, bad, None)
    for _ in range(2):
        twice.fit(good, bad, None)
    turned.fit(bad, good, None)
    turned.fit(good, bad, None)

    def missed(fitted: NetworkReward) -> float:
        return float((fitted.predict(*EVERY) - TRUTH).abs().mean())

    assert missed(twice) < missed(once)
    assert missed(twice) < missed(turned)  # which had to unlearn something


def test_it_starts_from_encoders_that_can_read_already(monkeypatch):
    monkeypatch.setattr(reward, "STEPS", 0)
    world = worlds.signs()
    log = worlds.uniform_log(world, 300)
    read = NetworkInverse(tacit.Table(4), tacit.Category(4), 4, replace(worlds.INVERSE, steps=20), generator(1, "test"))
    assert read.encoders is None
    read.fit(log)
    fitted = model(tacit.Table(4), tacit.Category(4))
    fitted.fit(log, log, read.encoders)
    for name, encoder in zip(("context", "feedback"), read.encoders, strict=True):
        for part in ("network", "average"):
            taken = {key: value for key, value in fitted.tensors().items() if key.startswith(f"{part}.{name}.")}
            assert taken
            own = encoder.state_dict()
            assert all(torch.equal(value, own[key.split(".", 2)[2]]) for key, value in taken.items())
    assert {id(p) for p in read.encoders[0].parameters()}.isdisjoint(id(p) for p in fitted._network.parameters())


def test_the_scale_of_the_data_reaches_the_averaged_network(monkeypatch):
    monkeypatch.setattr(reward, "STEPS", 3)
    numbers = torch.randn(200, 2, generator=generator(0, "rows"))
    rows = 1e4 + 1e3 * numbers
    rounds = tacit.Interactions(rows, torch.zeros(200).long(), torch.full((200, 4), 0.25), torch.arange(200) % 3)
    fitted = model(tacit.Table(2))
    fitted.fit(rounds, rounds, None)
    tensors = fitted.tensors()
    torch.testing.assert_close(tensors["average.context.centre"].float(), rows.mean(0))
    assert torch.equal(tensors["average.context.spread"], tensors["network.context.spread"])


def test_as_many_good_rounds_as_bad_ones_are_in_a_batch_whatever_there_is(monkeypatch):
    monkeypatch.setattr(reward, "STEPS", 2)
    drawn: list[Tensor] = []
    fitted, (good, bad) = model(), examples()
    draw = NetworkReward._drawn
    monkeypatch.setattr(NetworkReward, "_drawn", lambda self, rounds: drawn.append(rounds) or draw(self, rounds))
    fitted.fit(good[slice(20)], bad, None)
    assert [len(rounds) for rounds in drawn] == [20, len(bad)] * 2
    x, y = draw(fitted, good[slice(20)])
    assert len(x) == len(y) == reward.HALF


@pytest.mark.parametrize("fitted", [False, True])
def test_restored_it_is_as_far_as_the_one_that_was_saved_even_before_its_first_fit(monkeypatch, fitted):
    monkeypatch.setattr(reward, "STEPS", 5)
    good, bad = examples(200)
    made, again = model(seed=1), model(seed=2)
    if fitted:
        made.fit(good, bad, None)
    again.restore({name: value.clone() for name, value in made.tensors().items()})
    again._source.set_state(made._source.get_state())
    made.fit(good, bad, None)
    again.fit(good, bad, None)
    assert torch.equal(made.predict(*EVERY), again.predict(*EVERY))


def test_weights_of_another_network_are_not_restored():
    with pytest.raises(CorruptFileError, match="reward model"):
        model().restore(model(tacit.Category(5)).tensors())


def test_a_phi_that_is_not_in_the_class_is_not_restored():
    fitted = FiniteReward(worlds.classes().phi)
    for number in (-1, 16):
        with pytest.raises(CorruptFileError, match=f"number {number} of a class of 16"):
            fitted.restore({"chosen": torch.tensor(number)})
