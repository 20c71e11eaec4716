"""From batches to points of a curve, and over seeds."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.evaluation.progressive import Curve as Progress
from tacit.experiments.curves import after_exploration, band, windowed

NAN = float("nan")


def progress(*batches: tuple[int, float, float]) -> Progress:
    curve = Progress()
    for size, hidden, decoded in batches:
        curve.add(torch.full((size,), hidden), torch.full((size,), decoded))
    return curve


def test_points_are_means_of_windows_and_the_last_may_be_shorter():
    points = windowed(progress((2, 0.0, 0.5), (2, 1.0, 0.5), (2, 0.5, 0.25), (1, 1.0, 1.0)), 4)
    assert points == {"rounds": [4, 7], "hidden": [0.5, pytest.approx(2 / 3, abs=1e-5)], "decoded": [0.5, 0.5]}


def test_a_window_with_rounds_that_were_not_decoded_has_no_decoded_reward():
    assert windowed(progress((2, 0.0, NAN), (2, 0.0, 1.0), (4, 0.0, 1.0)), 4)["decoded"] == [None, 1.0]


def test_rewards_after_exploration_weigh_rounds_not_batches():
    assert after_exploration(progress((5, 0.1, NAN), (3, 1.0, 0.5), (1, 0.0, 0.1))) == {
        "hidden": pytest.approx(0.75), "decoded": pytest.approx(0.4)
    }  # fmt: skip
    assert after_exploration(progress((5, 0.1, NAN))) == {"hidden": None, "decoded": None}


def test_a_band_has_the_points_that_every_seed_has():
    runs = [{"rounds": [4, 8], "decoded": [None, 1.0]}, {"rounds": [4, 8], "decoded": [0.5, 0.0]}]
    curve = band("decoded", runs, "decoded", dashed=True)
    assert (curve.label, list(curve.x), list(curve.y), curve.dashed) == ("decoded", [8], [0.5], True)
    assert list(curve.high) == [pytest.approx(0.5 + math.sqrt(0.5))]
    assert list(band("decoded", runs[:1] * 2, "decoded").x) == [8]


def test_a_band_may_be_empty():
    curve = band("decoded", [{"rounds": [4], "decoded": [None]}] * 2, "decoded")
    assert (list(curve.x), list(curve.y), list(curve.low)) == ([], [], [])
