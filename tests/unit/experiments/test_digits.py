"""The small experiment: what its rows say, and what it refuses to report."""

from __future__ import annotations

import pytest

from tacit.errors import DecoderWarning, ExperimentError
from tacit.experiments.digits import LEARNERS, QUICK, SEEDS, Digits
from tacit.experiments.spec import Origin, Place, Row


def row(learner: str, seed: int, value: float) -> Row:
    decoded = value - 0.1 if learner == "tacit" else None
    curve = {"rounds": [250, 500], "hidden": [0.1, value], "decoded": [None, decoded]}
    after = {"hidden": value, "decoded": decoded}
    measured = {"progressive": value / 2, "test": value, "after_exploration": after, "curve": curve}
    settings = {"learner": learner, "seed": seed, "explore": 250, "rounds": 1_000}
    return Row(settings, measured, 1.0, Origin("abc", {}, "a machine"))


@pytest.fixture
def rows() -> list[Row]:
    values = {"tacit": (0.9, 1.0), "sighted": (0.95, 0.95), "uniform": (0.1, 0.12)}
    return [row(learner, seed, value) for learner in LEARNERS for seed, value in enumerate(values[learner])]


def test_every_learner_plays_every_seed_and_none_that_the_protocol_was_tuned_on():
    cells = Digits().cells(quick=False)
    assert {(cell["learner"], cell["seed"]) for cell in cells} == {(name, seed) for name in LEARNERS for seed in SEEDS}
    assert len(cells) == len(LEARNERS) * len(SEEDS)
    assert min(SEEDS) > 4


def test_figures_are_means_and_spreads_over_the_seeds_of_a_learner(rows):
    figures = Digits().figures(rows)
    assert set(figures) == {f"{name}.{what}" for name in LEARNERS for what in ("progressive", "test")} | {
        "tacit.hidden_after_exploration", "tacit.decoded_after_exploration"
    }  # fmt: skip
    assert figures["tacit.test"].value == pytest.approx(0.95)
    assert figures["tacit.test"].spread == pytest.approx(0.1 / 2**0.5)
    assert figures["uniform.progressive"].value == pytest.approx(0.055)
    assert figures["tacit.decoded_after_exploration"].value == pytest.approx(0.85)


def test_the_table_has_a_line_for_each_learner(rows):
    (table,) = Digits().tables(rows)
    assert [line[0] for line in table.lines] == list(LEARNERS.values())
    assert table.lines[0][1:] == ("0.475 ± 0.035", "95.0 % ± 7.1 %")
    assert "over 2 seeds. The first 250 of 1,000 rounds" in table.note


def test_the_plot_shows_decoded_reward_only_where_there_is_any(rows):
    (plot,) = Digits().plots(rows)
    assert [list(curve.x) for curve in plot.curves] == [[250, 500], [500], [250, 500], [250, 500]]
    assert [curve.dashed for curve in plot.curves] == [False, False, True, True]


def test_a_learner_that_understood_nothing_is_an_error_and_no_result():
    settings = {"learner": "tacit", "seed": 0, **QUICK, "explore": 50, "rounds": 50}
    with pytest.warns(DecoderWarning), pytest.raises(ExperimentError, match="the feedback was never understood: loss"):
        Digits().run_cell(settings, Place(), lambda rounds: None)
