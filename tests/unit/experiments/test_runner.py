"""The runner: what was run is kept, what failed is seen, and nothing stops the rest."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from tacit.errors import CorruptFileError, ExperimentError, InvalidInputError, SaveError
from tacit.experiments.progress import label, varying
from tacit.experiments.results import Results, key
from tacit.experiments.runner import run
from tacit.experiments.spec import Place, Row
from tests.unit.experiments.fake import Fake, values

SCRIPT = """
import signal
from pathlib import Path
from tacit.experiments.results import Results
from tacit.experiments.runner import run
from tacit.experiments.spec import Place
from tests.unit.experiments.fake import Fake
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background ignores it
    run(Fake(((1, "{trouble}"),), Path("{cure}")), Results(Path("{folder}")), Place(), {jobs})
"""


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


def play(experiment: Fake, results: Results, jobs: int = 1) -> tuple[list[Row], str]:
    heard = io.StringIO()
    rows = run(experiment, results, Place(), jobs, Console(file=heard, width=200))
    return rows, heard.getvalue()


def start_elsewhere(results: Results, trouble: str, cure: Path, jobs: int) -> subprocess.Popen[str]:
    """The same, in a process group of its own."""
    script = cure.with_name("script.py")
    script.write_text(SCRIPT.format(trouble=trouble, cure=cure, folder=results.folder, jobs=jobs))
    here = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])}
    command = [sys.executable, script]
    return subprocess.Popen(command, env=here, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_a_key_never_changes_for_the_same_settings():
    assert key("fake", {"seed": 1, "size": 10}) == "32bc6e1f10ed7b52"
    assert key("fake", {"size": 10, "seed": 1}) == key("fake", {"seed": 1, "size": 10})


@pytest.mark.parametrize("other", [("other", {"seed": 1}), ("fake", {"seed": 2}), ("fake", {"seed": "1"})])
def test_other_settings_have_another_key(other):
    assert key(*other) != key("fake", {"seed": 1})


@pytest.mark.parametrize(("jobs", "processes"), [(1, 1), (2, 4)])
def test_every_cell_leaves_a_row_with_its_origin(results, jobs, processes):
    rows, heard = play(Fake(), results, jobs)
    assert values(rows) == [0, 1, 2]
    for row in rows:
        assert row.error is None
        assert set(row.origin.versions) == {"python", "tacit", "torch", "numpy"}
        assert row.origin.revision
        assert "thread" in row.origin.hardware
        assert row.seconds >= 0
    assert len({row.measured["process"] for row in rows} | {os.getpid()}) == processes
    assert sorted(line.split("  ")[1] for line in heard.splitlines()) == ["seed=0", "seed=1", "seed=2"]


def test_finished_cells_are_not_run_again(results):
    before, _ = play(Fake(), results)
    again, heard = play(Fake(), results, jobs=2)
    assert again == before
    assert heard == ""


@pytest.mark.parametrize(
    ("trouble", "jobs", "problem"),
    [
        ("raises", 1, r"ValueError: seed 1 is \[unlucky\] \(fake.py, line \d+\)"),
        ("nan", 2, "ValueError: Out of range float values"),
        ("killed", 2, "its process ended with exit code -9"),
    ],
)
def test_a_failed_cell_is_a_row_stops_no_other_and_is_tried_again(results, tmp_path, trouble, jobs, problem):
    experiment = Fake(((1, trouble),), tmp_path / "cure")
    rows, heard = play(experiment, results, jobs)
    assert [row.error is None for row in rows] == [True, False, True]
    assert rows[1].measured == {}
    assert re.match(problem, str(rows[1].error))
    assert f"failed: {rows[1].error}" in heard
    assert results.complete(experiment) is None

    (tmp_path / "cure").touch()
    again, heard = play(experiment, results, jobs)
    assert values(again) == [0, 1, 2]
    assert [again[0], again[2]] == [rows[0], rows[2]]
    assert "2 of 3 cells were run before" in heard


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_whose_row_has_no_room_on_the_disk_is_seen_stops_no_other_and_is_tried_again(results, tmp_path, jobs):
    experiment = Fake(((1, "disk full"),), tmp_path / "cure")
    rows, heard = play(experiment, results, jobs)
    assert [row.settings["seed"] for row in rows] == [0, 1, 2]
    assert [row.error is None for row in rows] == [True, False, True]
    assert re.match(r"SaveError: could not write .*\.json: No space left on device", str(rows[1].error))
    assert f"failed: {rows[1].error}" in heard
    assert values(results.rows(experiment)) == [0, 2]
    assert results.complete(experiment) is None

    (tmp_path / "cure").touch()
    again, heard = play(experiment, results, jobs)
    assert values(again) == [0, 1, 2] == values(results.complete(experiment))
    assert [again[0], again[2]] == [rows[0], rows[2]]


def test_the_row_of_a_process_that_died_is_seen_even_if_it_cannot_be_written(results, monkeypatch):
    write = Results.write

    def refuse(self: Results, experiment: Fake, row: Row) -> None:
        if row.error is not None:
            raise SaveError("no room")
        write(self, experiment, row)

    monkeypatch.setattr(Results, "write", refuse)  # the processes of cells write as ever
    rows, heard = play(Fake(((1, "killed"),)), results, jobs=2)
    assert [row.error for row in rows] == [None, "its process ended with exit code -9", None]
    assert "failed: its process ended" in heard


def test_a_damaged_row_is_refused_before_anything_is_run(results):
    play(Fake(), results)
    cells = sorted(results.folder.glob("fake/cells/*.json"))
    cells[0].unlink()
    cells[1].write_text(cells[1].read_text().replace('"value"', '"valeu"'))
    heard = io.StringIO()
    with pytest.raises(CorruptFileError, match=r"lacks val.., which other cells measured; delete it to run the cell"):
        run(Fake(), results, Place(), 1, Console(file=heard, width=200))
    assert heard.getvalue() == ""


def test_a_killed_run_goes_on_where_it_stood(results, tmp_path):
    process = start_elsewhere(results, "killed", tmp_path / "cure", jobs=1)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert values(results.rows(Fake())) == [0]
    first = results.rows(Fake())[0]
    rows, _ = play(Fake(), results)
    assert values(rows) == [0, 1, 2]
    assert rows[0] == first


def test_an_interrupt_leaves_finished_cells_and_no_row_for_the_other(results):
    with pytest.raises(KeyboardInterrupt):
        play(Fake(((1, "interrupted"),)), results)
    assert values(results.rows(Fake())) == [0]


def test_an_interrupt_ends_the_cells_side_by_side_without_a_word_from_them(results, tmp_path):
    process = start_elsewhere(results, "waits", tmp_path / "cure", jobs=2)
    while len(results.rows(Fake())) < 2 and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)  # returns when nobody is left who could write
    assert errors.count("Traceback") == 1  # the parent's own
    assert errors.endswith("KeyboardInterrupt\n")
    assert values(results.rows(Fake())) == [0, 2]


def test_a_killed_run_takes_the_cells_side_by_side_with_it_and_goes_on_where_it_stood(results, tmp_path):
    process = start_elsewhere(results, "waits", tmp_path / "cure", jobs=2)
    while len(results.rows(Fake())) < 2 and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=30)  # returns when nobody is left who could write
    first = results.rows(Fake())
    assert values(first) == [0, 2]
    rows, _ = play(Fake(), results, jobs=2)
    assert values(rows) == [0, 1, 2]
    assert [rows[0], rows[2]] == first


def test_an_experiment_that_measures_time_refuses_company(results):
    with pytest.raises(ExperimentError, match="fake measures time, so its cells run one by one; leave out --jobs"):
        play(Fake(only_one=True), results, jobs=2)
    rows, _ = play(Fake(only_one=True), results)
    assert values(rows) == [0, 1, 2]


def test_no_jobs_are_refused(results):
    with pytest.raises(InvalidInputError, match="jobs: expected at least 1, got 0"):
        play(Fake(), results, jobs=0)


@pytest.mark.parametrize(("device", "problem"), [("gpu", "expected cpu, cuda or"), ("cuda:99", "there is no cuda:99")])
def test_a_device_that_is_not_there_is_refused(results, device, problem):
    with pytest.raises(InvalidInputError, match=f"device: {problem}"):
        run(Fake(), results, Place(device))


def test_a_protocol_with_the_same_cell_twice_is_refused(results, monkeypatch):
    monkeypatch.setattr(Fake, "cells", lambda self, quick: [{"seed": 0}, {"seed": 0}])
    with pytest.raises(ExperimentError, match="fake: its protocol has the same cell twice"):
        play(Fake(), results)


def test_a_folder_that_cannot_be_written_to_ends_the_run(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(SaveError, match="could not write"):
        play(Fake(), Results(tmp_path / "results"))


def test_a_cell_is_called_by_what_sets_it_apart():
    cells = [{"size": 1, "seed": 0}, {"size": 1, "seed": 1}]
    assert [label(cell, varying(cells)) for cell in cells] == ["seed=0", "seed=1"]
    assert label(cells[0], varying(cells[:1])) == "size=1 seed=0"


def test_nothing_is_run_whose_row_could_not_be_kept(tmp_path):
    (tmp_path / "file").write_text("in the way")
    heard = io.StringIO()
    with pytest.raises(SaveError, match="could not write"):
        run(Fake(), Results(tmp_path / "file" / "results"), Place(), 1, Console(file=heard, force_terminal=True))
    assert heard.getvalue() == ""
