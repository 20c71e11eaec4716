"""Exponents of power laws: right where there is one, and with an error that means what it says."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from tacit.errors import ExperimentError
from tacit.experiments.powers import Point, slope

X = (1e3, 1e4, 1e5, 1e6)


@given(st.floats(-2, 2), st.floats(1e-3, 1e3))
def test_a_power_law_has_its_exponent(exponent, factor):
    fitted = slope([Point(x, factor * x**exponent, 0.0) for x in X])
    assert fitted.value == pytest.approx(exponent, abs=1e-9)
    assert (fitted.error, fitted.bend) == (0.0, pytest.approx(0, abs=1e-9))


def test_the_error_is_the_spread_of_the_slopes_that_noise_makes(source):
    """With 5 % noise; the spread of 2,000 slopes is known to 1.6 %, and logarithms are straight to the same order."""
    noise = 0.05
    errors = [noise * x**0.7 for x in X]
    drawn = torch.randn(2_000, len(X), generator=source, dtype=torch.float64)
    slopes = [
        slope([Point(x, x**0.7 + error * float(z), error) for x, error, z in zip(X, errors, row, strict=True)])
        for row in drawn
    ]
    found = torch.tensor([fitted.value for fitted in slopes])
    exact = slope([Point(x, x**0.7, error) for x, error in zip(X, errors, strict=True)])
    assert float(found.std()) == pytest.approx(exact.error, rel=0.08)
    assert float(found.mean()) == pytest.approx(0.7, abs=5 * exact.error / 2_000**0.5)


def test_the_bend_is_what_a_crooked_curve_suggests():
    """log y = 0, 1, 0 over log x = 0, 1, 2: flat, 2/3 of squares left over, and one degree of freedom."""
    points = [Point(math.e**x, math.e**y, 0.0) for x, y in ((0, 0), (1, 1), (2, 0))]
    fitted = slope(points)
    assert fitted.value == pytest.approx(0)
    assert fitted.bend == pytest.approx(math.sqrt(2 / 3 / 2))


def test_two_points_are_no_curve():
    with pytest.raises(ExperimentError, match="three points, there are 2"):
        slope([Point(x, x, 0.0) for x in X[:2]])
