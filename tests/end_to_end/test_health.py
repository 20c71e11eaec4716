"""Health of real learners: across a restart, of both algorithms, and its experiment from the command line."""

from __future__ import annotations

import json
import sys

import pytest
import torch

import tacit
from tacit.cli import main
from tacit.experiments.health import Health
from tacit.experiments.results import Results
from tests import worlds


def played(kind, rounds: int = 1_500) -> tacit.Learner:
    learner = kind(worlds.finite(), worlds.classes(), 500 if kind is worlds.off_policy else 1_000, decoder=DECODER)
    worlds.play(learner, worlds.finite(), rounds)
    assert not learner.exploring
    return learner


DECODER = tacit.Decoder.from_assumption(alpha=1, theta=0.9, K=4)


@pytest.mark.parametrize("kind", [worlds.on_policy, worlds.off_policy, worlds.two_view])
def test_a_learner_of_a_known_world_is_found_sound(kind):
    report = played(kind).health()
    assert report.verdict == "ok", str(report)
    assert (report.rounds, report.uniform) == (1_500, 1_000)


@pytest.mark.parametrize("kind", [worlds.on_policy, worlds.off_policy, worlds.two_view])
def test_a_report_is_the_same_after_a_restart_and_changes_nothing(kind, tmp_path):
    learner = played(kind)
    said = str(learner.health())
    learner.save(tmp_path)
    loaded = tacit.load(tmp_path, device="cpu")
    assert str(loaded.health()) == said
    mine, its = (each.choose([0, 1, 2]) for each in (learner, loaded))
    assert torch.equal(mine.actions, its.actions)


def test_a_log_that_cannot_be_learned_from_is_explained():
    learner = worlds.off_policy(worlds.finite(), worlds.classes(), explore=None)
    with pytest.raises(tacit.UntrustworthyDecoderError):
        learner.fit(worlds.noise(worlds.uniform_log(worlds.finite(), 3_000)))
    report = learner.health()
    assert report.verdict == "broken"
    assert "chance" in report.spoke


def test_a_learner_that_has_hardly_begun_says_that_it_needs_more_rounds():
    learner = worlds.on_policy(worlds.finite(), worlds.classes(), explore=1_000)
    worlds.play(learner, worlds.finite(), 100)
    assert learner.health().spoke == ("rounds",)


def test_the_experiment_runs_from_the_command_line(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["tacit", "experiment", "health", "--quick"])
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr().out
    assert not ended.value.code, out
    assert "Broken and healthy worlds" in out
    rows = Results(tmp_path / "results", quick=True).rows(Health())
    assert {row.settings["world"]: row.measured["verdict"] for row in rows} == {
        "five_actions": "ok", "constant": "broken", "too_few": "watch",
    }  # fmt: skip
    assert json.dumps([row.measured for row in rows])
