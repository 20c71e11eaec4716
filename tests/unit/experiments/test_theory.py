"""The theory's experiment: one constant for all cells, exponents as they are, and a protocol that can be run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.decoder import sigma_of
from tacit.errors import ExperimentError
from tacit.experiments.registry import named
from tacit.experiments.results import Results, published
from tacit.experiments.spec import Origin, Place, Row, Settings
from tacit.experiments.theory import (
    ACTIONS,
    GAPS,
    ROUNDS,
    SCALE,
    SCALES,
    Cell,
    Theory,
    bound,
    hard_gaps,
    make_task,
)  # fmt: skip

STORED = Path(__file__).parents[3] / "results"
ORIGIN = Origin("0000000", {"tacit": "0"}, "no machine at all")
PROTOCOL = Theory().cells(quick=False)


def run(settings: Settings, seeds: int = 16) -> Row:
    return Row(settings, Theory().run_cell({**settings, "seeds": seeds}, Place(), lambda rounds: None), 0.0, ORIGIN)


def made_up(settings: Settings) -> Row:
    """Regret T^0.6 K^0.4, most of it in the middle one of three gaps; the step decoder loses ten times as much."""
    cell = Cell.of(settings)
    regret = cell.rounds**0.6 * cell.actions**0.4
    if cell.world == "race":
        regret *= 1.0 if cell.gap == hard_gaps(cell.rounds, cell.actions, cell.scale)[1] else 0.9
    if cell.decoder == "step":
        regret *= 10
    measured: Settings = {
        "regret": regret, "error": regret / 100, "uniform_rounds": 10, "uniform_regret": regret / 2,
        "bound": 7 * cell.rounds ** (2 / 3) * cell.actions ** (2 / 3),
    }  # fmt: skip
    return Row(settings, measured, 1.0, ORIGIN)


@pytest.fixture(scope="module")
def quick() -> Sequence[Row]:
    return [run(settings) for settings in Theory().cells(quick=True)]


def test_the_experiment_is_known_by_its_name():
    assert isinstance(named("theory"), Theory)


def test_every_cell_leaves_most_rounds_for_what_was_learned():
    for settings in PROTOCOL:
        task = make_task(Cell.of(settings))
        assert 2 * task.horizon.off_policy_rounds(*task.size) < task.horizon.rounds / 2


def test_figures_come_from_cells_with_one_constant_alone():
    """Rows of other constants say nonsense here; no figure and only one table notices."""
    rows = [made_up(settings) for settings in PROTOCOL]
    odd = [replace(row, measured={**row.measured, "regret": 1e9}) if row.settings["scale"] != SCALE else row
           for row in rows]  # fmt: skip
    assert len([row for row in rows if row.settings["scale"] == SCALE]) < len(rows)
    assert Theory().figures(odd) == Theory().figures(rows)
    assert [table.name for table, other in zip(Theory().tables(rows), Theory().tables(odd), strict=True)
            if table != other] == ["scales"]  # fmt: skip
    assert Theory().plots(odd) == Theory().plots(rows)


def test_both_decoders_explore_alike():
    for settings in PROTOCOL:
        task = make_task(Cell.of(settings))
        assert task.horizon.scale == settings["scale"]
        assert task.size == (task.instance.shape[2], task.instance.decoder.sigma)
        assert task.decoder.sigma == (0.0 if settings["decoder"] == "step" else task.instance.decoder.sigma)
        assert task.decoder.theta_over_alpha == task.instance.decoder.theta_over_alpha


def test_the_protocol_covers_what_is_claimed():
    cells = [Cell.of(settings) for settings in PROTOCOL]
    assert len(set(cells)) == len(cells)
    for algorithm in ("off_policy", "on_policy"):
        mine = [cell for cell in cells if cell.algorithm == algorithm]
        assert {cell.rounds for cell in mine if cell.world == "race" and cell.actions == ACTIONS[0]} == set(ROUNDS)
        assert {cell.actions for cell in mine if cell.world == "race" and cell.rounds == 100_000} == set(ACTIONS)
        for world in ("trap", "random"):
            for decoder in ("lipschitz", "step"):
                assert {c.rounds for c in mine if (c.world, c.decoder) == (world, decoder)} == set(ROUNDS)
    assert (ROUNDS[0], ROUNDS[-1]) == (10**3, 10**6)


def test_sigma_is_the_same_for_all_races():
    races = [make_task(Cell.of(settings)).instance for settings in PROTOCOL if settings["world"] == "race"]
    assert {round(instance.decoder.sigma, 9) for instance in races} == {0.15}
    assert sigma_of(races[0].alpha, races[0].theta, races[0].shape[2]) == pytest.approx(0.15)


@pytest.mark.parametrize("T", ROUNDS)
def test_three_neighbouring_gaps_are_tried_for_every_horizon(T):
    tried = hard_gaps(T)
    assert len(tried) == 3
    first = GAPS.index(tried[0])
    assert tuple(tried) == GAPS[first : first + 3]


@pytest.mark.parametrize("scale", SCALES)
def test_other_constants_are_tried_on_gaps_of_their_own(scale):
    """Four times the exploration shows a gap of half the size, as eight times T does, and four times the actions hide
    one of 4^(1/6) times the size.
    """
    assert hard_gaps(10_000, scale=scale) == hard_gaps(round(10_000 * (64 * scale) ** 1.5))
    assert hard_gaps(200_000, 32, scale) == hard_gaps(100_000, scale=scale)


def test_the_bounds_are_the_theorems_without_our_constant():
    task = make_task(Cell("off_policy", "lipschitz", "race", 10_000, 8, gap=0.1))
    L = math.log(10_000 * task.classes.size)
    first = (10_000 * 8 / 0.15) ** (2 / 3) * L ** (1 / 3)
    assert bound("off_policy", task) == pytest.approx(first)
    # Exploration, the posterior's error and inverse-gap weighting cost the same; the oracle's regret comes on top.
    gamma = 0.15 ** (2 / 3) * 80_000 ** (1 / 3) * L ** (-1 / 3)
    assert bound("on_policy", task) == pytest.approx(3 * first + gamma * 2 * math.log(len(task.classes.f)), rel=1e-3)


def test_exponents_are_those_of_the_worst_gaps():
    rows = [made_up(settings) for settings in PROTOCOL]
    figures = Theory().figures(rows)
    for algorithm in ("off_policy", "on_policy"):
        assert figures[f"{algorithm}.slope"].value == pytest.approx(0.6)
        assert figures[f"{algorithm}.slope_K"].value == pytest.approx(0.4)
        assert figures[f"{algorithm}.random.step.slope"].value == pytest.approx(0.6)
        ratio = figures[f"{algorithm}.trap.step_over_lipschitz"]
        assert ratio.value == pytest.approx(10)
        assert ratio.spread == pytest.approx(10 * math.hypot(0.01, 0.01))
    assert {figure.seeds for figure in figures.values()} == {1_024}


def test_worlds_of_a_kind_are_averaged():
    rows = [made_up(settings) for settings in PROTOCOL]
    for row in rows:
        if row.settings["world"] == "random":
            row.measured["regret"] = 1.0 + 2.0 * float(str(row.settings["world_seed"]))
            row.measured["error"] = 0.3
    table = next(table for table in Theory().tables(rows) if table.name == "random")
    assert {cell for line in table.lines for cell in line[1:]} == {"2 ± 0"}
    errors = {figure.spread for name, figure in Theory().figures(rows).items() if ".random." in name}
    assert len(errors) == 1
    x = [math.log(T) for T in ROUNDS]
    scatter = math.sqrt(sum((value - sum(x) / len(x)) ** 2 for value in x))
    assert errors.pop() == pytest.approx(math.hypot(0.3, 0.3) / 2 / 2 / scatter)


def test_the_quick_protocol_runs_to_tables_and_plots(quick):
    experiment = Theory()
    figures = experiment.figures(quick)
    assert all(math.isfinite(figure.value) and figure.spread >= 0 for figure in figures.values())
    for table in experiment.tables(quick):
        assert {len(line) for line in table.lines} == {len(table.header)}
    for plot in experiment.plots(quick):
        assert plot.logarithmic
        for curve in plot.curves:
            assert len(curve.x) == len(curve.y) >= 3
            assert all(y > 0 for y in curve.y)
    names = [table.name for table in experiment.tables(quick)]
    assert names == ["slopes", "races_rounds", "races_actions", "trap", "random", "scales"]


def test_the_step_decoder_fails_in_the_trap_and_the_ramp_does_not(quick):
    """Even with few rounds and 16 seeds: several times the regret, and three standard errors apart."""
    for algorithm in ("off_policy", "on_policy"):
        ramp, step = (
            next(row.measured for row in quick if {"trap", 10_000, algorithm, by} <= set(row.settings.values()))
            for by in ("lipschitz", "step")
        )
        apart = float(str(step["regret"])) - float(str(ramp["regret"]))
        assert apart > 3 * math.hypot(float(str(step["error"])), float(str(ramp["error"])))
        assert float(str(step["regret"])) > 3 * float(str(ramp["regret"]))


@pytest.mark.parametrize("number", [0, 20, -1])
def test_a_cell_measures_the_same_every_time(number):
    settings = Theory().cells(quick=True)[number]
    shuffled = dict(reversed(settings.items()))
    assert run(settings, 8).measured == run(shuffled, 8).measured


def test_cells_draw_numbers_of_their_own():
    first, other = (run({**PROTOCOL[0], "gap": gap}, 200).measured["regret"] for gap in (0.64, 0.6400001))
    assert first != pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize(("changes", "message"), [
    ({"algorithm": "sarsa"}, "algorithm: expected one of off_policy, on_policy, got 'sarsa'"),
    ({"decoder": "ramp"}, "decoder: expected one of lipschitz, step"),
    ({"world": "flat"}, "world: expected one of"),
    ({"colour": "red"}, "not the settings of a cell of theory"),
])  # fmt: skip
def test_settings_of_another_experiment_are_refused(changes, message):
    with pytest.raises(ExperimentError, match=message):
        Theory().run_cell({**PROTOCOL[0], **changes}, Place(), lambda rounds: None)


def test_the_stored_exponents_are_those_of_the_theorems():
    """Two standard errors included; and the trap is one for the step decoder alone."""
    figures = published(Results(STORED))
    for algorithm in ("off_policy", "on_policy"):
        slope, flat = (figures[f"theory.{algorithm}.{name}"] for name in ("slope", "slope_K"))
        assert slope["value"] + 2 * slope["spread"] <= 0.70
        assert flat["value"] + 2 * flat["spread"] <= 2 / 3
        assert figures[f"theory.{algorithm}.trap.step.slope"]["value"] > 0.9
        assert figures[f"theory.{algorithm}.trap.lipschitz.slope"]["value"] < 0.70
        assert figures[f"theory.{algorithm}.trap.step_over_lipschitz"]["value"] > 10
