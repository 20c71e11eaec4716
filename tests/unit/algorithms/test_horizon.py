"""How long to explore, from the number of rounds alone."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tacit.algorithms import Horizon, theory
from tacit.errors import InvalidInputError
from tacit.oracles.vovk import regret_bound

K, SIGMA = 8, 0.15


@pytest.fixture
def horizon() -> Horizon:
    return Horizon(10**7, inverse_models=192, reward_models=12)


def test_n_and_gamma_are_the_theorems(horizon):
    size = 10**7, K, SIGMA, 192
    assert horizon.off_policy_rounds(K, SIGMA) == theory.off_policy_rounds(*size)
    gamma = theory.on_policy_gamma(*size, regret_bound(12))
    assert horizon.gamma(K, SIGMA) == pytest.approx(gamma)
    assert horizon.on_policy_rounds(K, SIGMA) == theory.on_policy_rounds(*size, gamma)


@given(st.floats(0.001, 1.0), st.integers(2, 64))
def test_the_scale_keeps_exploration_by_both_means_equally_large(scale, actions):
    """N and T K / gamma are equal in the proof where the oracle's regret is small; they must stay so."""
    horizon = Horizon(10**8, inverse_models=192, reward_models=12, scale=scale)
    N = horizon.on_policy_rounds(actions, SIGMA)
    assert 10**8 * actions / horizon.gamma(actions, SIGMA) == pytest.approx(N, rel=1e-3)
    assert horizon.off_policy_rounds(actions, SIGMA) == pytest.approx(N, rel=1e-3)
    assert N == pytest.approx(scale * theory.off_policy_bound(10**8, actions, SIGMA, 192), rel=1e-3)


def test_a_horizon_that_exploration_would_fill_is_refused():
    short = Horizon(1_000, inverse_models=192, reward_models=12)
    with pytest.raises(InvalidInputError, match=r"asks for N = .*leaves .499.; play longer, or give a smaller `scale`"):
        short.off_policy_rounds(K, SIGMA)
    with pytest.raises(InvalidInputError, match=r"leaves .999.; play longer"):
        short.on_policy_rounds(K, SIGMA)


def test_something_is_left_to_play_after_exploration():
    """Of 21 rounds, 2 * 10 uniform ones leave one; of 20 they leave none."""
    exact = theory.off_policy_bound(21, K, SIGMA, 2)
    just = Horizon(21, inverse_models=2, reward_models=2, scale=9.999 / exact)
    assert just.off_policy_rounds(K, SIGMA) == 10
    with pytest.raises(InvalidInputError, match=r"leaves .9.;"):
        Horizon(20, inverse_models=2, reward_models=2, scale=9.999 / exact).off_policy_rounds(K, SIGMA)


@pytest.mark.parametrize(("changes", "argument"), [
    ({"rounds": 0}, "rounds"), ({"rounds": 1e5}, "rounds"), ({"reward_models": 1}, "reward_models"),
    ({"scale": 0.0}, "scale"), ({"scale": math.nan}, "scale"),
])  # fmt: skip
def test_a_horizon_that_means_nothing_is_refused(changes, argument):
    with pytest.raises(InvalidInputError) as caught:
        Horizon(**({"rounds": 1_000, "inverse_models": 192, "reward_models": 12, "scale": 0.01} | changes))
    assert caught.value.argument == argument


def test_a_class_without_candidates_is_refused():
    empty = Horizon(1_000, inverse_models=0, reward_models=12, scale=0.01)
    for ask in (empty.off_policy_rounds, empty.on_policy_rounds, empty.gamma):
        with pytest.raises(InvalidInputError, match="class_size"):
            ask(K, SIGMA)
