"""Rounds per second of choosing and learning, one by one and in batches, measured side by side in one run.

Run it with `make bench`. Compare ratios within a run, not numbers of different runs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table

import tacit
from tacit.environments import Environment
from tacit.environments.classification import Classification, Labelled, Signs
from tacit.environments.finite import FiniteEnvironment, function_classes, random_instance
from tacit.evaluation.progressive import play
from tacit.seeding import generator

BATCHES = (1, 10, 100, 1_000)
SECONDS = 2.0  # for each measurement, at least
EXPLORE = 2_000


def main() -> None:
    torch.set_num_threads(1)
    console = Console()
    console.print(f"import tacit, beyond torch: {import_seconds():.2f} s\n")
    table = Table("rounds per second, one thread", *(f"batches of {batch}" for batch in BATCHES))
    for name, (environment, learner) in {"finite classes": finite(), "networks, rows of 8": networks()}.items():
        play(environment, learner, EXPLORE, EXPLORE)
        speeds = [rounds_per_second(environment, learner, batch) for batch in BATCHES]
        table.add_row(name, *(f"{speed:,.0f} ({speed / speeds[0]:.1f} x)" for speed in speeds))
    console.print(table)


def finite() -> tuple[Environment, tacit.Learner]:
    instance = random_instance(generator(0, "world"), 8, 8, 4, theta=0.8, alpha=1.0)
    classes = function_classes(instance, generator(0, "classes"))
    return pair(FiniteEnvironment(instance, 0), tacit.FiniteClasses(classes.f, classes.phi), instance.decoder)


def networks() -> tuple[Environment, tacit.Learner]:
    """Rows of numbers, the largest of which is the right action; every class has signs of its own."""
    source = generator(0, "rows")
    labels = torch.randint(8, (50_000,), generator=source)
    rows = 3 * torch.nn.functional.one_hot(labels, 8) + 0.5 * torch.randn(len(labels), 8, generator=source)
    examples = Labelled(rows, labels, 8)
    environment = Classification(examples, examples[:1_000], tacit.Table(8), Signs.personal(8, source), 0)
    return pair(environment, tacit.Networks(on="cpu"), tacit.Decoder(0.3, 0.1))


def pair(
    environment: Environment, models: tacit.Models, decoder: tacit.Decoder
) -> tuple[Environment, tacit.Learner]:
    problem = environment.problem
    learner = tacit.OnPolicy(
        problem.actions, problem.context, problem.feedback, explore=EXPLORE, decoder=decoder, models=models
    )
    return environment, learner


def rounds_per_second(environment: Environment, learner: tacit.Learner, batch: int) -> float:
    """Choosing, reacting and learning; the learner must have left exploration."""
    if learner.exploring:
        raise SystemExit("the learner still explores, so its speed would say nothing")
    arrivals = environment.stream(20_000, batch)

    def turn() -> int:
        arrival = next(arrivals)
        decision = learner.choose(arrival.contexts)
        learner.learn(decision, arrival.react(decision.actions)[0])
        return len(decision)

    return repeated(turn)


def repeated(turn: Callable[[], int]) -> float:
    """What `turn` returns, summed, per second."""
    turn()
    done, started = 0, time.perf_counter()
    try:
        while time.perf_counter() < started + SECONDS:
            done += turn()
    except StopIteration:
        pass
    return done / (time.perf_counter() - started)


def import_seconds() -> float:
    """How long `import tacit` takes in a fresh process that has torch already; the best of three."""
    code = "import time, torch; start = time.perf_counter(); import tacit; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", code]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3))


if __name__ == "__main__":
    main()
