"""Two views of one reward: how long there is exploration before the first is trusted."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import tacit
from tacit.algorithms import two_view
from tacit.algorithms.two_view import TwoView
from tacit.environments.finite import FiniteEnvironment
from tacit.errors import InvalidInputError, NotFittedError
from tacit.inverse import FiniteInverse
from tests import worlds
from tests.unit.algorithms.certain import CERTAIN, EXPLORE, classes, learner, play


def knowing(monkeypatch: pytest.MonkeyPatch, *shares: float) -> None:
    """Let it know a good action for such shares of the contexts, one attempt after the other."""
    monkeypatch.setattr(two_view, "FEWEST", math.inf)  # what is made up here would be refined with, too
    left = list(shares)

    def values(self: TwoView, contexts: Tensor) -> Tensor:
        share = left.pop(0) if len(left) > 1 else left[0]
        # A fifth promises 1, and with it the best tenth. The others lower the mean to `share`.
        best = torch.where(torch.arange(len(contexts)) < 0.2 * len(contexts), 1.0, (share - 0.2) / 0.8)
        return torch.stack([best, torch.zeros_like(best), torch.zeros_like(best), torch.zeros_like(best)], 1)

    monkeypatch.setattr(TwoView, "_all_values", values)


def explored(acting: TwoView, rounds: int) -> int:
    play(acting, rounds)
    return acting.explored


@pytest.mark.parametrize(
    ("shares", "times"),
    [
        ((0.9,), 1), ((0.76,), 1), ((0.3, 0.8), 2), ((0.3, 0.5, 0.7, 0.9), 8),
        ((0.3, 0.31), 2), ((0.3, 0.5, 0.51), 4), ((0.5, 0.3), 2),
    ],
    ids=str,
)  # fmt: skip
def test_it_explores_twice_as_long_while_a_good_action_is_known_too_seldom_and_that_helps(monkeypatch, shares, times):
    monkeypatch.setattr(two_view, "FIRST", 100)
    knowing(monkeypatch, *shares)
    # Warnings are errors here: that it goes on exploring is no reason for one.
    assert explored(learner(explore="auto"), 4_000) == 400 * times


def test_how_much_is_known_nearly_everywhere_can_be_set(monkeypatch):
    monkeypatch.setattr(two_view, "FIRST", 100)
    monkeypatch.setattr(two_view, "KNOWN", 0.4)
    knowing(monkeypatch, 0.3, 0.5, 0.9)
    assert explored(learner(explore="auto"), 4_000) == 800


def test_with_a_number_of_rounds_it_does_not_ask_what_is_known(monkeypatch):
    knowing(monkeypatch, 0.3, 0.5, 0.7, 0.9)
    assert explored(learner(), 1_000) == EXPLORE


def test_that_exploration_takes_long_is_told_only_when_it_is_late(monkeypatch):
    monkeypatch.setattr(two_view, "FIRST", 100)
    monkeypatch.setattr(two_view, "LAST", 400)
    knowing(monkeypatch, 0.3, 0.4, 0.5, 0.6, 0.9)
    acting = learner(explore="auto")
    play(acting, 1_550)
    with pytest.warns(tacit.DecoderWarning, match="after 1600 .* a good action is known for 50 %") as told:
        play(acting, 50)
    assert [warning.filename for warning in told] == [worlds.__file__]
    with pytest.warns(tacit.DecoderWarning, match="after 2400 uniform rounds"):  # from there on half as long again
        play(acting, 800)
    assert explored(acting, 2_000) == 3_600


def test_noise_is_explored_without_a_word_until_it_is_late(monkeypatch):
    monkeypatch.setattr(two_view, "FIRST", 50)
    monkeypatch.setattr(two_view, "LAST", 200)
    acting, noise = learner(explore="auto"), worlds.Noise(FiniteEnvironment(CERTAIN, 0))
    worlds.play(acting, noise, 750)
    with pytest.warns(tacit.DecoderWarning, match="after 800 uniform rounds: the feedback does not tell"):
        worlds.play(acting, noise, 50)
    assert acting.exploring
    assert bool((acting.choose([0, 1]).probabilities == 0.25).all())
    with pytest.raises(NotFittedError):
        acting.greedy([0])


def test_rounds_of_the_longest_exploration_are_all_learned_from(monkeypatch):
    monkeypatch.setattr(two_view, "FIRST", 100)
    knowing(monkeypatch, 0.3, 0.5, 0.7, 0.9)
    sizes = []
    fit = FiniteInverse.fit
    monkeypatch.setattr(
        FiniteInverse, "fit", lambda self, *both: sizes.append(sum(map(len, both))) or fit(self, *both)
    )  # fmt: skip
    play(learner(explore="auto"), 3_200)
    assert sizes == [400, 800, 1_600, 3_200]


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explore", [0, -1, True, 1.5, "yes", None, math.nan, tacit.Horizon(10**6, 128, 8)], ids=str)
def test_how_long_to_explore_is_a_number_of_rounds_or_auto(explore):
    with pytest.raises(InvalidInputError) as refusal:
        learner(explore=explore)
    assert refusal.value.argument == "explore"
    assert "auto" in str(refusal.value)


@pytest.mark.parametrize("schedule", [1.0, "square root"])
def test_a_schedule_is_a_schedule(schedule):
    with pytest.raises(InvalidInputError, match="schedule"):
        learner(schedule=schedule)


@pytest.mark.parametrize("models", ["finite", "networks"])
def test_a_single_round_is_no_reason_to_act_nor_to_break(models):
    made = classes() if models == "finite" else worlds.networks(tacit.InverseTraining(contrast_steps=0, steps=4))
    acting = worlds.two_view(FiniteEnvironment(CERTAIN, 0), made, explore=1)
    with pytest.warns(tacit.DecoderWarning, match="too few") as told:
        play(acting, 12, batch=1)
    assert acting.exploring
    assert len(told) > 1
    assert str(told[0].message).startswith("after 1 uniform rounds: a single round is too few to learn from")
