"""What is made of finished rows: files beside them, published figures, and a page that holds it all."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tacit.experiments import pages
from tacit.experiments.results import Results, published
from tacit.experiments.spec import Origin, Row
from tests.unit.experiments.fake import Fake


def fill(results: Results, experiment: Fake) -> list[Row]:
    origin = Origin("abc", {}, "a machine")
    rows = [Row(cell, {"value": 2.0}, 40.0, origin) for cell in results.cells(experiment)]
    for row in rows:
        results.write(experiment, row)
    return rows


def conclude(results: Results) -> str:
    shown = io.StringIO()
    pages.conclude(Fake(), results, fill(results, Fake()), Console(file=shown, width=200))
    return shown.getvalue()


def test_a_finished_run_leaves_tables_plots_and_figures(tmp_path):
    shown = conclude(Results(tmp_path))
    files = ["tables.md", "line.png", "line.svg"]
    assert "Values by seed" in shown
    for name in files:
        assert f"written: {tmp_path / 'fake' / name}" in shown
        assert (tmp_path / "fake" / name).stat().st_size > 0
    assert "| seed 1 | 2.0 |" in (tmp_path / "fake" / "tables.md").read_text()
    assert list(published(Results(tmp_path))) == ["fake.value"]


def test_a_quick_run_says_what_it_is_and_publishes_nothing(tmp_path):
    shown = conclude(Results(tmp_path, quick=True))
    assert "not published" in shown
    assert (tmp_path / "quick" / "fake" / "line.svg").exists()
    assert not (tmp_path / "figures.json").exists()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    results, page = Results(tmp_path / "results"), tmp_path / "docs" / "results.md"
    conclude(results)
    pages.write_page([Fake(), Fake(called="other")], results, page)
    return page


@pytest.mark.parametrize(
    "held",
    [
        "## fake\n\nSeeds, measured.\n",
        "| seed 1 | 2.0 |",
        "Higher seeds give [more].",
        "| `fake.value` | 2 | 0 | 3 | seeds |",
        "`tacit experiment fake` (3 cells, 2.0 minutes in all)",
        "Hardware: a machine. Revision: abc.",
        "## other\n\nSeeds, measured. Not run to the end yet.",
    ],
)
def test_the_page_holds_figures_tables_and_how_they_came_about(page, held):
    assert held in page.read_text()


def test_the_page_has_its_pictures_beside_it(page):
    assert "![Values](assets/results/fake-line.svg)" in page.read_text()
    beside = page.parent / "assets" / "results" / "fake-line.svg"
    assert beside.read_bytes() == (page.parents[1] / "results" / "fake" / "line.svg").read_bytes()
