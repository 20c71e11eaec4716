"""The theorems' N, gamma and bounds: as displayed in the paper, and balancing the terms that its proofs add up."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tacit.algorithms import theory
from tacit.errors import InvalidInputError

SIZE = (10_000, 8, 0.15, 192)  # T, K, sigma, |H|
L = math.log(192 * 10_000)
MANY = 10**9  # rounds, so many that rounding N up is nothing


@st.composite
def sizes(draw) -> tuple[int, int, float, int]:
    T, K = draw(st.integers(10**6, 10**12)), draw(st.integers(2, 100))
    return T, K, draw(st.floats(0.01, 0.5)), draw(st.integers(2, 10**6))


def log_class(size: tuple[int, int, float, int]) -> float:
    return math.log(size[0] * size[3])


def second_theorem(size: tuple[int, int, float, int], regression_regret: float) -> float:
    """The regret that Theorem 2 promises, up to a constant."""
    T, K, sigma, _ = size
    return math.sqrt(K * T * regression_regret) + sigma ** (-2 / 3) * (K * T) ** (2 / 3) * log_class(size) ** (1 / 3)


def printed_gamma(size: tuple[int, int, float, int], regression_regret: float) -> float:
    """The gamma that the paper prints, with the exponents that cannot be meant."""
    T, K, sigma, _ = size
    printed = sigma ** (-2 / 3) * (K * T) ** (2 / 3) * log_class(size) ** (-1 / 3)
    return min(math.sqrt(K * T / regression_regret), printed)


def test_the_first_theorem_is_as_displayed():
    display = 10_000 ** (2 / 3) * 8 ** (2 / 3) * 0.15 ** (-2 / 3) * L ** (1 / 3)
    assert theory.off_policy_bound(*SIZE) == pytest.approx(display)
    assert theory.off_policy_rounds(*SIZE) == math.ceil(display)


@given(sizes())
def test_n_of_the_first_algorithm_balances_exploration_and_exploitation(size):
    T, K, sigma, _ = size
    N = theory.off_policy_rounds(*size)
    assert T * K / sigma * math.sqrt(log_class(size) / N) == pytest.approx(N, rel=1e-3)


@given(sizes(), st.floats(1.0, 1e4))
def test_n_of_the_second_algorithm_balances_exploration_and_the_error_of_the_posterior(size, gamma):
    T, K, sigma, _ = size
    N = theory.on_policy_rounds(*size, gamma)
    assert N == math.ceil(math.sqrt(T * K * gamma * log_class(size)) / sigma)
    assert T * K * gamma * log_class(size) / (sigma**2 * N) == pytest.approx(N, rel=1e-3)


@given(sizes(), st.floats(0.1, 1e6))
def test_gamma_balances_the_terms_of_the_proof(size, regression_regret):
    T, K, sigma, _ = size
    gamma = theory.on_policy_gamma(*size, regression_regret)
    terms = gamma * regression_regret, math.sqrt(T * K * gamma * log_class(size)) / sigma
    # Both grow with gamma, T K / gamma falls: the larger of them is met, the other is below.
    assert max(terms) == pytest.approx(T * K / gamma)


@given(sizes(), st.floats(0.1, 1e6))
def test_the_second_theorem_follows(size, regression_regret):
    """Four terms, none larger than what the theorem adds up; rounding N up adds one more at most."""
    gamma = theory.on_policy_gamma(*size, regression_regret)
    N = theory.on_policy_rounds(*size, gamma)
    bound = theory.on_policy_bound(*size, regression_regret, gamma, N)
    assert bound <= 4 * second_theorem(size, regression_regret) + 1


@given(sizes(), st.floats(0.1, 1e6), st.floats(0.01, 100))
def test_no_other_gamma_does_much_better(size, regression_regret, factor):
    def bound(gamma: float) -> float:
        return theory.on_policy_bound(*size, regression_regret, gamma, theory.on_policy_rounds(*size, gamma))

    gamma = theory.on_policy_gamma(*size, regression_regret)
    assert bound(gamma) <= 4 * bound(factor * gamma) + 1


def test_the_bound_of_the_second_algorithm_is_as_displayed():
    T, K, sigma, _ = SIZE
    display = 50 * 3 + T * K * 50 * L / (sigma**2 * 700) + T * K / 50 + 700
    assert theory.on_policy_bound(*SIZE, regression_regret=3, gamma=50, N=700) == pytest.approx(display)


def test_with_the_printed_gamma_the_uniform_rounds_alone_would_exceed_the_theorem():
    excess = []
    for T in (10**9, 10**15, 10**21):
        size = (T, 8, 0.15, 192)
        N = theory.on_policy_rounds(*size, printed_gamma(size, regression_regret=5))
        excess.append(N / second_theorem(size, regression_regret=5))
        ours = theory.on_policy_rounds(*size, theory.on_policy_gamma(*size, regression_regret=5))
        assert ours <= second_theorem(size, regression_regret=5)
    # N ~ T^(3/4) against T^(2/3), each with its power of the logarithm.
    assert excess[0] > 1
    assert excess[1] / excess[0] > 10 ** (6 / 12)
    assert excess[2] / excess[1] > 10 ** (6 / 12)


@pytest.mark.parametrize("scale", [0.01, 1.0, 3.0])
def test_a_constant_in_front_is_a_constant(scale):
    assert theory.off_policy_rounds(*SIZE, scale) == math.ceil(scale * theory.off_policy_bound(*SIZE))
    exact = math.sqrt(80_000 * 50 * L) / 0.15
    assert theory.on_policy_rounds(*SIZE, 50, scale) == math.ceil(scale * exact)
    plain = theory.on_policy_gamma(*SIZE, 3)
    assert theory.on_policy_gamma(*SIZE, 3, scale) == pytest.approx(scale * plain)


@pytest.mark.parametrize(("call", "argument"), [
    (lambda: theory.off_policy_rounds(0, 8, 0.1, 10), "T"),
    (lambda: theory.off_policy_rounds(1_000, 1, 0.1, 10), "actions"),
    (lambda: theory.off_policy_rounds(1_000, 8, 0.0, 10), "sigma"),
    (lambda: theory.off_policy_rounds(1_000, 8, math.nan, 10), "sigma"),
    (lambda: theory.off_policy_rounds(1_000, 8, 0.1, 0), "class_size"),
    (lambda: theory.off_policy_rounds(1, 8, 0.1, 1), "T"),
    (lambda: theory.off_policy_rounds(1_000, 8, 0.1, 10, scale=0), "scale"),
    (lambda: theory.on_policy_gamma(1_000, 8, 0.1, 10, regression_regret=0), "regression_regret"),
    (lambda: theory.on_policy_gamma(1_000, 8, 0.1, 10, 1, scale=-1), "scale"),
    (lambda: theory.on_policy_rounds(1_000, 8, 0.1, 10, gamma=0), "gamma"),
    (lambda: theory.on_policy_rounds(1_000, 8, 0.1, 10, 1, scale=math.inf), "scale"),
    (lambda: theory.on_policy_bound(1_000, 8, 0.1, 10, 0, 1, 1), "regression_regret"),
    (lambda: theory.on_policy_bound(1_000, 8, 0.1, 10, 1, 0, 1), "gamma"),
    (lambda: theory.on_policy_bound(1_000, 8, 0.1, 10, 1, 1, 0), "N"),
])  # fmt: skip
def test_numbers_for_which_there_is_no_theorem_are_refused(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert caught.value.argument == argument
