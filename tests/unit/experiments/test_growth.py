"""What a round of the refined learner costs, from made rows and one that is run."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.experiments.growth import Growth
from tacit.experiments.spec import Origin, Place, Row

ORIGIN = Origin("revision", {}, "a machine")
SECONDS = {("finite", 10_000): 1.0, ("finite", 100_000): 9.0, ("finite", 1_000_000): 80.0}


def made(world: str, rounds: int) -> Row:
    measured: Any = {"seconds": SECONDS.get((world, rounds), rounds / 1_000), "held": 2**20, "test": 0.5}
    return Row({"world": world, "rounds": rounds}, measured, 1.0, ORIGIN)


def rows() -> list[Row]:
    return [made(world, rounds) for world in ("finite", "table") for rounds in (10_000, 100_000, 1_000_000)]


def test_cost_of_a_round_at_the_most_rounds_is_compared_with_that_at_the_fewest() -> None:
    figures = Growth().figures(rows())
    assert figures["finite.cost_of_last_against_first"].value == pytest.approx(0.8)
    assert figures["table.cost_of_last_against_first"].value == pytest.approx(1.0)
    assert figures["finite.microseconds_per_round"].value == pytest.approx(80.0)


def test_table_and_plot_show_every_length() -> None:
    (table,), (plot,) = Growth().tables(rows()), Growth().plots(rows())
    assert [line[1] for line in table.lines[:3]] == ["10,000", "100,000", "1,000,000"]
    assert [len(curve.x) for curve in plot.curves] == [3, 3]


def test_a_cell_measures_the_processor_and_what_is_held() -> None:
    settings, *_ = Growth().cells(quick=True)
    played: list[int] = []
    measured: Any = Growth().run_cell(settings, Place(), played.append)
    assert sum(played) == Growth().rounds(settings)
    assert measured["seconds"] > 0
    assert measured["held"] > 0
