"""The protocol of the refined learner on MNIST: which cells there are, what one measures, what is made of the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import DecoderWarning
from tacit.experiments import refined
from tacit.experiments import results as stored
from tacit.experiments.mnist import SEEDS as SEEDS_OF_TABLE_1
from tacit.experiments.refined import EARLY_SEEDS, FEWER, NOT_PLAYED, PROBLEMS, SEEDS, N, Refined, T
from tacit.experiments.results import Results, key
from tacit.experiments.spec import Measured, Origin, Place, Row, Settings
from tacit.inverse import base
from tests import worlds
from tests.unit.experiments.fake import striped

ORIGIN = Origin("revision", {}, "a machine")


def run(test: float, seconds: float = 1.0) -> Measured:
    curve: Measured = {"rounds": [500, 1000], "hidden": [0.1, test], "decoded": [None, test - 0.1]}
    return {"progressive": test / 2, "test": test, "seconds": seconds, "curve": curve}


def measured(cell: Settings) -> Measured:
    """The test accuracy rises from .8 by .001 a seed; that of the learner that sees rewards is .9."""
    place = EARLY_SEEDS.index(int(str(cell["seed"])))
    two_view = cell["learner"] == "two_view"
    return {
        "learner": run(0.8 + place / 1_000), "inverse_loss": 0.8, "trusted": place != 3,
        "explored": (6_000 + 100 * place if cell["explore"] == "auto" else cell["explore"]) if two_view else None,
        "refinement": "kept" if two_view else None, "sighted": run(0.9) if cell.get("sighted") else NOT_PLAYED,
    }  # fmt: skip


@pytest.fixture
def rows() -> list[Row]:
    return [Row(cell, measured(cell), 1.0, ORIGIN) for cell in Refined().cells(quick=False)]


# -- the protocol ------------------------------------------------------------------------------------------------------


def cells_of(problem: str, quick: bool = False) -> list[Settings]:
    return [cell for cell in Refined().cells(quick) if cell["problem"] == problem]


def test_means_are_of_four_seeds_and_ten_show_whether_inverse_models_train():
    counts = {name: len(cells_of(name)) for name in (*PROBLEMS, "off_policy", "early")}
    assert counts == {"n5000": 4, "free": 4, "stochastic": 4, "off_policy": 4, "early": 10}
    assert len(Refined().cells(quick=False)) == sum(counts.values())
    assert SEEDS == EARLY_SEEDS[:4] == SEEDS_OF_TABLE_1  # the seeds of the paper's table, which nobody looked at
    assert min(SEEDS) > 2


def test_the_problems_are_those_that_are_promised():
    assert {(cell["rounds"], cell["explore"]) for cell in cells_of("n5000")} == {(T, N)} == {(60_000, 5_000)}
    assert {cell["explore"] for cell in cells_of("free")} == {"auto"}
    assert {(cell["right"], cell["wrong"]) for cell in cells_of("stochastic")} == {(0.85, 0.03)}
    assert {(cell["rounds"], cell["explore"]) for cell in cells_of("early")} == {(FEWER, FEWER)}
    assert {cell["learner"] for cell in cells_of("off_policy")} == {"off_policy"}


def test_the_learner_that_sees_rewards_plays_in_the_cells_that_means_are_made_of():
    for problem in PROBLEMS:
        assert [cell["sighted"] for cell in cells_of(problem)] == [True] * 4
    assert not any(cell.get("sighted") for name in ("off_policy", "early") for cell in cells_of(name))


def test_quick_cells_are_none_of_the_published_ones_and_have_every_problem():
    quick, published = ({key("refined", cell) for cell in Refined().cells(short)} for short in (True, False))
    assert not quick & published
    assert len(quick) == len(PROBLEMS) + 2
    assert max(int(str(cell["rounds"])) for cell in Refined().cells(quick=True)) <= 1_200
    assert cells_of("free", quick=True)[0]["explore"] == "auto"


# -- a cell ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Place:
    """Stripes in the place of MNIST, and networks that are trained for as long as these take."""
    images = striped()
    monkeypatch.setattr("tacit.environments.mnist.load", lambda data: (images, images[:200]))
    monkeypatch.setattr(refined, "networks", lambda place, brief: worlds.networks())
    monkeypatch.setattr(base, "SIGNIFICANCE", 0.0)  # whether to believe it is not the question here
    return Place()


def cell(problem: str = "n5000", **settings: object) -> Settings:
    (made,) = cells_of(problem, quick=True)
    return {**made, "rounds": 600, "explore": 400, **settings}


def test_both_learners_play_all_rounds_with_the_same_schedule_networks_and_exploration(small, monkeypatch):
    made, calls, heard = [], [], []
    build, follow = refined.TwoView, refined.play_sighted
    monkeypatch.setattr(refined, "TwoView", type("TwoView", (build,), {"__init__": remembered(build, made)}))
    monkeypatch.setattr(
        refined, "play_sighted", lambda *given, **named: calls.append((given, named)) or follow(*given, **named)
    )
    settings = cell()
    found = Refined().run_cell(settings, small, heard.append)
    assert sum(heard) == Refined().rounds(settings) == 2 * 600
    assert set(found) == {"learner", "inverse_loss", "trusted", "explored", "refinement", "sighted"}
    assert (found["trusted"], found["explored"]) == (True, 400)
    for name in ("learner", "sighted"):
        assert found[name]["curve"]["rounds"] == [500, 600]
        assert 1 / 30 < found[name]["progressive"] < 0.5  # 400 of 600 rounds count as a tenth
    assert found["sighted"]["curve"]["decoded"] == [None, None]
    ((given, named),) = calls
    assert given[1:] == (400, made[0].models, 600, 50)
    assert named["schedule"] is made[0].schedule
    assert named["seed"] == settings["seed"] == made[0].seed


def remembered(build, made):
    def initialise(self, *given, **named):
        build.__init__(self, *given, **named)
        made.append(self)

    return initialise


def test_in_other_cells_it_plays_alone_and_the_row_has_the_same_names(small):
    settings = cell(sighted=False)
    found = Refined().run_cell(settings, small, lambda rounds: None)
    assert Refined().rounds(settings) == 600
    assert found["sighted"] == NOT_PLAYED
    assert stored.measurements(found) == stored.measurements(measured(Refined().cells(quick=False)[0]))


def test_the_off_policy_cell_explores_twice_as_long_and_then_acts_on_its_policy(small):
    found = Refined().run_cell(cell("off_policy", rounds=900), small, lambda rounds: None)
    assert (found["explored"], found["refinement"], found["sighted"]) == (None, None, NOT_PLAYED)
    assert found["trusted"]
    assert found["learner"]["curve"]["decoded"] == [None, None]


def test_feedback_that_is_never_understood_is_a_result_as_well(small, monkeypatch):
    monkeypatch.setattr(base, "FEWEST", 10_000)
    monkeypatch.setattr(refined, "networks", lambda place, brief: worlds.networks(replace(worlds.INVERSE, steps=20)))
    with pytest.warns(DecoderWarning):
        found = Refined().run_cell(cell("early", rounds=400), small, lambda rounds: None)
    assert not found["trusted"]
    assert found["learner"]["test"] == 0.1
    assert found["learner"]["progressive"] == pytest.approx(0.1)
    assert found["refinement"] == "None"


def test_rewards_left_to_chance_reach_the_world(small, monkeypatch):
    asked = []
    world = refined.mnist
    monkeypatch.setattr(refined, "mnist", lambda *given, **named: asked.append(named) or world(*given, **named))
    Refined().run_cell(cell("stochastic", sighted=False), small, lambda rounds: None)
    assert asked == [{"right": 0.85, "wrong": 0.03}]


def test_the_data_is_looked_for_before_anything_is_run(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(refined, "load", asked.append)
    Refined().prepare(Place(data=tmp_path))
    assert asked == [tmp_path]


# -- what is made of the rows ------------------------------------------------------------------------------------------


def test_the_figures_have_the_names_that_pages_quote(rows):
    names = {
        f"mnist.{kind}.{problem}.{measure}"
        for kind in ("refined", "true_reward") for problem in ("n5000", "free", "stochastic")
        for measure in ("progressive", "test")
    } | {
        "mnist.refined.free.explored", "mnist.refined.worst_of_4.test", "mnist.refined.seconds_per_seed_cpu",
        "mnist.off_policy.improved.test", "mnist.inverse.n2000.trusted", "mnist.inverse.n2000.worst_of_10.test",
    }  # fmt: skip
    assert set(stored.figures(Refined(), rows)) == names


def test_figures_are_means_over_the_seeds_and_the_worst_of_them(rows):
    figures = Refined().figures(rows)
    assert figures["refined.n5000.test"].value == pytest.approx(0.8015)
    assert figures["refined.n5000.test"].seeds == 4
    assert figures["refined.n5000.progressive"].value == pytest.approx(0.8015 / 2)
    assert figures["true_reward.free.test"].value == pytest.approx(0.9)
    assert figures["true_reward.stochastic.progressive"].value == pytest.approx(0.45)
    assert figures["refined.free.explored"].value == 6_150
    assert (figures["refined.worst_of_4.test"].value, figures["refined.worst_of_4.test"].seeds) == (0.8, 4)
    assert figures["off_policy.improved.test"].value == pytest.approx(0.8015)
    assert figures["inverse.n2000.trusted"].value == 9 / 10
    assert figures["refined.seconds_per_seed_cpu"].seeds == 4


def test_the_worst_is_the_worst_wherever_it_stands(rows):
    rows[2].measured["learner"]["test"] = 0.3
    assert rows[2].settings["problem"] == "n5000"
    assert Refined().figures(rows)["refined.worst_of_4.test"].value == 0.3


def test_the_table_has_a_line_for_each_problem(rows):
    (table,) = Refined().tables(rows)
    assert [line[0] for line in table.lines] == list(refined.CALLED.values())
    assert all(len(line) == len(table.header) for line in table.lines)
    assert table.lines[0] == (
        "N = 5,000", "5,000", "0.401 (0.001)", "0.450 (0.000)", "80.2 (0.1)", "90.0 (0.0)", "80.0", "4", "1",
    )  # fmt: skip
    assert table.lines[1][1] == "6,150"
    off_policy, early = table.lines[3:]
    assert (off_policy[1], off_policy[3], off_policy[5]) == ("10,000", "-", "-")
    assert (early[1], early[7]) == ("2,000", "10")


def test_the_plot_begins_where_reward_is_decoded(rows):
    (plot,) = Refined().plots(rows)
    assert [list(curve.x) for curve in plot.curves] == [[500, 1000], [1000], [500, 1000]]
    assert [curve.dashed for curve in plot.curves] == [False, False, True]


def test_its_figures_stand_beside_those_of_the_paper(rows, tmp_path: Path):
    """Both are of the family mnist; to publish one leaves the other's alone."""
    results = Results(tmp_path)
    paper = {"mnist.paper.on_policy.step.test": {"value": 0.9, "command": "tacit experiment mnist"}}
    old = {"mnist.refined.old": {"value": 0.5, "command": "tacit experiment refined"}}
    stored.write_json(tmp_path / stored.FIGURES, paper | old)
    stored.publish(results, Refined(), rows)
    found = stored.published(results)
    assert found["mnist.paper.on_policy.step.test"] == paper["mnist.paper.on_policy.step.test"]
    assert "mnist.refined.old" not in found
    assert found["mnist.refined.n5000.test"]["command"] == "tacit experiment refined"
    assert results.home(Refined()) == tmp_path / "refined"
