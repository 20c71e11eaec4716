"""The oracle as a network: it learns what it is shown, remembers as much as it should, and warms up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import tacit
from tacit.errors import CorruptFileError, InvalidInputError
from tacit.oracles import NetworkOracle, OracleTraining, network
from tacit.oracles.network import FIRST_GUESS
from tacit.seeding import generator, initialisation
from tacit.training import subset
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


def encoder_of(space: tacit.encoders.Space) -> tacit.encoders.Encoder:
    """One that has learned to read something else."""
    with initialisation(generator(7, "elsewhere")):
        made = space.encoder()
    if isinstance(space, tacit.Table):
        made.prepare(1e3 + torch.randn(50, *space.shape, generator=generator(7, "rows")))
    return made


@pytest.mark.parametrize("average", [0.0, 0.99])
def test_the_warm_up_starts_from_the_encoder_it_is_given_with_its_scale(monkeypatch, average):
    given, rows = encoder_of(tacit.Table(2)), torch.randn(40, 2, generator=generator(0, "rows"))
    learned = oracle(replace(worlds.ORACLE, warm_up=1, average=average), tacit.Table(2))
    monkeypatch.setattr(learned, "_learn_again", lambda steps: None)
    learned.warm_up(rows, torch.zeros(40).long(), torch.ones(40), given)
    for part in ("network", "average")[: 1 + bool(average)]:
        own = subset(learned.tensors(), f"{part}.context")
        assert own.keys() == given.state_dict().keys()
        assert all(torch.equal(value, own[name]) for name, value in given.state_dict().items())
    assert {id(p) for p in given.parameters()}.isdisjoint(id(p) for p in learned._network.parameters())


def test_the_encoder_it_starts_from_stays_as_it_was():
    given, learned = encoder_of(tacit.Category(3)), oracle(replace(worlds.ORACLE, warm_up=20))
    before = {name: value.clone() for name, value in given.state_dict().items()}
    learned.warm_up(*rounds(200), given)
    assert all(torch.equal(value, before[name]) for name, value in given.state_dict().items())


def test_the_papers_oracle_takes_no_encoder_over():
    """There, f starts from nothing: one step for every batch is all that it learns from."""
    training = tacit.Networks.paper(on="cpu").oracle_training
    assert training == PAPER
    without, offered = oracle(training), oracle(training)
    without.warm_up(*rounds(100))
    offered.warm_up(*rounds(100), encoder_of(tacit.Category(3)))
    assert all(torch.equal(value, without.tensors()[name]) for name, value in offered.tensors().items())


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_predictions_follow_the_rewards_that_were_decoded_anew(average):
    training = OracleTraining(replay=1, warm_up=200, batch=64, capacity=2_000, average=average)
    learned, (contexts, actions, rewards) = oracle(training), rounds(1_000)
    learned.warm_up(contexts, actions, rewards)
    assert learned.predict(EVERY).argmax(-1).tolist() == list(worlds.BEST)
    # It was all the other way round: the best action is the only one without a reward.
    turned = 1 - rewards
    learned.relearn(contexts, actions, turned)
    assert learned.predict(EVERY).argmin(-1).tolist() == list(worlds.BEST)
    # Nothing of what was learned before is ever replayed.
    assert torch.equal(learned.tensors()["replay.decoded"], turned)
    learned.update(*rounds(64, seed=1))
    assert len(learned.tensors()["replay.decoded"]) == 1_064


def test_the_latest_rounds_are_learned_again_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(network, "RELEARN", 1)
    learned, (contexts, actions, _) = oracle(OracleTraining(replay=1, warm_up=0, capacity=100)), rounds(250)
    learned.relearn(contexts, actions, torch.arange(250.0) / 250)
    assert torch.equal(learned.tensors()["replay.decoded"].sort().values, torch.arange(150.0, 250.0) / 250)


def test_an_oracle_without_replay_cannot_relearn_and_is_left_as_it_was():
    learned = oracle(PAPER)
    learned.update(*rounds(100))
    before = {name: value.clone() for name, value in learned.tensors().items()}
    learned.relearn(*rounds(100, seed=1))
    assert all(torch.equal(value, before[name]) for name, value in learned.tensors().items())


def test_predictions_are_those_of_the_running_mean_of_the_weights():
    learned = oracle(replace(worlds.ORACLE, average=0.9))
    learned.update(*rounds(200))
    predicted = learned.predict(EVERY)
    learned._network.load_state_dict(subset(learned.tensors(), "average"))
    with torch.no_grad():
        torch.testing.assert_close(predicted, learned._network(EVERY).sigmoid())


def test_a_scale_of_the_data_reaches_the_predictions():
    """The averaged network once kept the scale from before the first rounds."""
    learned = oracle(replace(worlds.ORACLE, average=0.99), tacit.Table(1))
    far = 1e4 + 100 * torch.randn(400, 1, generator=generator(0, "rows"))
    learned.update(far, torch.zeros(400).long(), (far[:, 0] > 1e4).float())
    tensors = learned.tensors()
    for name in ("centre", "spread"):
        assert torch.equal(tensors[f"average.context.{name}"], tensors[f"network.context.{name}"])
    assert float(tensors["average.context.centre"]) == pytest.approx(1e4, rel=0.01)


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
