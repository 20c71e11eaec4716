"""Inverse-gap weighting word for word, its schedules, and draws that follow their probabilities."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidInputError
from tacit.exploration import Constant, SquareRoot, draw, inverse_gap, uniform

predictions = st.integers(2, 8).flatmap(lambda K: st.lists(st.floats(0, 1), min_size=K, max_size=K))
gammas = st.floats(0, 1e6)

# A chi-square statistic with 4 degrees of freedom exceeds this in one of 1,000 cases.
CHI_SQUARE_4 = 18.47


def paper_weights(values: list[float], gamma: float) -> list[float]:
    """Eq. (3) of the paper, word for word."""
    K, greedy = len(values), values.index(max(values))
    p = [1 / (K + gamma * (values[greedy] - value)) for value in values]
    p[greedy] = 1 - sum(p[a] for a in range(K) if a != greedy)
    return p


def weights(values: list[float], gamma: float) -> list[float]:
    return inverse_gap(torch.tensor([values], dtype=torch.float64), gamma)[0].tolist()


@given(predictions, gammas)
def test_inverse_gap_weighting_is_the_papers(values, gamma):
    assert weights(values, gamma) == pytest.approx(paper_weights(values, gamma), abs=1e-12)


@given(predictions, gammas)
def test_the_weights_are_probabilities_and_none_is_forgotten(values, gamma):
    p = weights(values, gamma)
    K, greedy = len(values), values.index(max(values))
    assert sum(p) == pytest.approx(1, abs=1e-12)
    assert p[greedy] >= 1 / K - 1e-12
    # Gaps are at most 1, so no action is rarer than this.
    assert min(p[:greedy] + p[greedy + 1 :]) >= 1 / (K + gamma) - 1e-12


@given(predictions)
def test_gamma_0_is_uniform(values):
    assert weights(values, 0.0) == pytest.approx([1 / len(values)] * len(values))


@given(predictions, st.floats(1, 100))
def test_a_larger_gap_is_never_drawn_more_often(values, gamma):
    p = weights(values, gamma)
    for worse, better in permutations(range(len(values)), 2):
        assert values[worse] >= values[better] or p[worse] <= p[better] + 1e-12


def test_ties_go_to_the_lowest_action():
    assert weights([0.2, 0.7, 0.7], 10.0) == pytest.approx([1 / 8, 1 - 1 / 8 - 1 / 3, 1 / 3])


def test_every_round_has_its_own_gamma():
    values = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    assert inverse_gap(values, torch.tensor([[0.0], [2.0]])).tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_uniform_is_one_over_k():
    assert uniform(2, 4).tolist() == [[0.25] * 4] * 2


def test_the_schedules_are_constant_and_the_square_root_of_kt():
    t = torch.tensor([1, 4, 60_000])
    assert Constant(7.5).gamma(t, 10).tolist() == [7.5] * 3
    assert SquareRoot().gamma(t, 10).tolist() == pytest.approx([math.sqrt(10), math.sqrt(40), math.sqrt(600_000)])
    assert SquareRoot(4.0).gamma(t, 3).tolist() == pytest.approx([4 * math.sqrt(3 * n) for n in t.tolist()])
    assert Constant(7.5).gamma(t, 10).is_floating_point()


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize(("schedule", "argument"), [(Constant, "gamma"), (SquareRoot, "scale")])
def test_a_schedule_that_is_no_positive_number_is_refused(schedule, argument, value):
    with pytest.raises(InvalidInputError, match=f"{argument}: must be a positive number"):
        schedule(value)


def test_draws_follow_their_probabilities(source):
    # 50,000 draws by a fixed seed; wrong probabilities would exceed the bound by far, right ones rarely do.
    n, p = 50_000, torch.tensor([0.1, 0.02, 0.5, 0.08, 0.3])
    drawn = draw(p.expand(n, 5), torch.rand(n, generator=source)).bincount(minlength=5)
    assert float(((drawn - n * p).square() / (n * p)).sum()) < CHI_SQUARE_4


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1)), min_size=2, max_size=8).filter(any),
    st.one_of(st.just(0.0), st.just(1 - 2**-24), st.floats(0, 1, exclude_max=True, width=32)),
)
def test_an_action_of_probability_0_is_never_drawn(chances, number):
    p = torch.tensor([chances])
    p = p / p.sum()
    (action,) = draw(p, torch.tensor([number])).tolist()
    assert p[0, action] > 0


def test_a_total_short_of_1_by_rounding_still_gives_an_action_that_can_be_drawn():
    p = torch.tensor([[0.5, 0.25, 0.2499, 0.0]])
    assert draw(p, torch.tensor([0.99999])).tolist() == [2]


def test_a_draw_can_be_repeated():
    p, numbers = torch.tensor([[0.3, 0.7], [0.3, 0.7]]), torch.tensor([0.29, 0.31])
    assert draw(p, numbers).tolist() == draw(p, numbers).tolist() == [0, 1]


def test_leading_axes_are_kept():
    p = torch.tensor([0.0, 1.0]).expand(2, 3, 2)
    assert draw(p, torch.zeros(2, 3)).tolist() == [[1, 1, 1], [1, 1, 1]]
