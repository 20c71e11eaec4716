"""What is published follows from the stored cells: every figure, and the results page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.experiments import pages
from tacit.experiments import results as stored
from tacit.experiments.registry import CLASSES, every, named
from tacit.experiments.results import Results
from tacit.storage import Json

ROOT = Path(__file__).parents[2]
RESULTS = Results(ROOT / "results")
PAGE = ROOT / "docs" / "results.md"


def close(entry: Json) -> object:
    """Numbers may differ in their last digits from one machine to the next."""
    assert isinstance(entry, dict)
    return {name: pytest.approx(part, rel=1e-6) if isinstance(part, float) else part for name, part in entry.items()}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_published_figure_follows_from_the_stored_cells(name):
    experiment = named(name)
    recomputed = stored.recomputed(RESULTS, [experiment])
    everything = stored.published(RESULTS)
    published = {figure: entry for figure, entry in everything.items() if stored.made_by(experiment, entry)}
    assert published == {figure: close(entry) for figure, entry in recomputed.items()}


def test_every_published_figure_is_of_an_experiment_that_there_is():
    for entry in stored.published(RESULTS).values():
        assert sum(stored.made_by(experiment, entry) for experiment in every()) == 1


def test_something_is_published():
    assert "digits.tacit.test" in stored.published(RESULTS)


def test_the_results_page_shows_what_is_stored(tmp_path):
    fresh = tmp_path / "results.md"
    pages.write_page(every(), RESULTS, fresh)
    assert PAGE.read_text(encoding="utf-8") == fresh.read_text(encoding="utf-8"), (
        "renew it with: tacit results --page docs/results.md"
    )
    for picture in sorted((tmp_path / pages.PICTURES).iterdir()):
        assert (PAGE.parent / pages.PICTURES / picture.name).read_bytes() == picture.read_bytes()
