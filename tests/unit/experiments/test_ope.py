"""The protocol of the off-policy estimates: its worlds, its cells, and what is concluded from their rows."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest
import torch

from tacit.errors import ExperimentError
from tacit.evaluation.off_policy import Weighted
from tacit.experiments.ope import LOGS, Ope, fixed_width
from tacit.experiments.ope_worlds import EPSILON, epsilon_greedy, learn_world, record, record_learning, uniform
from tacit.experiments.results import Results, published
from tacit.experiments.spec import Origin, Place, Row, Settings
from tacit.seeding import generator

STORED = Path(__file__).parents[3] / "results"
SMALL: Settings = {"runs": 2, "rounds": [60, 120], "learn_from": 300, "held_out": 100}


@cache
def rows() -> tuple[Row, ...]:
    """Every kind of cell, as small as can be."""
    cells: list[Settings] = [
        {"log": log, "realisable": realisable, "block": 0, **SMALL} for log in LOGS for realisable in (True, False)
    ]
    experiment = Ope()
    return tuple(
        Row(cell, experiment.run_cell(cell, Place(), lambda rounds: None), 1.0, Origin("", {}, "")) for cell in cells
    )


def test_there_are_two_hundred_runs_for_every_log_and_half_of_them_have_a_wrong_class():
    cells = Ope().cells(quick=False)
    for log in LOGS:
        for realisable in (True, False):
            runs = [cell["runs"] for cell in cells if (cell["log"], cell["realisable"]) == (log, realisable)]
            assert sum(map(int, map(str, runs))) == 100


def test_the_same_cell_measures_the_same():
    first = rows()[-1]
    assert Ope().run_cell(first.settings, Place(), lambda rounds: None) == first.measured


def test_progress_adds_up_to_the_rounds_of_a_cell():
    heard: list[int] = []
    cell = rows()[0].settings
    Ope().run_cell(cell, Place(), heard.append)
    assert sum(heard) == Ope().rounds(cell) == 240


def test_an_unknown_log_is_refused():
    with pytest.raises(ExperimentError, match="log: expected one of uniform, epsilon_greedy, adaptive, got 'own'"):
        Ope().run_cell({"log": "own", "realisable": True, "block": 0, **SMALL}, Place(), lambda rounds: None)


def changed(row: Row, name: str, value: object) -> Row:
    return Row(row.settings, row.measured | {name: value}, row.seconds, row.origin)


def test_coverage_is_that_of_the_worst_case():
    worst = [changed(row, "other ips covered", [[1, 0], [0, 1]]) for row in rows()]
    found = Ope().figures(worst)
    assert (found["coverage"].value, found["always_coverage"].value) == (0.5, 0.0)
    assert found["coverage"].seeds == 4
    hidden = [changed(row, "learned measured covered", [0, 0]) for row in rows()]
    assert Ope().figures(hidden)["hidden_coverage"].value == 0.0


def test_widths_are_multiples_of_the_mean_fixed_sample_width():
    name = "learned ips"
    made = [
        changed(changed(row, f"{name} width", [[9, 0.2], [9, 0.4]]), f"{name} fixed width", [[9, 0.1], [9, 0.3]])
        for row in rows()
    ]
    assert Ope().figures(made)["width.uniform.learned.ips"].value == pytest.approx(1.5)


def test_tables_and_plots_show_every_log_policy_estimator_and_decoder():
    estimates, hidden = Ope().tables(rows())
    assert (len(estimates.lines), len(hidden.lines)) == (18, 12)
    (plot,) = Ope().plots(rows())
    assert [list(curve.x) for curve in plot.curves] == [[60, 120]] * 4


def test_values_worked_out_from_the_world_are_those_of_many_rounds():
    source = generator(0, "test")
    world = learn_world(500, False, source)
    for policy in world.policies.values():
        rounds = record(world.instance, policy, 40_000, source)
        decoded = world.decoder.decode(world.posteriors(rounds), rounds.actions)
        # 0.5 is the largest standard deviation there is; four standard errors.
        assert float(decoded.mean()) == pytest.approx(world.decoded_value(policy), abs=4 * 0.5 / math.sqrt(40_000))
        reward = world.instance.phi[rounds.contexts, rounds.feedback]
        assert float(reward.mean()) == pytest.approx(world.hidden_value(policy), abs=4 * 0.5 / math.sqrt(40_000))


def test_a_class_without_the_truth_makes_a_wrong_posterior_and_one_with_it_mostly_a_right_one():
    def right(realisable: bool) -> int:
        found = 0
        for seed in range(10):
            world = learn_world(1_000, realisable, generator(seed, "test"))
            decoded, reward = world.decoder, world.instance.phi
            ceiling = decoded.decode(world.h.flatten(0, 1), world.h.flatten(0, 1).argmax(1)).view(reward.shape)
            found += torch.equal(ceiling.round(), reward)
        return found

    assert right(True) >= 9
    assert right(False) == 0


def test_logs_carry_the_probabilities_that_their_actions_were_drawn_from():
    source = generator(1, "test")
    world = learn_world(500, True, source)
    greedy = epsilon_greedy(world, source)
    assert greedy.unique().tolist() == pytest.approx([EPSILON / 5, 1 - EPSILON + EPSILON / 5])
    adaptive = record_learning(world, 3_000, 1, source)
    assert len(adaptive.probabilities.round(decimals=4).unique(dim=0)) > 50
    for rounds in (record(world.instance, greedy, 3_000, source), adaptive):
        # Weights of a fixed policy average 1, up to four standard errors.
        weights = Weighted.of(rounds, uniform(world.instance)[rounds.contexts], None)
        taken = weights.taken(weights.weights)
        assert float(taken.mean()) == pytest.approx(1, abs=4 * float(taken.std()) / math.sqrt(3_000))


def test_the_fixed_sample_width_is_that_of_the_normal_approximation():
    source = generator(2, "test")
    world = learn_world(300, True, source)
    rounds = record(world.instance, uniform(world.instance), 400, source)
    decoded = world.decoder.decode(world.posteriors(rounds), rounds.actions)
    log = Weighted.of(rounds, rounds.probabilities, None)
    expected = 2 * 1.959964 * float(decoded.std()) / 20
    assert fixed_width(log, decoded, torch.zeros_like(log.policy)) == pytest.approx(expected, rel=1e-5)


def test_published_intervals_hold_the_value_in_at_least_93_of_100_runs():
    found = published(Results(STORED))
    for name in ("coverage", "always_coverage", "hidden_coverage"):
        entry = found[f"ope.{name}"]
        assert isinstance(entry, dict)
        assert (entry["seeds"], float(str(entry["value"])) >= 0.93) == (200, True)
