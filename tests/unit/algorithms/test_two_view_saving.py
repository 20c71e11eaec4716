"""Two views of one reward, kept: what is saved, what is remembered, and what nothing ever learns from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import tacit
from tacit.algorithms import memory, two_view
from tacit.algorithms.two_view import TwoView
from tacit.environments.finite import FiniteEnvironment
from tacit.inverse import NetworkInverse, NetworkReward, base, reward
from tacit.oracles import NetworkOracle, network
from tests import worlds
from tests.unit.algorithms.certain import CERTAIN, EXPLORE, fixed, learner, play, started


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little training that many a refinement is contradicted, which is one of the things to go on from."""
    monkeypatch.setattr(reward, "STEPS", 20)
    monkeypatch.setattr(network, "RELEARN", 10)
    monkeypatch.setattr(base, "SIGNIFICANCE", 0.0)


def numbers(acting: tacit.Learner) -> dict[str, Tensor]:
    return {f"{part}/{name}": value for part, entries in acting.parts().items() for name, value in entries.items()}


def assert_same(one: TwoView, other: TwoView) -> None:
    mine, its = numbers(one), numbers(other)
    assert mine.keys() == its.keys()
    assert [name for name in mine if not torch.equal(mine[name], its[name])] == []
    assert (one.refinement, one.fit_quality, one.explored) == (other.refinement, other.fit_quality, other.explored)


@pytest.mark.filterwarnings("ignore::tacit.DecoderWarning")
@pytest.mark.parametrize("stopped", [0, 300, 400, 650, 800, 1_000, 1_600])
@pytest.mark.parametrize("models", ["finite", "turned round", "networks", "networks without averages"])
def test_saved_in_the_middle_and_loaded_it_goes_on_to_the_same_numbers(brief, tmp_path, monkeypatch, models, stopped):
    """Before it began, exploring, just acting, between refinements, just after one, and after a contradiction."""
    if models == "turned round":
        fixed(monkeypatch, 1, 17)
    if models.startswith("networks"):
        average = {"average": 0.0} if models == "networks without averages" else {}
        training = replace(worlds.INVERSE, steps=60, **average)
        oracle = replace(worlds.ORACLE, warm_up=20, **average)
        world = worlds.signs()
        acting = worlds.two_view(world, worlds.networks(training, oracle), EXPLORE, decoder=tacit.Decoder(0.6, 0.3))
    else:
        world, acting = FiniteEnvironment(CERTAIN, 0), learner()
    resumed = None
    for played, arrival in enumerate(world.stream(2_000, 50)):
        if played * 50 == stopped:
            acting.save(tmp_path)
            resumed = tacit.load(tmp_path, device="cpu")
            assert_same(resumed, acting)
        decision = acting.choose(arrival.contexts)
        feedback, _ = arrival.react(decision.actions)
        if resumed is not None:
            again = resumed.choose(arrival.contexts)
            assert torch.equal(again.actions, decision.actions)
            assert torch.equal(again.probabilities, decision.probabilities)
            told = resumed.learn(again, feedback)
        decoded = acting.learn(decision, feedback)
        if resumed is not None:
            torch.testing.assert_close(told, decoded, atol=0, rtol=0, equal_nan=True)
    assert acting.refinement.rounds == 1_600
    assert_same(resumed, acting)


@pytest.mark.parametrize("explore", ["auto", 123])
def test_what_was_told_to_the_constructor_comes_back(tmp_path, explore):
    made = tacit.TwoView(
        5, tacit.Image(8, 6), tacit.Table(7), explore=explore, schedule=tacit.Constant(3.5),
        models=tacit.Networks(on="cpu"), seed=99,
    )  # fmt: skip
    made.save(tmp_path)
    again = tacit.load(tmp_path, device="cpu")
    assert type(again) is tacit.TwoView
    for name in ("problem", "decoder", "models", "seed", "explore", "schedule", "refinement"):
        assert getattr(again, name) == getattr(made, name), name


# -- the anchor --------------------------------------------------------------------------------------------------------


def rows(*columns: Tensor) -> set[tuple[float, ...]]:
    return {tuple(row) for column in columns for row in column.tolist()}


def test_nothing_ever_learns_from_the_anchor(brief, monkeypatch):
    """Every context comes once here, so that it names its round."""
    seen: dict[str, set[tuple[float, ...]]] = {}
    tested: set[tuple[float, ...]] = set()

    def watch(kind: type, method: str) -> None:
        really = getattr(kind, method)

        def watched(self: Any, *given: Any) -> Any:
            what = given[:1] if kind is NetworkInverse else given
            contexts = [g.contexts if isinstance(g, tacit.Interactions) else g for g in what]
            columns = [g for g in contexts if isinstance(g, Tensor) and g.shape[1:] == (4,)]
            assert columns
            seen.setdefault(f"{kind.__name__}.{method}", set()).update(rows(*columns))
            if kind is NetworkInverse:
                tested.update(rows(given[1].contexts))
            return really(self, *given)

        monkeypatch.setattr(kind, method, watched)

    for kind, method in (
        (NetworkInverse, "fit"), (NetworkOracle, "warm_up"), (NetworkOracle, "update"), (NetworkOracle, "relearn"),
        (NetworkReward, "fit"), (memory.Memory, "begin"), (memory.Memory, "add"),
    ):  # fmt: skip
        watch(kind, method)
    monkeypatch.setattr(two_view, "CERTAIN", math.inf)
    acting = worlds.two_view(worlds.signs(), worlds.networks(), EXPLORE, decoder=tacit.Decoder(0.6, 0.3))
    shown = []
    for arrival in worlds.signs().stream(1_800, 50):
        decision = acting.choose(arrival.contexts)
        acting.learn(decision, arrival.react(decision.actions)[0])
        shown.append(arrival.contexts)
    everything = torch.cat(shown)
    assert len(rows(everything)) == 1_800
    anchor = rows(acting._anchor.contexts)
    assert anchor == rows(everything[:EXPLORE:two_view.ANCHOR_EVERY])
    assert len(seen) == 7
    assert {name for name, contexts in seen.items() if contexts & anchor} == set()
    assert seen["NetworkInverse.fit"] == rows(everything[:EXPLORE]) - anchor
    assert tested == anchor
    assert seen["NetworkOracle.relearn"] == rows(everything[:1_600]) - anchor


def test_the_anchor_is_bounded_and_spread(monkeypatch):
    monkeypatch.setattr(two_view, "ANCHOR_MOST", 35)
    acting = learner(explore=600)
    play(acting, 600)
    assert len(acting._anchor) == 35
    assert len(acting._memory) == 600 - 35


def test_what_it_remembers_does_not_grow_with_the_rounds(monkeypatch):
    monkeypatch.setattr(memory, "CAPACITY", 300)
    acting = started()
    for seed in range(6):
        play(acting, 700, seed=seed)
        assert len(acting._memory) <= EXPLORE - EXPLORE // 10 + 2 * 300
    assert acting.greedy([0, 1, 2]).tolist() == list(worlds.BEST)
