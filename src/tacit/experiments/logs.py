"""Learning from logs that another policy wrote: how many rounds it takes, and whether the best actions are found.

The world is small, so that what matters can be seen: two kinds of users with opposite signals, and logs of policies
that seldom, or less and less often, take the right action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from tacit.algorithms import Networks, OffPolicy
from tacit.decoder import Decoder
from tacit.encoders import Category, Table
from tacit.errors import UntrustworthyDecoderError
from tacit.experiments.spec import Advance, Curve, Experiment, Figure, Measured, Place, Plot, Row, Settings
from tacit.experiments.spec import Table as Shown
from tacit.exploration import SquareRoot, draw, inverse_gap, uniform
from tacit.interactions import Interactions
from tacit.inverse.base import worth
from tacit.seeding import generator

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known

K, KINDS = 4, 2  # actions, as many as there are things to be shown; kinds of users
FLIPPED = 0.1
EPSILON = 0.3
ROUNDS = (2_000, 6_000, 20_000)
SEEDS = (10, 11, 12, 13, 14)  # how many rounds are kept back was settled on seeds 0 to 4
QUICK = 1_500

POLICIES = {
    "uniform": "uniform",
    "epsilon_greedy": "epsilon-greedy around a wrong action",
    "inverse_gap": "inverse-gap, taking one word for praise",
}

ABOUT = f"""
A log holds what another policy did. A context says which of {K} things is wanted and which of {KINDS} kinds of user
wants it. One action is right; the user then says one of two words, and otherwise the other. What the words mean is the
opposite for the two kinds, and one word in ten is flipped. The policies that write logs:

- *uniform*;
- *epsilon-greedy*: with probability {1 - EPSILON:g} an action that is wrong in every context, else uniform;
- *inverse-gap*: it takes the same word for praise from everybody and prefers what earns it, with gamma growing as the
  square root of the round. It is right about one kind of user, and ever more surely wrong about the other.

`OffPolicy.fit` learns from each log, with the default networks and the decoder for these rewards (a word of praise for
the right action nine times in ten, for the others one time in ten). Accuracy is the share of contexts in which the
policy that it learned takes the right action; a log that it refuses counts as chance, {1 / K:g}. How many rounds are
kept back to judge the inverse model on was settled on seeds 0 to 4; what is shown is from seeds {SEEDS[0]} to
{SEEDS[-1]}.
""".strip()


class Logs(Experiment):
    """Every policy's log, at several lengths, on every seed; a seed decides the log and the initial weights."""

    @property
    def name(self) -> str:
        return "logs"

    @property
    def summary(self) -> str:
        return "learning from the log of another policy: uniform, epsilon-greedy, inverse-gap"

    @property
    def about(self) -> str:
        return ABOUT

    def cells(self, quick: bool) -> list[Settings]:
        lengths, seeds = ((QUICK,), SEEDS[:1]) if quick else (ROUNDS, SEEDS)
        return [
            {"policy": policy, "rounds": rounds, "seed": seed}
            for policy in POLICIES for rounds in lengths for seed in seeds
        ]  # fmt: skip

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return int(values["rounds"])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        s: Values = settings
        log = written(s["policy"], s["rounds"], s["seed"])
        learner = OffPolicy(
            K, Table(K + KINDS), Category(2), models=Networks(on=place.device), seed=s["seed"],
            decoder=Decoder.from_assumption(alpha=1 - FLIPPED + (K - 1) * FLIPPED, theta=1 - FLIPPED, K=K),
        )  # fmt: skip
        refused = None
        try:
            learner.fit(log)
        except UntrustworthyDecoderError as doubt:
            refused = str(doubt)
        advance(s["rounds"])
        fit = learner.fit_quality
        return {
            "accuracy": 1 / K if refused else accuracy(learner),
            "refused": refused,
            "worth": worth(log.probabilities),
            "gain": fit.gain if fit else None,
            "standard_error": fit.error if fit else None,
        }

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        """At the most rounds; `other_policy` is the mean of the two that are not uniform, seed by seed."""
        found = {policy: _measured(rows, policy, _longest(rows), "accuracy") for policy in POLICIES}
        both = zip(found["epsilon_greedy"], found["inverse_gap"], strict=True)
        found["other_policy"] = [sum(values) / len(values) for values in both]
        return {f"{policy}.accuracy": Figure.of(values, "accuracy") for policy, values in found.items()}

    def tables(self, rows: Sequence[Row]) -> list[Shown]:
        lines = []
        for policy, called in POLICIES.items():
            for rounds in _lengths(rows):
                accuracies = _measured(rows, policy, rounds, "accuracy")
                uniform_rounds = Figure.of(_measured(rows, policy, rounds, "worth"), "").value
                refused = sum(text is not None for text in _measured(rows, policy, rounds, "refused"))
                lines.append((
                    called, f"{rounds:,}", f"{uniform_rounds:,.0f}",
                    f"{100 * Figure.of(accuracies, '').value:.1f} %", f"{100 * min(accuracies):.1f} %", str(refused),
                ))  # fmt: skip
        header = ("log written by", "rounds", "worth in uniform rounds", "accuracy", "worst seed", "refused")
        seeds = len(_measured(rows, "uniform", _longest(rows), "accuracy"))
        note = f"Mean and worst of {seeds} seeds. A log is worth as many uniform rounds as lead one to expect another "
        note += "action than the likeliest as often. A refused log counts as chance."
        return [Shown("policies", "Policies learned from logs", header, tuple(lines), note)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        lengths = _lengths(rows)
        curves = []
        for policy, called in POLICIES.items():
            runs = [_measured(rows, policy, rounds, "accuracy") for rounds in lengths]
            means = [Figure.of(run, "").value for run in runs]
            curves.append(Curve(called, lengths, means, [min(run) for run in runs], [max(run) for run in runs]))
        note = "Mean over seeds, in a band from the worst to the best. A log that is refused counts as chance."
        title = "Policies learned from another policy's log"
        return [Plot("accuracy", title, "rounds in the log", "accuracy", tuple(curves), note=note)]


def written(policy: str, rounds: int, seed: int) -> Interactions:
    """The log of a policy: context (wanted thing, kind of user) as six numbers, and one of two words as feedback."""
    source = generator(seed, "log")
    wanted, kind = torch.randint(K, (rounds,), generator=source), torch.randint(KINDS, (rounds,), generator=source)
    probabilities = _probabilities(policy, wanted, kind)
    actions = draw(probabilities, torch.rand(rounds, generator=source))
    flipped = torch.rand(rounds, generator=source) < FLIPPED
    words = (actions == wanted).long() ^ kind ^ flipped.long()
    return Interactions.of(
        contexts=contexts(wanted, kind), actions=actions, probabilities=probabilities, feedback=words
    )


def contexts(wanted: Tensor, kind: Tensor) -> Tensor:
    """(n, K + KINDS)"""
    return torch.cat([functional.one_hot(wanted, K), functional.one_hot(kind, KINDS)], 1).float()


def accuracy(learner: OffPolicy) -> float:
    """The share of all contexts in which the greedy action is the right one."""
    wanted, kind = torch.cartesian_prod(torch.arange(K), torch.arange(KINDS)).unbind(1)
    return float((learner.greedy(contexts(wanted, kind)) == wanted).float().mean())


def _probabilities(policy: str, wanted: Tensor, kind: Tensor) -> Tensor:
    n = len(wanted)
    if policy == "uniform":
        return uniform(n, K)
    if policy == "epsilon_greedy":
        return EPSILON * uniform(n, K) + (1 - EPSILON) * functional.one_hot((wanted + 1) % K, K)
    # How often each action earns the word that praises from the first kind of user.
    praised = FLIPPED + (1 - 2 * FLIPPED) * functional.one_hot(wanted, K)
    values = torch.where(kind[:, None] == 0, praised, 1 - praised)
    return inverse_gap(values, SquareRoot().gamma(torch.arange(1, n + 1), K)[:, None])


def _lengths(rows: Sequence[Row]) -> list[int]:
    values: list[Values] = [row.settings["rounds"] for row in rows]
    return sorted(set(values))


def _longest(rows: Sequence[Row]) -> int:
    return _lengths(rows)[-1]


def _measured(rows: Sequence[Row], policy: str, rounds: int, name: str) -> list[Values]:
    """What each seed measured."""
    wanted = {"policy": policy, "rounds": rounds}
    return [row.measured[name] for row in rows if wanted.items() <= row.settings.items()]
