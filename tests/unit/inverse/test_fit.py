"""When an inverse model may be believed."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.inverse import Fit
from tacit.inverse.base import FEWEST, SIGNIFICANCE, is_uniform, leanings, worth


def fit(
    loss: float = 0.5, chance: float = 0.75, error: float = 0.01, rounds: int = 100, worth: float = math.inf
) -> Fit:
    return Fit(loss, chance, error, rounds, held_out=True, worth=worth)


def test_the_gain_is_what_the_loss_lies_below_chance():
    assert fit(loss=0.5, chance=0.75).gain == 0.25
    assert fit(loss=0.8, chance=0.75).gain == pytest.approx(-0.05)


@pytest.mark.parametrize(
    ("found", "believed"),
    [
        (fit(error=0.24 / SIGNIFICANCE), True),
        (fit(error=0.25 / SIGNIFICANCE), False),
        (fit(loss=0.75), False),
        (fit(loss=0.8, error=0.0), False),
        (fit(rounds=FEWEST), True),
        (fit(rounds=FEWEST - 1), False),
        (fit(rounds=10_000, worth=FEWEST), True),
        (fit(rounds=10_000, worth=FEWEST - 1), False),
        (fit(loss=math.nan), False),
        (fit(loss=-math.inf), False),
        (fit(error=math.nan), False),
        (fit(error=math.inf), False),
    ],
)
def test_only_a_clear_gain_on_enough_rounds_is_better_than_chance(found, believed):
    assert found.better_than_chance is believed


def test_a_fit_says_on_which_rounds_it_was_measured():
    assert str(fit()) == (
        "loss 0.5000 on 100 held-out rounds against 0.7500 for chance (gain 0.2500, standard error 0.0100)"
    )
    assert "100 fitted rounds" in str(Fit(0.5, 0.75, 0.01, 100, held_out=False))
    assert "on 100 held-out rounds, worth 7.0 uniform ones, against" in str(fit(worth=7))
    assert "worth" not in str(fit(worth=100))


@pytest.mark.parametrize("K", [2, 3, 7, 10, 49])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_uniform_rounds_lean_nowhere_and_are_worth_what_they_are_to_the_last_bit(K, kind):
    p = torch.full((1_000, K), 1 / K, dtype=kind)
    assert is_uniform(p)
    assert torch.equal(leanings(p), torch.zeros(1_000, K))
    assert worth(p) == 1_000


def test_a_round_is_worth_the_chance_that_it_left_to_other_actions():
    p = torch.tensor([[0.25] * 4, [0.625, 0.125, 0.125, 0.125], [1.0, 0.0, 0.0, 0.0]])
    assert not is_uniform(p)
    assert worth(p) == pytest.approx(1 + 0.5 + 0)


def test_leanings_are_logarithms_of_the_probabilities_up_to_a_constant():
    p = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    torch.testing.assert_close(leanings(p).softmax(1), p)
