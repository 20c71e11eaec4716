"""The experiment on logs: each log is what it says it is, and figures are means over seeds."""

from __future__ import annotations

from statistics import fmean

import pytest
import torch

from tacit.experiments import logs
from tacit.experiments.logs import POLICIES, Logs, written
from tacit.experiments.results import key
from tacit.experiments.spec import Origin, Row

N = 20_000


@pytest.mark.parametrize("policy", POLICIES)
def test_actions_are_drawn_from_the_probabilities_of_the_log(policy):
    log = written(policy, N, seed=0)
    taken = torch.nn.functional.one_hot(log.actions, 4).double()
    missed = (taken - log.probabilities).sum(0)
    # Four standard deviations, at most.
    assert (missed.abs() < 4 * (log.probabilities * (1 - log.probabilities)).sum(0).sqrt()).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_nine_words_in_ten_say_what_was_meant_and_kinds_mean_the_opposite(policy):
    log = written(policy, N, seed=0)
    right = log.actions == log.contexts[:, :4].argmax(1)
    kind = log.contexts[:, 4:].argmax(1)
    meant = right.long() ^ kind
    assert float((log.feedback == meant).float().mean()) == pytest.approx(0.9, abs=0.01)


def test_the_policies_seldom_take_the_right_action_or_ever_less():
    def right(log) -> torch.Tensor:
        return log.probabilities.gather(1, log.contexts[:, :4].argmax(1, keepdim=True))[:, 0]

    assert (right(written("uniform", N, 0)) == 0.25).all()
    torch.testing.assert_close(right(written("epsilon_greedy", N, 0)), torch.full((N,), 0.075))
    log = written("inverse_gap", N, 0)
    other = log.contexts[:, 5] == 1
    assert right(log)[~other][-100:].min() > 0.9
    assert right(log)[other][-100:].max() < 0.01


def test_another_seed_is_another_log():
    assert not torch.equal(written("uniform", 100, 0).actions, written("uniform", 100, 1).actions)


def rows() -> list[Row]:
    origin = Origin("revision", {}, "machine")
    return [
        Row(settings, {"accuracy": 0.5 + 0.1 * i % 0.5, "worth": 100.0, "refused": None}, 1.0, origin)
        for i, settings in enumerate(Logs().cells(quick=False))
    ]


def test_figures_are_means_over_seeds_at_the_most_rounds():
    figures = Logs().figures(rows())
    assert set(figures) == {f"{name}.accuracy" for name in (*POLICIES, "other_policy")}
    assert {figure.seeds for figure in figures.values()} == {len(logs.SEEDS)}
    longest = [row for row in rows() if row.settings["rounds"] == 20_000 and row.settings["policy"] != "uniform"]
    assert len(longest) == 2 * len(logs.SEEDS)
    assert figures["other_policy.accuracy"].value == pytest.approx(fmean(row.measured["accuracy"] for row in longest))


def test_the_table_shows_the_worst_seed_of_each_log():
    (table,) = Logs().tables(rows())
    assert len(table.lines) == len(POLICIES) * len(logs.ROUNDS)
    measured = [row.measured["accuracy"] for row in rows()[: len(logs.SEEDS)]]
    assert table.lines[0][4] == f"{100 * min(measured):.1f} %"


def test_quick_cells_are_none_of_the_published_ones():
    quick, published = ({key("logs", settings) for settings in Logs().cells(short)} for short in (True, False))
    assert not quick & published
