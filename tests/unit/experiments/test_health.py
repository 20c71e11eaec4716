"""The protocol of the health experiment: which worlds there are, and what is made of their verdicts."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import UntrustworthyDecoderError
from tacit.experiments import health
from tacit.experiments.health import Health, taught
from tacit.experiments.scenes import WORLDS, scene
from tacit.experiments.spec import Origin, Place, Row

EXPERIMENT = Health()


def row(world: str, seed: int, *, flagged: bool, check: str = "drift") -> Row:
    verdict = "broken" if flagged else "ok"
    measured = {"verdict": verdict, "checks": {check: [verdict, 0.5], "rounds": ["ok", None]}}
    return Row({"world": world, "seed": seed}, measured, 1.0, Origin("revision", {}, "a machine"))


def test_there_are_many_worlds_of_both_kinds_and_ten_seeds_of_each():
    kinds = [world.broken for world in WORLDS.values()]
    assert kinds.count(True) >= 12
    assert kinds.count(False) >= 6
    cells = EXPERIMENT.cells(quick=False)
    assert len(cells) == 10 * len(WORLDS)


def test_figures_are_the_rates_at_which_worlds_of_each_kind_are_flagged():
    rows = [row("noise", 0, flagged=True), row("noise", 1, flagged=True), row("drifting", 0, flagged=True)]
    rows += [row("drifting", 1, flagged=False), row("images", 0, flagged=False), row("images", 1, flagged=True)]
    figures = EXPERIMENT.figures(rows)
    assert (figures["broken_flagged"].value, figures["broken_flagged"].seeds) == (0.75, 2)
    assert figures["healthy_flagged"].value == 0.5


def test_the_table_says_how_often_a_world_was_flagged_and_by_which_check():
    (table,) = EXPERIMENT.tables([row("noise", 0, flagged=True, check="chance"), row("noise", 1, flagged=False)])
    (line,) = table.lines
    assert line[:2] == ("noise", "broken")
    assert line[3:] == ("1 of 2", "1", "chance 1")
    assert len(line) == len(table.header)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_drawn_anew_for_each_seed_and_the_same_for_one(name):
    one, again, other = (scene(name, seed) for seed in (0, 0, 1))
    assert torch.equal(one.contexts, again.contexts)
    assert not torch.equal(one.contexts, other.contexts)
    assert ((one.rewards >= 0) & (one.rewards <= 1)).all()
    rows = torch.arange(20)
    feedback = one.reactions(rows, rows % one.actions, torch.Generator().manual_seed(0))
    one.context.check(one.contexts, "contexts")
    one.feedback.check(feedback, "feedback")
    one.feedback.check_range(feedback, "feedback")
    assert len(feedback) == 20


def test_a_cell_plays_all_rounds_and_keeps_every_check():
    heard: list[int] = []
    measured = EXPERIMENT.run_cell({"world": "too_few", "seed": 0}, Place(), heard.append)
    assert sum(heard) == EXPERIMENT.rounds({"world": "too_few", "seed": 0}) == 150
    assert measured["verdict"] == "watch"
    assert measured["checks"]["rounds"] == ["watch", None]
    assert len(measured["checks"]) == 12


def test_a_log_that_cannot_be_learned_from_is_judged_all_the_same(monkeypatch):
    def refuse(*_: object) -> None:
        raise UntrustworthyDecoderError("no better than chance")

    monkeypatch.setattr(health.OffPolicy, "_ground", refuse)
    learner = taught(scene("off_policy_log", 0), 0)
    assert learner.exploring
    assert learner.health().rounds == 2_900


def test_quick_cells_are_the_shape_of_the_protocol():
    quick = EXPERIMENT.cells(quick=True)
    assert {WORLDS[str(settings["world"])].broken for settings in quick} == {True, False}
