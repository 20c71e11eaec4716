"""Where a row comes from: the revision is that of our sources and of nobody else's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tacit.experiments import origin


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "src"
    package.mkdir()
    (package / "__init__.py").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "Begin")
    return package


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_clean_sources_have_the_revision_of_their_commit(package):
    (package.parent / "results.json").write_text("what a run leaves behind is no change of the sources")
    assert origin.revision(package) == git(package, "rev-parse", "--short=12", "HEAD")


@pytest.mark.parametrize("name", ["__init__.py", "new.py"])
def test_changed_sources_say_so(package, name):
    (package / name).write_text("1")
    assert origin.revision(package).endswith("+changes")


def test_sources_that_the_repository_around_them_does_not_hold_have_their_version(package):
    installed = package / "site-packages" / "tacit"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert origin.revision(installed).startswith("tacit ")


def test_sources_outside_of_any_repository_have_their_version(tmp_path):
    assert origin.revision(tmp_path).startswith("tacit ")


def test_the_hardware_names_processor_cores_and_threads():
    assert origin.hardware("cpu", 1).endswith(", 1 thread")
    assert origin.hardware("cpu", 3).endswith(" cores, 3 threads")
