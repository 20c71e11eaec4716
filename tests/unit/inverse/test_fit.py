"""When an inverse model may be believed."""

from __future__ import annotations

import math

import pytest

from tacit.inverse import Fit
from tacit.inverse.base import FEWEST, SIGNIFICANCE


def fit(loss: float = 0.5, chance: float = 0.75, error: float = 0.01, rounds: int = 100) -> Fit:
    return Fit(loss, chance, error, rounds, held_out=True)


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
