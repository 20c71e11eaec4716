"""The experiment on off-policy estimates, in seconds and from the command line."""

from __future__ import annotations

import sys

import pytest

from tacit.cli import main


def test_a_quick_run_shows_and_writes_what_the_intervals_hold(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["tacit", "experiment", "ope", "--quick", "--results", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    said = capsys.readouterr().out
    for shown in ("Intervals for the decoded value", "Intervals for the hidden value", "learner that changes"):
        assert shown in said
    home = tmp_path / "quick" / "ope"
    assert {path.name for path in home.iterdir()} == {"cells", "tables.md", "width.png", "width.svg"}
    assert not (tmp_path / "figures.json").exists()
