"""When training stops, and which weights are kept: the best, or a running mean of all."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from tacit.seeding import generator, initialisation
from tacit.training import Average, EarlyStopping


def weights(net: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


class Scores:
    """A network whose only weight is the epoch it has reached, with a score made up for each epoch."""

    def __init__(self, *scores: float) -> None:
        self.network = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.network.weight)
        self._scores = scores
        self.asked: list[int] = []

    @property
    def epoch(self) -> int:
        return round(self.network.weight.item())

    def score(self) -> float:
        self.asked.append(self.epoch)
        return self._scores[self.epoch]

    @torch.no_grad()
    def learn(self, rows: Tensor) -> None:
        self.network.weight += 1

    def run(self, epochs: int, patience: int | None = None, **pace: int) -> float:
        stopping = EarlyStopping(self.network, self.score, patience, **pace)
        return stopping.run(self.learn, 4, 4, epochs, torch.Generator().manual_seed(0))


def scores(*values: float) -> Scores:
    with initialisation(generator(0, "scores")):
        return Scores(*values)


@pytest.mark.parametrize(
    ("values", "patience", "best"),
    [
        ((0.9, 0.5, 0.3, 0.4, 0.6), None, 2),
        ((0.9, 0.5, 0.3, 0.4, 0.2), None, 4),
        ((0.9, 0.5, 0.6, 0.7, 0.2), 2, 1),
        ((0.9, 0.5, 0.6, 0.4, 0.5), 2, 3),
        ((0.1, 0.5, 0.6, 0.7, 0.8), None, 0),
        ((0.9, 0.5, math.nan, 0.6, math.nan), None, 1),
        ((0.9, 0.5, 0.5, 0.5, 0.5), None, 1),
    ],
    ids=["in the middle", "at the end", "out of patience", "in time", "never", "broken later", "first of equals"],
)
def test_the_weights_of_the_best_epoch_are_kept(values, patience, best):
    made = scores(*values)
    assert made.run(epochs=4, patience=patience) == values[best]
    assert made.epoch == best


def test_training_stops_when_patience_is_out():
    made = scores(0.5, 0.6, 0.7)
    assert made.run(epochs=1_000_000, patience=2) == 0.5  # a third epoch would have no score


FALLING = tuple(1 / (1 + step) for step in range(20))


@pytest.mark.parametrize(
    ("pace", "asked"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ({"interval": 3}, [0, 3, 6, 8]),
        ({"interval": 100}, [0, 8]),
        ({"unscored": 4}, [5, 6, 7, 8]),
        ({"unscored": 2, "interval": 3}, [5, 8]),
        ({"unscored": 100, "interval": 3}, [8]),
    ],
    ids=str,
)
def test_scores_are_an_interval_apart_after_the_steps_without_and_the_last_step_has_one(pace, asked):
    made = scores(*FALLING)
    assert made.run(epochs=8, **pace) == FALLING[8]
    assert made.asked == asked
    assert made.epoch == 8


def test_what_was_learned_without_a_score_is_never_kept_for_its_own_sake():
    made = scores(0.0, 0.1, 0.2, 0.9, 0.8, 0.95)
    assert made.run(epochs=5, unscored=2) == 0.8
    assert made.epoch == 4


def test_patience_counts_scores_and_not_steps():
    made = scores(0.5, *[0.6] * 6)
    assert made.run(epochs=1_000_000, patience=2, interval=3) == 0.5
    assert made.asked == [0, 3, 6]


def test_an_interval_counts_the_steps_of_an_epoch():
    made = scores(*FALLING)
    stopping = EarlyStopping(made.network, made.score, interval=4)
    stopping.run(made.learn, 9, 3, 3, torch.Generator().manual_seed(0))
    assert made.asked == [0, 6, 9]  # three steps an epoch


# -- a running mean of weights -----------------------------------------------------------------------------------------


class Scaled(nn.Module):
    """A layer, and a scale of its data, as encoders have."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.scale: Tensor
        self.register_buffer("scale", torch.ones(3))

    def forward(self, values: Tensor) -> Tensor:
        return self.layer(values / self.scale)


@torch.no_grad()
def stepped(net: Scaled, by: float) -> None:
    for parameter in net.parameters():
        parameter.add_(by)


@pytest.fixture
def scaled() -> Scaled:
    with initialisation(generator(0, "scaled")):
        return Scaled()


def test_the_average_moves_by_a_share_of_the_way_at_every_step(scaled):
    average = Average(scaled, 0.9)
    expected = weights(scaled)
    for by in (1.0, -3.0, 0.5):
        stepped(scaled, by)
        average.update()
        expected = 0.9 * expected + 0.1 * weights(scaled)
        torch.testing.assert_close(weights(average.network), expected)
    assert not any(parameter.requires_grad for parameter in average.network.parameters())
    assert all(parameter.requires_grad for parameter in scaled.parameters())


def test_at_rate_0_the_average_is_the_network_itself(scaled):
    average = Average(scaled, 0.0)
    assert average.network is scaled
    stepped(scaled, 1.0)
    before = weights(scaled)
    average.update()
    average.reset()
    assert torch.equal(weights(scaled), before)
    assert all(parameter.requires_grad for parameter in scaled.parameters())


def test_the_average_shares_no_memory_with_the_network(scaled):
    average = Average(scaled, 0.9)
    before = weights(average.network)
    stepped(scaled, 1.0)
    scaled.scale.fill_(7.0)
    assert torch.equal(weights(average.network), before)
    assert average.network.scale.tolist() == [1.0] * 3


def test_reset_takes_over_the_scale_of_the_data_as_well(scaled, source):
    average = Average(scaled, 0.9)
    stepped(scaled, 1.0)
    scaled.scale.copy_(torch.tensor([1e3, 1e-3, 5.0]))
    average.reset()
    values = torch.rand(4, 3, generator=source)
    assert torch.equal(average.network(values), scaled(values))
    assert average.network.scale is not scaled.scale
