"""Off-policy estimates on finite worlds: how often their intervals hold the value, and how wide they are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from statistics import NormalDist, fmean
from typing import Any, TypeAlias

import torch
from torch import Tensor

from tacit.errors import ExperimentError
from tacit.evaluation import Estimate, decoder_error, doubly_robust, hidden_interval, ips, self_normalised
from tacit.evaluation.off_policy import Weighted
from tacit.experiments.ope_worlds import (
    ACTIONS,
    CONTEXTS,
    EPSILON,
    FEEDBACKS,
    World,
    epsilon_greedy,
    learn_world,
    record,
    record_learning,
    uniform,
)  # fmt: skip
from tacit.experiments.spec import Advance, Curve, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table
from tacit.interactions import Interactions
from tacit.seeding import generator

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known

LOGS = {"uniform": "uniform", "epsilon_greedy": "epsilon-greedy", "adaptive": "learner that changes"}
POLICIES = {"learned": "learned", "other": "unlike the log"}
ESTIMATORS = {"ips": "IPS", "self_normalised": "self-normalised", "doubly_robust": "doubly robust"}
HIDDEN = {"decoded": "for the decoded value", "trusting": "posterior trusted", "measured": "error measured"}
DECODERS = {True: "right class", False: "wrong class"}

CONFIDENCE = 0.95
BLOCKS = 2

PROTOCOL: Settings = {"runs": 50, "rounds": [500, 1_000, 2_000, 4_000], "learn_from": 1_000, "held_out": 4_000}
QUICK: Settings = {"runs": 2, "rounds": [200, 400], "learn_from": 600, "held_out": 600}

ABOUT = f"""
Every run has a world of its own, drawn at random: {CONTEXTS} contexts, {ACTIONS} actions, {FEEDBACKS} kinds of
feedback. A decoder, a regression of its rewards and a greedy policy are learned from {PROTOCOL["learn_from"]:,} uniform
rounds, in half of the runs from a class that lacks the true meaning of feedback, so that the decoder is wrong. Then
another log is written, and two policies are judged by it: the learned one, and a random one that does what the log
seldom does. The log is uniform; or {EPSILON:g}-greedy around a policy that is right in about half of the contexts; or
written by `OnPolicy`, which learns while it logs, so that every weight depends on the feedback before.

Covered means: the interval of {CONFIDENCE:.0%} holds the value, worked out exactly from the world. The fixed-sample
interval is the usual one, 1.96 standard errors to either side. It promises nothing for logs that depend on their own
past, nor when one stops as one likes, nor where rewards were too rare to be seen; here it held all the same. Ours holds
in all these cases, and is wider for it. The hidden value is covered as promised only where the decoder is right or its
error was measured, here among rounds of the same context and feedback, the finest groups there are;
{PROTOCOL["learn_from"]:,} rounds do not always find the right decoder even in a class that has it.
""".strip()


class Ope(Experiment):
    """Blocks of runs for every kind of log."""

    @property
    def name(self) -> str:
        return "ope"

    @property
    def summary(self) -> str:
        return "off-policy estimates on decoded reward: do their intervals hold the value, and how wide are they"

    @property
    def about(self) -> str:
        return ABOUT

    def cells(self, quick: bool) -> list[Settings]:
        blocks, protocol = (1, QUICK) if quick else (BLOCKS, PROTOCOL)
        return [
            {"log": log, "realisable": realisable, "block": block, **protocol}
            for log in LOGS for realisable in (True, False) for block in range(blocks)
        ]

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return int(values["runs"] * values["rounds"][-1])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        s: Values = settings
        if s["log"] not in LOGS:
            raise ExperimentError(f"log: expected one of {', '.join(LOGS)}, got {s['log']!r}")
        measured: dict[str, list[Values]] = defaultdict(list)
        for run in range(s["runs"]):
            for name, value in _run(s, s["block"] * s["runs"] + run):
                measured[name].append(value)
            advance(s["rounds"][-1])
        return dict(measured)

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        """`coverage` and its like are the smallest over logs, policies and estimators."""
        names = [(log, f"{policy} {estimator}") for log, policy, estimator in _cases()]
        found = {
            "coverage": _smallest(_column(rows, log, f"{name} covered") for log, name in names),
            "always_coverage": _smallest(_always(rows, log, f"{name} covered") for log, name in names),
            "fixed_sample_coverage": _smallest(_column(rows, log, f"{name} fixed covered") for log, name in names),
        }
        for way, name in (("measured", "hidden_coverage"), ("trusting", "hidden_coverage_trusting")):
            found[name] = _smallest(
                _column(rows, log, f"{policy} {way} covered") for log, policy in product(LOGS, POLICIES)
            )
        for log, policy, estimator in _cases():
            ratios = _ratios(rows, log, f"{policy} {estimator}")
            found[f"width.{log}.{policy}.{estimator}"] = Figure.of(ratios, "times the fixed-sample width")
        return found

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        return [_estimates_table(rows), _hidden_table(rows)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        lengths = _lengths(rows)

        def curve(called: str, name: str, dashed: bool = False) -> Curve:
            runs = [_column(rows, "adaptive", f"learned {name}", t) for t in range(len(lengths))]
            return Curve(called, lengths, [fmean(widths) for widths in runs], dashed=dashed)

        curves = [curve(called, f"{estimator} width") for estimator, called in ESTIMATORS.items()]
        curves.append(curve("doubly robust, fixed sample", "doubly_robust fixed width", dashed=True))
        note = (
            "The learned policy, judged by the log of a learner that changes; mean over all runs. Bets are made for "
            f"{lengths[-1]:,} rounds, so that the interval holds at all lengths at once and is tightest at the last."
        )
        title = "Width of the 95 % interval for the decoded value"
        return [Plot("width", title, "rounds", "width", tuple(curves), logarithmic=True, note=note)]


def fixed_width(log: Weighted, rewards: Tensor, predictions: Tensor) -> float:
    """Of the usual interval, by the normal approximation."""
    error = float(log.corrected(rewards, predictions).std()) / math.sqrt(len(rewards))
    return 2 * NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * error


def _run(s: Values, seed: int) -> Iterator[tuple[str, Values]]:
    """What one run measured, by name: a list over the log's lengths for estimates."""
    source = generator(seed, f"ope {s['log']} {s['realisable']}")
    world, lengths = learn_world(s["learn_from"], s["realisable"], source), s["rounds"]
    if s["log"] == "adaptive":
        rounds = record_learning(world, lengths[-1], seed, source)
    else:
        policy = uniform(world.instance) if s["log"] == "uniform" else epsilon_greedy(world, source)
        rounds = record(world.instance, policy, lengths[-1], source)
    held_out = record(world.instance, uniform(world.instance), s["held_out"], source)
    for name, policy in world.policies.items():
        yield from _estimated(world, rounds, lengths, name, policy)
        yield from _hidden(world, rounds, held_out, name, policy)


def _estimated(
    world: World, rounds: Interactions, lengths: list[int], name: str, policy: Tensor
) -> Iterator[tuple[str, Values]]:
    decoded = world.decoder.decode(world.posteriors(rounds), rounds.actions)
    wanted, predicted = policy[rounds.contexts], world.predictions[rounds.contexts]
    truth = world.decoded_value(policy)
    for estimator in ESTIMATORS:
        columns: dict[str, list[Values]] = defaultdict(list)
        for t in lengths:
            estimate, fixed = _estimate(
                estimator, rounds[:t], decoded[:t], wanted[:t], predicted[:t], planned=lengths[-1]
            )
            columns["covered"].append(int(estimate.lower <= truth <= estimate.upper))
            columns["width"].append(round(estimate.upper - estimate.lower, 6))
            columns["fixed covered"].append(int(abs(estimate.value - truth) <= fixed / 2))
            columns["fixed width"].append(round(fixed, 6))
        yield from ((f"{name} {estimator} {column}", values) for column, values in columns.items())


def _estimate(
    estimator: str, rounds: Interactions, decoded: Tensor, policy: Tensor, predicted: Tensor, planned: int
) -> tuple[Estimate, float]:
    """An estimate, and the width of its fixed-sample interval."""
    log = Weighted.of(rounds, policy, planned)
    if estimator == "ips":
        return ips(rounds, decoded, policy, planned=planned), fixed_width(log, decoded, torch.zeros_like(policy))
    if estimator == "doubly_robust":
        estimate = doubly_robust(rounds, decoded, policy, predicted, planned=planned)
        return estimate, fixed_width(log, decoded, predicted)
    estimate = self_normalised(rounds, decoded, policy, planned=planned)
    return estimate, fixed_width(log, decoded, torch.full_like(policy, estimate.value))


def _hidden(
    world: World, rounds: Interactions, held_out: Interactions, name: str, policy: Tensor
) -> Iterator[tuple[str, Values]]:
    h, wanted, truth = world.posteriors(rounds), policy[rounds.contexts], world.hidden_value(policy)
    groups = held_out.contexts * FEEDBACKS + held_out.feedback
    error = decoder_error(
        held_out, world.posteriors(held_out), world.decoder, policy[held_out.contexts], groups
    )
    trusting = hidden_interval(rounds, h, world.decoder, wanted)
    measured = hidden_interval(rounds, h, world.decoder, wanted, error=error)
    decoded = self_normalised(rounds, world.decoder.decode(h, rounds.actions), wanted)
    for way, interval in (("decoded", decoded), ("trusting", trusting), ("measured", measured)):
        yield f"{name} {way} covered", int(interval.lower <= truth <= interval.upper)
        yield f"{name} {way} width", round(interval.upper - interval.lower, 6)
    yield f"{name} overstated", round(world.decoded_value(policy) - truth, 6)


def _column(rows: Sequence[Row], log: str, name: str, length: int = -1) -> list[float]:
    """What all runs with a log measured under a name; of a list over lengths, what belongs to one of them."""
    measured: list[Values] = [row.measured for row in rows if row.settings["log"] == log]
    found = [value for values in measured for value in values[name]]
    return [value[length] if isinstance(value, list) else value for value in found]


def _lengths(rows: Sequence[Row]) -> list[int]:
    settings: Values = rows[0].settings
    return list(settings["rounds"])


def _cases() -> Iterator[tuple[str, str, str]]:
    return product(LOGS, POLICIES, ESTIMATORS)


def _always(rows: Sequence[Row], log: str, name: str) -> list[float]:
    """Whether each run's interval held the value at every length."""
    by_length = [_column(rows, log, name, t) for t in range(len(_lengths(rows)))]
    return [min(covered) for covered in zip(*by_length, strict=True)]


def _ratios(rows: Sequence[Row], log: str, name: str) -> list[float]:
    """Widths as multiples of the mean fixed-sample width: a run's own can be next to nothing, by bad luck."""
    usual = fmean(_column(rows, log, f"{name} fixed width"))
    return [width / usual for width in _column(rows, log, f"{name} width")]


def _smallest(columns: Iterable[Sequence[float]]) -> Figure:
    return min((Figure.of(runs, "share of runs") for runs in columns), key=lambda figure: figure.value)


def _estimates_table(rows: Sequence[Row]) -> Table:
    lines = []
    for log, policy, estimator in _cases():
        name = f"{policy} {estimator}"
        lines.append((
            f"{LOGS[log]}, {POLICIES[policy]}, {ESTIMATORS[estimator]}",
            f"{fmean(_column(rows, log, f'{name} covered')):.1%}",
            f"{fmean(_always(rows, log, f'{name} covered')):.1%}",
            f"{fmean(_column(rows, log, f'{name} fixed covered')):.1%}",
            f"{fmean(_column(rows, log, f'{name} width')):.3f}",
            f"{fmean(_ratios(rows, log, name)):.2f}",
        ))
    header = ("log, policy, estimator", "covered", "at all lengths", "fixed-sample covered", "width", "times fixed")
    runs, length = len(_column(rows, "uniform", "learned ips covered")), _lengths(rows)[-1]
    note = f"Decoded value, {length:,} rounds, {runs} runs for each log; lengths are {_lengths(rows)}."
    return Table("estimates", "Intervals for the decoded value", header, tuple(lines), note)


def _hidden_table(rows: Sequence[Row]) -> Table:
    lines = []
    for log, policy, (realisable, called) in product(LOGS, POLICIES, DECODERS.items()):
        these = [row for row in rows if row.settings["realisable"] == realisable]
        cells = []
        for way in HIDDEN:
            covered, width = (fmean(_column(these, log, f"{policy} {way} {what}")) for what in ("covered", "width"))
            cells.append(f"{covered:.1%} ({width:.3f})")
        most = max(0.0, *_column(these, log, f"{policy} overstated"))
        lines.append((f"{LOGS[log]}, {POLICIES[policy]}, {called}", *cells, f"{most:.3f}"))
    header = ("log, policy, decoder", *HIDDEN.values(), "most overstated")
    note = (
        "Share of runs in which an interval holds the hidden value, and its mean width in brackets; last, by how much "
        "the decoded value exceeded the hidden one at the most."
    )
    return Table("hidden", "Intervals for the hidden value", header, tuple(lines), note)
