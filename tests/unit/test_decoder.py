"""The decoder's mathematics against the paper: the posterior, both lemmas, the ramp, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tacit.decoder import Decoder, G, posterior, sigma_of
from tacit.errors import IdentifiabilityError, InvalidInputError

# Rounding in float64, divided by ramps that the strategies below keep wider than 1e-4.
ROUNDING = 1e-9

shares = st.one_of(st.just(0.0), st.floats(1e-6, 1))  # nothing so small that it has no digits left


@dataclass(frozen=True)
class World:
    """f (X, K), phi (X, Y) and the distribution of feedback (X, 2, Y) given context and reward."""

    f: Tensor
    phi: Tensor
    feedback: Tensor
    alpha: float
    theta: float

    @property
    def h(self) -> Tensor:
        """(X, Y, K)."""
        return posterior(self.f[:, None], self.phi)


@st.composite
def rewards(draw: st.DrawFn, K: int, alpha: float, theta: float) -> list[float]:
    """Expected rewards of K actions: one of at least theta, all of them together at most alpha."""
    best = theta + draw(shares) * (min(1.0, alpha) - theta)
    weights = draw(st.lists(shares, min_size=K - 1, max_size=K - 1))
    scale = draw(shares) * (alpha - best) / max(1.0, sum(weights))
    others = [min(1.0, scale * weight) for weight in weights]
    place = draw(st.integers(0, K - 1))
    return [*others[:place], best, *others[place:]]


@st.composite
def meanings(draw: st.DrawFn, Y: int) -> tuple[list[int], list[list[float]]]:
    """Which feedback means reward 1, at least one of each kind, and how often each comes given reward 0 and 1."""
    phi = draw(st.permutations([0, 1, *draw(st.lists(st.integers(0, 1), min_size=Y - 2, max_size=Y - 2))]))
    often = draw(st.lists(st.floats(0.01, 1), min_size=Y, max_size=Y))
    totals = [sum(w for w, r in zip(often, phi, strict=True) if r == reward) for reward in (0, 1)]
    return phi, [
        [w / totals[reward] if r == reward else 0.0 for w, r in zip(often, phi, strict=True)] for reward in (0, 1)
    ]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any finite world that meets the paper's three assumptions."""
    X, K, Y = draw(st.integers(1, 3)), draw(st.integers(2, 6)), draw(st.integers(2, 5))
    alpha = draw(st.floats(0.05, 0.95)) * K / 2
    lowest = alpha / (K - alpha)
    theta = lowest + draw(st.floats(0.01, 1)) * (min(1.0, alpha) - lowest)
    f = [draw(rewards(K, alpha, theta)) for _ in range(X)]
    phi, feedback = zip(*(draw(meanings(Y)) for _ in range(X)), strict=True)
    return World(*(torch.tensor(table, dtype=torch.float64) for table in (f, phi, feedback)), alpha, theta)


def by_enumeration(world: World, x: int, y: int, p: list[float]) -> list[float] | None:
    """Pr[a | x, y] from the joint distribution of action, reward and feedback; None if y cannot happen."""
    joint = [0.0] * len(p)
    for a, chance in enumerate(p):
        for reward in (0, 1):
            f = float(world.f[x, a])
            joint[a] += chance * (f if reward else 1 - f) * float(world.feedback[x, reward, y])
    return [part / sum(joint) for part in joint] if sum(joint) > 0 else None


def cells(world: World) -> list[tuple[int, int]]:
    return [(x, y) for x in range(len(world.f)) for y in range(world.phi.shape[1])]


@given(worlds())
def test_the_posterior_under_uniform_actions_is_bayes_rule(world):
    K = world.f.shape[1]
    for x, y in cells(world):
        assert world.h[x, y].tolist() == pytest.approx(by_enumeration(world, x, y, [1 / K] * K), abs=ROUNDING)


@given(worlds(), st.data())
def test_the_posterior_under_any_policy_is_bayes_rule(world, data):
    weights = data.draw(
        st.lists(st.one_of(st.just(0.0), st.floats(0.01, 1)), min_size=world.f.shape[1], max_size=world.f.shape[1])
        .filter(any)
    )  # fmt: skip
    p = [weight / sum(weights) for weight in weights]
    h = posterior(world.f[:, None], world.phi, torch.tensor(p, dtype=torch.float64))
    for x, y in cells(world):
        expected = by_enumeration(world, x, y, p)
        if expected is not None:
            assert h[x, y].tolist() == pytest.approx(expected, abs=ROUNDING)


@given(worlds(), st.booleans())
def test_the_decoded_reward_never_exceeds_the_true_one(world, step):
    decoder = Decoder.from_assumption(world.alpha, world.theta, world.f.shape[1])
    decoder = decoder.step() if step else decoder
    decoded = G(world.h, decoder.beta, decoder.sigma)
    assert bool((decoded <= world.phi[..., None]).all())


@given(worlds())
def test_the_ramp_gives_the_best_action_its_true_reward(world):
    decoder = Decoder.from_assumption(world.alpha, world.theta, world.f.shape[1])
    best = world.f.argmax(-1)
    for x, y in cells(world):
        decoded = decoder.decode(world.h[x, y][None], best[x : x + 1])
        assert float(decoded) == pytest.approx(float(world.phi[x, y]), abs=ROUNDING)


@given(worlds())
def test_the_widest_ramp_never_decodes_more_than_the_true_reward(world):
    decoder = Decoder.widest(world.alpha, world.theta, world.f.shape[1])
    decoded = G(world.h, decoder.beta, decoder.sigma)
    # It begins where the posteriors of reward 0 may end, so that rounding can lift one of them onto it.
    assert bool((decoded <= world.phi[..., None] + ROUNDING / decoder.sigma).all())


@given(worlds())
def test_the_widest_ramp_gives_the_best_action_its_true_reward(world):
    decoder = Decoder.widest(world.alpha, world.theta, world.f.shape[1])
    best = world.f.argmax(-1)
    for x, y in cells(world):
        decoded = decoder.decode(world.h[x, y][None], best[x : x + 1])
        assert float(decoded) == pytest.approx(float(world.phi[x, y]), abs=ROUNDING / decoder.sigma)


@given(worlds())
def test_the_widest_ramp_is_twice_as_wide_as_that_of_lemma_4_and_ends_where_it_does(world):
    K = world.f.shape[1]
    narrow, wide = (make(world.alpha, world.theta, K) for make in (Decoder.from_assumption, Decoder.widest))
    assert wide.sigma == pytest.approx(2 * narrow.sigma)
    assert wide.theta_over_alpha == narrow.theta_over_alpha
    assert wide.beta == pytest.approx(1 / (K - world.alpha), abs=ROUNDING)


@given(worlds())
def test_the_step_gives_the_best_action_its_true_reward(world):
    # The step jumps at the very value that the best action's posterior may have: lowered by rounding.
    decoder = Decoder(world.theta / world.alpha * (1 - ROUNDING), 0.0)
    best = world.f.argmax(-1)
    for x, y in cells(world):
        assert float(decoder.decode(world.h[x, y][None], best[x : x + 1])) == float(world.phi[x, y])


def test_the_posterior_stays_a_number_where_reward_1_or_0_is_certain():
    f, p = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])
    assert posterior(f, torch.tensor(1.0), p).tolist() == [1.0, 0.0, 0.0]
    assert posterior(f, torch.tensor(0.0)).tolist() == [0.0, 0.5, 0.5]


def paper_ramp(v: float, beta: float, sigma: float) -> float:
    """The definition of G in Lemma 4, word for word."""
    return 1 / sigma * (v - beta) * (beta <= v < beta + sigma) + (v >= beta + sigma)


ramps = st.tuples(st.floats(-1, 1), st.floats(1e-3, 1))


@given(st.floats(-2, 3), ramps)
def test_the_ramp_is_the_papers(v, ramp):
    beta, sigma = ramp
    found = float(G(torch.tensor(v, dtype=torch.float64), beta, sigma))
    assert found == pytest.approx(paper_ramp(v, beta, sigma), abs=ROUNDING)
    assert 0 <= found <= 1


@given(st.floats(-2, 3), st.floats(-2, 3), ramps)
def test_the_ramp_changes_by_at_most_one_over_sigma(v, w, ramp):
    beta, sigma = ramp
    values = G(torch.tensor([v, w], dtype=torch.float64), beta, sigma)
    assert float((values[0] - values[1]).abs()) <= abs(v - w) / sigma + ROUNDING


@given(ramps)
def test_one_over_sigma_is_attained_all_along_the_ramp(ramp):
    beta, sigma = ramp
    steps = torch.linspace(0, 1, 11, dtype=torch.float64)
    values = G(beta + sigma * steps, beta, sigma)
    assert values.tolist() == pytest.approx(steps.tolist(), abs=ROUNDING)


def test_sigma_0_is_the_step_and_counts_its_edge():
    v = torch.tensor([0.4999, 0.5, 0.5001])
    assert G(v, 0.5, 0.0).tolist() == [0.0, 1.0, 1.0]
    assert G(v, 0.5, 0.0).dtype == v.dtype


@given(st.floats(-2, 3), st.floats(-1, 1))
def test_a_narrow_ramp_is_the_step_but_for_its_width(v, beta):
    width = 1e-6
    if not beta - ROUNDING < v < beta + width:
        value = torch.tensor(v, dtype=torch.float64)
        assert G(value, beta, width) == pytest.approx(float(G(value, beta, 0.0)), abs=ROUNDING / width)


def test_sigma_is_half_the_room_that_the_assumption_leaves():
    assert sigma_of(alpha=1, theta=1, K=10) == pytest.approx((1 - 1 / 9) / 2)
    assert sigma_of(alpha=2, theta=0.5, K=8) == pytest.approx((0.25 - 1 / 6) / 2)


@settings(max_examples=300)
@given(st.floats(), st.floats(), st.integers(-2, 12))
def test_whatever_is_accepted_leaves_a_ramp_above_all_that_reward_0_can_reach(alpha, theta, K):
    try:
        decoder = Decoder.from_assumption(alpha, theta, K)
    except InvalidInputError:
        return
    assert decoder.sigma > 0
    assert 1 / (K - alpha) <= decoder.beta + ROUNDING
    assert decoder.beta + decoder.sigma <= 1 + ROUNDING


@pytest.mark.parametrize(
    ("alpha", "theta", "K", "argument"),
    [
        (5.0, 1.0, 10, "alpha"),
        (1.0, 0.9, 2, "alpha"),
        (7.0, 1.0, 10, "alpha"),
        (0.0, 0.5, 10, "alpha"),
        (-1.0, 0.5, 10, "alpha"),
        (math.nan, 0.5, 10, "alpha"),
        (math.inf, 0.5, 10, "alpha"),
        (1.0, math.nan, 10, "theta"),
        (1.0, math.inf, 10, "theta"),
        (1.0, 0.0, 10, "theta"),
        (1.0, -0.5, 10, "theta"),
        (1.5, 1.01, 10, "theta"),
        (0.5, 0.6, 10, "theta"),
        (1.0, 1 / 9, 10, "theta"),
        (1.0, 0.1, 10, "theta"),
        (4.0, 0.6, 10, "theta"),
        (0.05, math.nextafter(0.05 / 1.95, 1), 2, "theta"),  # above the limit, but rounding leaves no ramp
    ],
)
def test_rewards_that_cannot_be_told_apart_are_refused(alpha, theta, K, argument):
    for refuse in (sigma_of, Decoder.from_assumption, Decoder.widest):
        with pytest.raises(IdentifiabilityError, match=f"^{argument}: ") as caught:
            refuse(alpha, theta, K)
        assert caught.value.argument == argument


@pytest.mark.parametrize("K", [1, 0, -2, 2.5])
def test_a_ramp_for_fewer_than_two_actions_is_refused(K):
    with pytest.raises(InvalidInputError, match="actions: expected at least two"):
        sigma_of(0.4, 0.4, K)


@pytest.mark.parametrize(
    ("theta_over_alpha", "sigma", "argument"),
    [
        (0.5, -0.1, "sigma"),
        (0.5, math.nan, "sigma"),
        (0.5, math.inf, "sigma"),
        (0.5, 0.5, "theta_over_alpha"),
        (0.5, 0.6, "theta_over_alpha"),
        (0.0, 0.0, "theta_over_alpha"),
        (-1.0, 0.0, "theta_over_alpha"),
        (1.01, 0.1, "theta_over_alpha"),
        (math.nan, 0.1, "theta_over_alpha"),
        (math.inf, 0.1, "theta_over_alpha"),
    ],
)
def test_settings_without_a_ramp_between_0_and_1_are_refused(theta_over_alpha, sigma, argument):
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        Decoder(theta_over_alpha, sigma)


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
@pytest.mark.parametrize("middle", [1 / 3, 1 / 2])
def test_every_setting_of_the_papers_search_is_accepted(middle, sigma):
    decoder = Decoder(middle + sigma / 2, sigma)
    assert decoder.beta == pytest.approx(middle - sigma / 2)


def test_the_step_of_a_decoder_keeps_its_threshold():
    decoder = Decoder(0.8, 0.3)
    assert decoder.step() == Decoder(0.8, 0.0)
    assert decoder.step().beta == 0.8


def test_rewards_are_decoded_for_the_actions_taken():
    h = torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.45, 0.55]])
    decoded = Decoder(0.6, 0.2).decode(h, torch.tensor([1, 0, 1]))
    assert decoded.tolist() == pytest.approx([1.0, 0.5, 0.75])
