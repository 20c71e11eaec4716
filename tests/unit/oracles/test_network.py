"""The oracle as a network: it learns what it is shown, remembers as much as it should, and warms up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import tacit
from tacit.errors import CorruptFileError, InvalidInputError
from tacit.oracles import NetworkOracle, OracleTraining
from tacit.oracles.network import FIRST_GUESS
from tacit.seeding import generator
from tests import worlds

PAPER = OracleTraining(optimiser="cocob", augment=False, replay=0, warm_up=0, average=0)
EVERY = torch.arange(3)


def oracle(training: OracleTraining = worlds.ORACLE, space=None, seed: int = 0) -> NetworkOracle:
    return NetworkOracle(space or tacit.Category(3), 4, training, generator(seed, "test"))


def rounds(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Uniform rounds of the finite world, rewarded as it rewards."""
    source = torch.Generator().manual_seed(seed)
    contexts, actions = torch.randint(3, (n,), generator=source), torch.randint(4, (n,), generator=source)
    chance = worlds.instance().f[contexts, actions]
    return contexts, actions, (torch.rand(n, generator=source) < chance).float()


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("optimiser", ["adamw", "cocob"])
@pytest.mark.parametrize("replay", [0, 1])
def test_it_learns_the_expected_reward_of_every_action(loss, optimiser, replay):
    learned = oracle(OracleTraining(loss=loss, optimiser=optimiser, replay=replay, warm_up=0, batch=16))
    learned.update(*rounds(8_000))
    predicted = learned.predict(EVERY)
    assert predicted.argmax(-1).tolist() == list(worlds.BEST)
    # Answering with the mean of all actions would be off by 0.325 on average.
    assert (predicted - worlds.instance().f).abs().mean() < 0.13


def test_before_it_has_learned_it_expects_little_of_every_action():
    predicted = oracle(space=tacit.Table(4)).predict(torch.zeros(1, 4))
    torch.testing.assert_close(predicted, torch.full((1, 4), FIRST_GUESS), atol=0.05, rtol=0)


def test_predictions_stay_between_0_and_1_whatever_is_asked():
    learned = oracle(space=tacit.Table(2))
    contexts = torch.randn(64, 2, generator=generator(0, "test"))
    learned.update(contexts, torch.zeros(64, dtype=torch.long), torch.ones(64))
    predicted = learned.predict(torch.tensor([[1e6, -1e6], [-1e30, 1e30]]))
    assert ((predicted >= 0) & (predicted <= 1)).all()


def test_the_warm_up_learns_from_the_exploration_rounds():
    warm, cold = oracle(replace(worlds.ORACLE, warm_up=300)), oracle(replace(worlds.ORACLE, warm_up=0))
    before = cold.predict(EVERY)
    for either in (warm, cold):
        either.warm_up(*rounds(1_000))
    predicted = warm.predict(EVERY)
    assert predicted.argmax(-1).tolist() == list(worlds.BEST)
    assert predicted.amax(-1).min() > 0.5
    assert torch.equal(cold.predict(EVERY), before)


def test_replay_brings_back_rounds_it_would_forget():
    """Long ago context 0 was met, and since then only context 1, with other rewards."""
    before = torch.zeros(200, dtype=torch.long), torch.zeros(200, dtype=torch.long), torch.ones(200)
    since = torch.ones(400, dtype=torch.long), torch.zeros(400, dtype=torch.long), torch.zeros(400)
    remembered = []
    for capacity in (1_000, 100):
        learned = oracle(OracleTraining(replay=4, warm_up=0, batch=16, capacity=capacity))
        learned.update(*before)
        learned.update(*since)
        remembered.append(float(learned.predict(torch.tensor([0]))[0, 0]))
    assert remembered[0] > remembered[1] + 0.1


def test_a_large_batch_is_learned_from_in_batches_of_the_trainings_size(monkeypatch):
    learned = oracle(replace(PAPER, batch=16))
    sizes = []
    monkeypatch.setattr(learned, "_step", lambda contexts, *rest: sizes.append(len(contexts)))
    learned.update(*rounds(40))
    assert sizes == [16, 16, 8]


def test_the_papers_oracle_keeps_no_round():
    learned = oracle(PAPER)
    learned.update(*rounds(100))
    assert not any(name.startswith("replay") for name in learned.tensors())


def test_what_it_holds_does_not_grow_with_the_rounds():
    learned = oracle(OracleTraining(replay=1, warm_up=0, batch=32, capacity=100))
    sizes = []
    for seed in range(4):
        learned.update(*rounds(200, seed))
        sizes.append(sum(tensor.nbytes for tensor in learned.tensors().values()))
    assert sizes == sizes[:1] * 4


def test_columns_are_put_on_one_scale_by_the_first_rounds_and_by_no_later_ones():
    learned = oracle(replace(PAPER, optimiser="adamw"), tacit.Table(1))
    contexts = torch.tensor([[1_000.0], [1_004.0]])
    learned.update(contexts, torch.tensor([0, 1]), torch.tensor([0.0, 1.0]))
    learned.update(contexts + 500, torch.tensor([0, 1]), torch.tensor([0.0, 1.0]))
    tensors = learned.tensors()
    assert float(tensors["network.context.centre"]) == 1_002
    assert float(tensors["network.context.spread"]) == 2


def test_weights_of_another_network_are_not_restored():
    with pytest.raises(CorruptFileError, match="oracle"):
        oracle().restore(oracle(space=tacit.Category(5)).tensors())


@pytest.mark.parametrize(
    "settings",
    [
        {"replay": -1}, {"warm_up": -1}, {"batch": 0}, {"capacity": 0}, {"average": 1}, {"average": -0.1},
        {"average": math.nan}, {"average": "slow"}, {"loss": "huber"}, {"optimiser": "sgd"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(InvalidInputError, match="OracleTraining"):
        OracleTraining(**settings)
