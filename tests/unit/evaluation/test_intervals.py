"""The lower bound: what it is worked out from, how often it is wrong, and how tight it is."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tacit.evaluation.intervals import LARGEST_BET, lower_bound

RISK = 0.025


def by_hand(rounds: list[float], floor: list[float], risk: float, planned: int) -> float:
    """The largest of 10,000 candidates for the mean that the capital refuses, each round from those before it."""
    bets, total, squares = [], 0.0, 0.0
    for t, (value, lowest) in enumerate(zip(rounds, floor, strict=True)):
        variance = (0.25 + squares) / (t + 1)
        bets.append(min(math.sqrt(2 * math.log(1 / risk) / (planned * variance)), LARGEST_BET / (lowest + 1)))
        total += value
        squares += (value - (0.5 + total) / (t + 2)) ** 2
    refused = 0.0
    for candidate in range(1, 10_000):
        m = candidate / 10_000
        capital = math.prod(1 + bet * (value - m) for bet, value in zip(bets, rounds, strict=True))
        if capital >= 1 / risk:
            refused = m
    return refused


@pytest.mark.parametrize("planned", [60, 200])
def test_the_bound_is_where_the_capital_reaches_one_over_the_risk(planned, source):
    weights = 1 + 3 * torch.rand(60, generator=source, dtype=torch.float64)
    floor = 0.5 * torch.rand(60, generator=source, dtype=torch.float64).cummax(0).values
    rounds = weights * torch.rand(60, generator=source, dtype=torch.float64) - floor
    expected = by_hand(rounds.tolist(), floor.tolist(), RISK, planned)
    assert 0 < expected < 1
    assert float(lower_bound(rounds, floor, RISK, planned)) == pytest.approx(expected, abs=1e-4)


def test_many_logs_at_once_are_as_one_by_one(source):
    rounds = torch.rand(3, 50, generator=source, dtype=torch.float64)
    floor = torch.zeros_like(rounds)
    together = lower_bound(rounds, floor, RISK, 50)
    assert together.tolist() == [float(lower_bound(row, floor[0], RISK, 50)) for row in rounds]


def test_rounds_without_reward_bound_nothing_and_full_ones_nearly_everything():
    n = 1_000
    nothing, floor = torch.zeros(n, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    assert float(lower_bound(nothing, floor, RISK, n)) == 0
    assert 0.98 < float(lower_bound(nothing + 1, floor, RISK, n)) < 1


def drifting(runs: int, n: int, source: torch.Generator) -> Tensor:
    """Rounds (runs, n) of mean 0.3 whose weights grow after reward and shrink after none: chance decides the spread."""
    uniforms = torch.rand(runs, n, generator=source, dtype=torch.float64)
    weights, columns = torch.full((runs,), 2.0, dtype=torch.float64), []
    for t in range(n):
        columns.append(torch.where(uniforms[:, t] < 0.3 / weights, weights, 0.0))
        weights = torch.where(columns[-1] > 0, weights * 1.5, weights * 0.95).clamp(1, 50)
    return torch.stack(columns, 1)


def coin(runs: int, n: int, source: torch.Generator) -> Tensor:
    return (torch.rand(runs, n, generator=source, dtype=torch.float64) < 0.3).double()


@pytest.mark.parametrize("make", [drifting, coin])
def test_the_bound_exceeds_the_mean_no_more_often_than_stated(make, source):
    runs, n, risk = 1_000, 400, 0.1
    rounds = make(runs, n, source)
    wrong = torch.zeros(runs, dtype=torch.bool)
    for t in (50, 100, 200, n):  # looked at four times, and wrong if it ever was
        part = rounds[:, :t]
        wrong |= lower_bound(part, torch.zeros_like(part), risk, n) > 0.3
    # Three standard errors above the risk; that some are wrong shows that the bound is not empty.
    assert 0 < float(wrong.double().mean()) < risk + 3 * math.sqrt(risk * (1 - risk) / runs)


@pytest.mark.parametrize("mean", [0.05, 0.5])
def test_it_is_at_most_two_thirds_wider_than_the_normal_approximation(mean, source):
    n = 5_000
    rounds = (torch.rand(50, n, generator=source, dtype=torch.float64) < mean).double()
    below = rounds.mean(1) - lower_bound(rounds, torch.zeros_like(rounds), RISK, n)
    normal = 1.96 * rounds.std(1) / math.sqrt(n)
    # sqrt(2 log(1/risk)) / 1.96 = 1.39 is the price of holding at any time; the rest is the variance, found on the way.
    assert 1.2 < float((below / normal).mean()) < 1.6
