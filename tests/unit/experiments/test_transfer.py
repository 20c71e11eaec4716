"""The same settings everywhere: who plays what, for how long both explore, and how shares come about."""

from __future__ import annotations

import pytest
import torch

from tacit.encoders import Category, Image, Table
from tacit.environments.classification import Classification, Labelled, Neighbour, Signs
from tacit.environments.tables import tabular
from tacit.experiments import transfer
from tacit.experiments.digits import SEEDS as SEEN
from tacit.experiments.results import key
from tacit.experiments.spec import Measured, Origin, Place, Row, Settings
from tacit.experiments.transfer import SEEDS, SETS, Transfer

K = 5
ROUNDS = 2_400
SETTINGS: Settings = {"set": "digits", "rounds": ROUNDS, "batch": 50, "seed": 0}


def measured(test: float, sighted: float, understood: bool = True) -> Measured:
    curve: Measured = {"rounds": [500, 1000], "hidden": [0.1, test], "decoded": [None, test - 0.1]}
    mine, theirs = ({"progressive": 0.5, "test": value, "seconds": 1.0, "curve": curve} for value in (test, sighted))
    return {"actions": K, "explored": 250, "understood": understood, "learner": mine, "sighted": theirs}


def rows(**failed: bool) -> list[Row]:
    """Half, and a little more for every seed, of what a learner has that sees every reward."""
    origin = Origin("revision", {}, "a machine")
    return [
        Row(cell, measured(0.4 + 0.02 * SEEDS.index(cell["seed"]), 0.8, cell["set"] not in failed), 1.0, origin)
        for cell in Transfer().cells(quick=False)
    ]


# -- the protocol ------------------------------------------------------------------------------------------------------


def test_every_set_is_played_on_every_seed_and_none_that_was_looked_at():
    cells = Transfer().cells(quick=False)
    assert [(cell["set"], cell["seed"]) for cell in cells] == [(name, seed) for name in SETS for seed in SEEDS]
    assert len(SEEDS) == 4
    assert not set(SEEDS) & {*range(20), *SEEN}


def test_quick_cells_are_none_of_the_published_ones():
    quick, published = ({key("transfer", cell) for cell in Transfer().cells(short)} for short in (True, False))
    assert not quick & published
    assert len(quick) == len(SETS)


@pytest.mark.parametrize("name", [name for name in SETS if name != "fashion"])
def test_no_more_rounds_are_played_than_there_are(name):
    made = transfer.world(name, 0, Place())
    assert made.horizon >= SETS[name].rounds
    expected = Image(8, 8) if name == "digits" else tabular(name, 0, passes=1).problem.context
    assert made.problem.context == made.problem.feedback == expected


def test_fashion_is_read_from_the_place_of_the_data(monkeypatch, tmp_path):
    asked = []
    images = Labelled(torch.zeros(10, 28, 28, dtype=torch.uint8), torch.arange(10), 10)
    monkeypatch.setattr("tacit.environments.fashion.load", lambda data: asked.append(data) or (images, images))
    assert transfer.world("fashion", 0, Place(data=tmp_path)).problem.context == Image(28, 28)
    assert asked == [tmp_path]


def test_everything_is_looked_for_before_anything_is_run(monkeypatch):
    asked = []
    monkeypatch.setattr(transfer, "world", lambda name, seed, place: asked.append(name))
    Transfer().prepare(Place())
    assert asked == list(SETS)


# -- a cell ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def easy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes that a row names outright."""
    labels = torch.arange(2_500) % K
    examples = Labelled(torch.nn.functional.one_hot(labels, K).float(), labels, K)
    made = Classification(examples[100:], examples[:100], Table(K), Neighbour(examples, Table(K)), seed=0)
    monkeypatch.setattr(transfer, "world", lambda name, seed, place: made)


@pytest.fixture
def meaningless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs that say nothing about the reward."""
    labels = torch.arange(2_500) % K
    examples = Labelled(labels, labels, K)
    rule = Signs(torch.full((K, 2, 2), 0.5))
    made = Classification(examples[100:], examples[:100], Category(K), rule, seed=0)
    monkeypatch.setattr(transfer, "world", lambda name, seed, place: made)


def test_both_learners_play_and_explore_for_as_long(easy):
    heard = []
    run = Transfer().run_cell(SETTINGS, Place(), heard.append)
    assert sum(heard) == Transfer().rounds(SETTINGS) == 2 * ROUNDS
    assert run["understood"]
    assert run["actions"] == K
    assert 0 < run["explored"] < ROUNDS
    assert run["explored"] % 50 == 0
    for learner in ("learner", "sighted"):
        assert set(run[learner]) == {"progressive", "test", "seconds", "curve"}
        assert run[learner]["test"] == 1.0
        uniform = run["explored"] / ROUNDS / K
        assert uniform < run[learner]["progressive"] <= uniform + 1 - run["explored"] / ROUNDS + 1e-9


def test_the_sighted_learner_has_the_rounds_networks_schedule_and_seed_of_the_other(easy, monkeypatch):
    made, calls = [], []
    build, follow = transfer.TwoView, transfer.play_sighted

    def building(*problem, **settings):
        made.append(build(*problem, **settings))
        return made[-1]

    def following(*arguments, **options):
        calls.append((arguments, options))
        return follow(*arguments, **options)

    monkeypatch.setattr(transfer, "TwoView", building)
    monkeypatch.setattr(transfer, "play_sighted", following)
    run = Transfer().run_cell(SETTINGS, Place(), lambda rounds: None)
    (learner,) = made
    (((_, explored, same, rounds, batch), options),) = calls
    assert (explored, rounds, batch) == (run["explored"], ROUNDS, 50)
    assert same is learner.models
    assert options["schedule"] is learner.schedule
    assert options["seed"] == 0


def test_feedback_that_is_never_understood_counts_as_chance_and_the_other_learner_explores_throughout(meaningless):
    run = Transfer().run_cell({**SETTINGS, "rounds": 900}, Place(), lambda rounds: None)
    assert not run["understood"]
    assert run["explored"] == 900
    assert run["learner"]["test"] == pytest.approx(1 / K)
    assert run["learner"]["progressive"] == pytest.approx(1 / K)
    assert run["sighted"]["progressive"] == pytest.approx(1 / K)
    assert run["sighted"]["test"] == 1.0


# -- what is made of the rows ------------------------------------------------------------------------------------------


def test_shares_are_taken_seed_by_seed():
    figures = Transfer().figures(rows())
    names = ("share_of_true_reward", "test", "sighted_test")
    assert set(figures) == {f"{name}.{what}" for name in SETS for what in names}
    share = figures["satimage.share_of_true_reward"]
    assert share.value == pytest.approx((0.5 + 0.525 + 0.55 + 0.575) / 4)
    assert share.spread == pytest.approx(torch.tensor([0.5, 0.525, 0.55, 0.575]).std().item())
    assert share.seeds == 4
    assert figures["fashion.test"].value == pytest.approx(0.43)
    assert figures["fashion.sighted_test"].value == pytest.approx(0.8)


def test_the_table_has_a_line_for_each_set():
    (table,) = Transfer().tables(rows())
    assert [line[0] for line in table.lines] == [each.called for each in SETS.values()]
    assert table.lines[1][1:] == ("5", "30,000", "250", "43.0 % ± 2.6 %", "80.0 % ± 0.0 %", "53.8 % ± 3.2 %")
    assert all(len(line) == len(table.header) for line in table.lines)
    assert "over 4 seeds" in table.note
    assert "never understood" not in table.note


def test_the_table_says_how_often_nothing_was_understood():
    (table,) = Transfer().tables(rows(satimage=True))
    assert "In 4 of 20 runs the feedback was never understood, which counts as chance." in table.note


def test_the_plot_begins_where_reward_is_decoded():
    (plot,) = Transfer().plots(rows())
    assert [list(curve.x) for curve in plot.curves] == [[500, 1000], [1000], [500, 1000]]
    assert [curve.dashed for curve in plot.curves] == [False, False, True]
