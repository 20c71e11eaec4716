"""Results: rows that can be read back or are refused, and figures that follow from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.errors import CorruptFileError, ExperimentError
from tacit.experiments import results as stored
from tacit.experiments.results import Results
from tacit.experiments.spec import Curve, Figure, Origin, Row
from tests.unit.experiments.fake import Fake

ORIGIN = Origin("abc", {"python": "3"}, "a machine")


def fill(results: Results, experiment: Fake, values=(1.0, 2.0, 6.0), origins=(ORIGIN,) * 3) -> list[Row]:
    together = zip(results.cells(experiment), values, origins, strict=False)
    rows = [Row(cell, {"value": value}, 0.5, origin) for cell, value, origin in together]
    for row in rows:
        results.write(experiment, row)
    return rows


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path)


def cell_files(results: Results) -> list[Path]:
    return sorted(results.folder.glob("fake/cells/*.json"))


def test_rows_are_read_back_as_they_were_written(results):
    assert results.rows(Fake()) == []
    rows = fill(results, Fake())
    assert results.rows(Fake()) == rows == results.complete(Fake())


def test_nothing_is_concluded_from_a_part_of_the_cells(results):
    fill(results, Fake(), (1.0, 2.0))
    assert results.complete(Fake()) is None
    assert stored.recomputed(results, [Fake()]) == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: "[]",
        lambda text: text.replace('"seconds"', '"minutes"'),
        lambda text: text.replace('"hardware"', '"software"'),
        lambda text: text.replace('"seed": ', '"seed": 7'),
        lambda text: json.dumps(json.loads(text) | {"measured": [1]}),
        lambda text: json.dumps(json.loads(text) | {"measured": {}}),
        lambda text: json.dumps(json.loads(text) | {"measured": {"other": 1}}),
    ],
)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_damaged_row_is_refused_by_the_name_of_its_file(results, damage, number):
    fill(results, Fake())
    path = cell_files(results)[number]
    path.write_text(damage(path.read_text()))
    with pytest.raises(CorruptFileError, match=path.name):
        results.rows(Fake())


@pytest.mark.parametrize(
    ("measured", "lacking"),
    [
        ({"value": 1.0, "runs": [{"test": 1.0}, {"test": 1.0}]}, "curve"),
        ({"value": 1.0, "curve": {"x": [1, 2]}, "runs": [{"test": 1.0}, {"test": 1.0}]}, "curve.y"),
        ({"value": 1.0, "curve": {"x": [], "y": []}, "runs": []}, "runs.test"),
        ({"value": 1.0, "curve": {"x": [], "y": []}, "runs": [{"test": 1.0}, {}]}, "runs.test"),
    ],
)
def test_a_row_that_lacks_a_measurement_is_named_wherever_rows_are_read(results, measured, lacking):
    whole = {"value": 1.0, "curve": {"x": [1, 2], "y": [1, 2]}, "runs": [{"test": 1.0}]}
    for cell, each in zip(results.cells(Fake()), (whole, measured, whole), strict=True):
        results.write(Fake(), Row(cell, each, 0.5, ORIGIN))
    name = stored.key("fake", results.cells(Fake())[1])
    for read in (results.rows, results.complete):
        with pytest.raises(CorruptFileError, match=rf"{name}\.json lacks {lacking}.*; delete it to run the cell again"):
            read(Fake())


def test_a_failed_row_needs_no_measurements(results):
    fill(results, Fake(), (1.0, 2.0))
    results.write(Fake(), Row(results.cells(Fake())[2], {}, 0.5, ORIGIN, "it failed"))
    assert [row.error for row in results.rows(Fake())] == [None, None, "it failed"]


def test_figures_carry_where_they_come_from(results):
    rows = fill(results, Fake())
    stored.publish(results, Fake(), rows)
    assert stored.published(results) == {
        "fake.value": {
            "value": 3.0, "spread": pytest.approx(7**0.5), "seeds": 3, "unit": "seeds",
            "hardware": "a machine", "command": "tacit experiment fake", "revision": "abc",
        }
    }  # fmt: skip
    assert stored.recomputed(results, [Fake()]) == stored.published(results)


def test_rows_of_several_origins_name_them_all(results):
    rows = fill(results, Fake(), origins=(ORIGIN, Origin("abd", {}, "a machine", "cuda"), ORIGIN))
    entry = stored.figures(Fake(), rows)["fake.value"]
    assert entry["revision"] == "abc; abd"
    assert entry["command"] == "tacit experiment fake; tacit experiment fake --device cuda"
    assert entry["hardware"] == "a machine"


def test_figures_of_others_stay_and_old_ones_of_the_same_experiment_go(results):
    other = Fake(called="fakery")
    stored.publish(results, other, fill(results, other))
    path = results.folder / "figures.json"
    entry = json.loads(path.read_text())["fakery.value"]
    own = entry | {"command": "tacit experiment fake --device cuda"}
    path.write_text(json.dumps({"fakery.value": entry, "fake.renamed": own, "speed.rounds": entry}))
    stored.publish(results, Fake(), fill(results, Fake()))
    assert list(stored.published(results)) == ["fake.value", "fakery.value", "speed.rounds"]
    assert stored.published(results)["fakery.value"] == entry


def test_figures_of_another_experiment_of_the_same_family_stay(results):
    one, other = Fake(called="one", kin="fakes"), Fake(called="one-more", kin="fakes")
    rows = {each.name: fill(results, each) for each in (one, other)}
    entry = stored.figures(one, rows["one"])["fakes.value"]
    document = {"fakes.first": entry, "fakes.gone": entry | {"command": "tacit experiment one-more"}}
    (results.folder / "figures.json").write_text(json.dumps(document))
    stored.publish(results, other, rows["one-more"])
    assert list(stored.published(results)) == ["fakes.first", "fakes.value"]
    assert stored.published(results)["fakes.first"] == entry
    assert stored.published(results)["fakes.value"]["command"] == "tacit experiment one-more"
    assert not list(results.folder.glob("fakes*"))  # the cells lie under the experiment's own name


def test_quick_runs_have_a_folder_of_their_own_and_are_never_published(tmp_path):
    quick = Results(tmp_path, quick=True)
    rows = fill(quick, Fake())
    assert len(list(tmp_path.glob("quick/fake/cells/*.json"))) == 1
    assert Results(tmp_path).rows(Fake()) == []
    with pytest.raises(ExperimentError, match="a quick run is never published"):
        stored.publish(quick, Fake(), rows)
    assert not (tmp_path / "figures.json").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"fake.value": 3}'])
def test_damaged_figures_are_refused_and_left_alone(results, text):
    path = results.folder / "figures.json"
    path.write_text(text)
    with pytest.raises(CorruptFileError, match=r"figures\.json"):
        stored.publish(results, Fake(), fill(results, Fake()))
    assert path.read_text() == text


def test_a_single_seed_has_no_spread():
    assert Figure.of([0.5], "reward") == Figure(0.5, 0.0, 1, "reward")


def test_a_curve_over_seeds_has_a_band_of_one_standard_deviation():
    curve = Curve.over_seeds("reward", [1, 2], [[0.0, 1.0], [2.0, 1.0]])
    assert curve.y == [1, 1]
    assert curve.low == [pytest.approx(1 - 2**0.5), 1]
    assert curve.high == [pytest.approx(1 + 2**0.5), 1]
