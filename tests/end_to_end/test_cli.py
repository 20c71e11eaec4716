"""The command line from outside: what it writes, what it says, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

import pytest

import tacit
from tacit.cli import main
from tacit.cli.demo import sentence
from tacit.experiments import registry
from tacit.experiments.digits import Digits
from tacit.experiments.results import Results
from tacit.experiments.spec import Figure
from tests.unit.experiments.fake import Fake

Command: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch, capsys, tmp_path) -> Command:
    """Runs `tacit ...` in an empty folder: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tacit", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


@pytest.fixture
def offer(monkeypatch) -> Iterator[Callable[[Fake], None]]:
    """Makes an experiment the only one there is."""
    with patch.dict(registry.CLASSES, {"fake": "Fake"}, clear=True):
        yield lambda experiment: monkeypatch.setattr(registry, "named", lambda name: experiment)


def test_the_real_command_says_its_version_and_loads_no_heavy_library_for_that():
    script = "import sys; from tacit.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.check_output([sys.executable, "-c", script, "--version"], env=here, text=True)
    version, modules = said.splitlines()
    assert version == f"tacit {tacit.__version__}"
    assert not {"matplotlib", "sklearn", "rich.progress", "pyarrow"} & set(modules.split())


def test_help_lists_every_command(command):
    code, out, _ = command("--help")
    assert code == 0
    for name in ("demo", "experiment", "results"):
        assert re.search(rf"^  {name} ", out, re.MULTILINE)


def test_an_experiment_is_run_shown_written_and_published(command, offer, tmp_path):
    offer(Fake())
    code, out, err = command("experiment", "fake")
    assert (code, err) == (0, "")
    assert "seed 2" in out
    home = tmp_path / "results" / "fake"
    assert {path.name for path in home.iterdir()} == {"cells", "tables.md", "line.png", "line.svg"}
    assert (tmp_path / "results" / "figures.json").exists()


def test_a_quick_run_is_not_published(command, offer, tmp_path):
    offer(Fake())
    code, out, _ = command("experiment", "fake", "--quick", "--results", "elsewhere")
    assert code == 0
    assert "not published" in out
    assert (tmp_path / "elsewhere" / "quick" / "fake" / "tables.md").exists()
    assert not (tmp_path / "elsewhere" / "figures.json").exists()


def test_a_failed_cell_ends_with_its_reason_and_concludes_nothing(command, offer, tmp_path):
    offer(Fake(((1, "raises"),)))
    code, _, err = command("experiment", "fake")
    assert code == 1
    assert "1 of 3 cells failed; the same command tries them again:" in err
    assert re.search(r"size=10 seed=1: ValueError: seed 1 is \[unlucky\] \(fake.py, line \d+\)", err)
    assert "Traceback" not in err
    assert [path.name for path in (tmp_path / "results" / "fake").iterdir()] == ["cells"]
    offer(Fake())
    assert command("experiment", "fake")[0] == 0


def test_an_interrupted_run_says_how_to_go_on(command, offer):
    offer(Fake(((1, "interrupted"),)))
    code, out, err = command("experiment", "fake")
    assert (code, err) == (130, "")
    assert "Stopped. 1 of 3 cells are kept; the same command goes on from there." in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("experiment", "nothing"), f"no experiment 'nothing'; there are {', '.join(registry.CLASSES)}"),
        (("experiment",), "Missing argument 'NAME'"),
        (("experiment", "digits", "--jobs", "0"), "Invalid value for '--jobs'"),
        (("experiment", "digits", "--device", "tpu"), "Invalid value for '--device': device: expected cpu, cuda or"),
        (("experiment", "digits", "--data", "nowhere"), "dir 'nowhere' does not exist"),
        (("experiment", "digits", "--seeds", "3"), "No such option: --seeds"),
        (("results", "--results", "nowhere"), "dir 'nowhere' does not exist"),
        (("nothing",), "No such command 'nothing'"),
    ],
)
def test_a_wrong_command_line_is_explained(command, arguments, problem):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: tacit ")
    assert problem in " ".join(err.split())


@pytest.mark.parametrize(
    ("experiment", "arguments", "problem"),
    [
        (Fake(only_one=True), ("--jobs", "2"), "tacit: fake measures time, so its cells run one by one"),
        (Fake(), ("--results", "taken/here"), "tacit: could not write"),
    ],
)
def test_what_is_refused_is_one_line_without_a_traceback(command, offer, tmp_path, experiment, arguments, problem):
    offer(experiment)
    (tmp_path / "taken").write_text("a file, not a folder")
    code, _, err = command("experiment", "fake", *arguments)
    assert code == 1
    assert err.startswith(problem)
    assert err.count("\n") == 1


def test_a_missing_library_is_named_before_anything_is_run(command, offer, tmp_path, monkeypatch):
    offer(Fake())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("plots", "pages"):
        monkeypatch.delitem(sys.modules, f"tacit.experiments.{name}", raising=False)
        monkeypatch.delattr(f"tacit.experiments.{name}", raising=False)
    code, _, err = command("experiment", "fake")
    assert (code, err) == (1, "tacit: matplotlib is not installed. Install it with: pip install 'tacit[plots]'\n")
    assert not (tmp_path / "results").exists()


def test_results_are_made_again_from_the_cells_alone(command, offer, tmp_path):
    offer(Fake())
    command("experiment", "fake")
    home, page = tmp_path / "results" / "fake", tmp_path / "page.md"
    before = (home / "tables.md").read_bytes(), (tmp_path / "results" / "figures.json").read_bytes()
    for path in (*home.glob("*.*"), tmp_path / "results" / "figures.json"):
        path.unlink()
    offer(Fake(((0, "raises"), (1, "raises"), (2, "raises"))))
    code, out, _ = command("results", "--page", "page.md")
    assert code == 0
    assert "written: page.md" in out
    assert ((home / "tables.md").read_bytes(), (tmp_path / "results" / "figures.json").read_bytes()) == before
    assert "## fake" in page.read_text()
    assert (tmp_path / "assets" / "results" / "fake-line.svg").exists()


def test_results_of_a_part_are_left_as_they_are(command, offer, tmp_path):
    offer(Fake(((1, "interrupted"),)))
    command("experiment", "fake")
    code, out, _ = command("results")
    assert code == 0
    assert "fake: left as it is, 1 of 3 cells are done" in out
    assert not (tmp_path / "results" / "figures.json").exists()


def test_the_demo_shows_a_table_draws_a_plot_and_ends_with_what_was_learned(command, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    code, out, err = command("demo", "--quick", "--out", "shown")
    assert (code, err) == (0, "")
    for learner in ("tacit, without rewards", "sees every reward", "uniform choice"):
        assert learner in out
    assert {path.name for path in (tmp_path / "shown").iterdir()} == {"tables.md", "rewards.png", "rewards.svg"}
    assert f"drawn in {Path('shown') / 'rewards.png'}" in out
    assert re.search(r"Without seeing a single reward, tacit learned to name \d+ % of digits", out.splitlines()[-1])


def test_an_interrupted_demo_promises_nothing(command, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(Digits, "run_cell", interrupted)
    code, out, err = command("demo", "--quick")
    assert (code, err) == (130, "")
    assert out.endswith("Stopped. 0 of 3 cells were done.\n")


def test_the_experiment_on_logs_runs_in_its_quick_shape(command, tmp_path):
    code, out, err = command("experiment", "logs", "--quick")
    assert (code, err) == (0, "")
    assert re.search(r"inverse-gap, .* 1,500 +\d+ +[\d.]+ % +[\d.]+ % +[01] *$", out, re.MULTILINE)
    home = tmp_path / "results" / "quick" / "logs"
    assert {path.name for path in home.iterdir()} == {"cells", "tables.md", "accuracy.png", "accuracy.svg"}


def test_the_last_sentence_of_the_demo_is_made_of_measured_numbers():
    measured = {"tacit.test": 0.951, "sighted.test": 0.972, "uniform.test": 0.1}
    said = sentence({name: Figure(value, 0.0, 1, "accuracy") for name, value in measured.items()})
    assert re.findall(r"(\d+) %", said) == ["95", "97", "10"]


def test_the_experiments_can_be_had_by_name():
    assert registry.named("digits").name == "digits"
    with pytest.raises(tacit.ExperimentError, match="there is no experiment 'digit'; there are ablation, digits, "):
        registry.named("digit")


def test_the_small_experiment_asks_for_each_learner_on_each_seed():
    cells = Results(Path("results")).cells(registry.named("digits"))
    assert len(cells) == len({(cell["learner"], cell["seed"]) for cell in cells}) == 15
