"""Runs the cells of an experiment: resumes, keeps failures as rows, side by side if wanted.

A cell that runs beside others has a process of its own, so that one that dies takes nothing with it. It writes its row
itself; the parent only listens to its progress and to how it ended.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import TaskID

from tacit.errors import ExperimentError, InvalidInputError, StorageError
from tacit.experiments.origin import origin
from tacit.experiments.progress import Display
from tacit.experiments.results import Results, key
from tacit.experiments.spec import Advance, Experiment, Origin, Place, Row, Settings


@dataclass(frozen=True)
class Run:
    """What every cell of a run is given."""

    experiment: Experiment
    results: Results
    place: Place
    origin: Origin


@dataclass(frozen=True, eq=False)
class Child:
    """A cell in a process of its own, and what is heard of it."""

    settings: Settings
    process: SpawnProcess
    progress: Connection
    bar: TaskID
    started: float


def run(
    experiment: Experiment, results: Results, place: Place, jobs: int = 1, console: Console | None = None
) -> list[Row]:
    """Run what has not been run without error, `jobs` cells at a time; the rows of all cells, failed ones too.

    A row for which there was no room on the disk is a failed one, and its cell is run again the next time.
    """
    _check(experiment, place, jobs)
    cells = results.cells(experiment)
    done = {key(experiment.name, row.settings) for row in results.rows(experiment) if row.error is None}
    waiting = [settings for settings in cells if key(experiment.name, settings) not in done]
    ended: list[Row] = []
    if waiting:
        results.check_writable(experiment)
        experiment.prepare(place)
        jobs = min(jobs, len(waiting))
        threads = max(1, torch.get_num_threads() // jobs)
        this = Run(experiment, results, place, origin(place, threads))
        with Display(console or Console(), experiment.name, cells, len(cells) - len(waiting)) as display:
            if jobs == 1:
                ended = _one_by_one(this, waiting, display)
            else:
                ended = _side_by_side(this, waiting, display, jobs, threads)
    return results.with_failed(experiment, [row for row in ended if row.error is not None])


def run_and_write(this: Run, settings: Settings, advance: Advance) -> Row:
    """Run one cell; whatever goes wrong in it becomes a row."""
    started = time.perf_counter()
    try:
        measured = this.experiment.run_cell(settings, this.place, advance)
        row = Row(settings, measured, time.perf_counter() - started, this.origin)
        this.results.write(this.experiment, row)
    except Exception as error:  # noqa: BLE001
        return _failed(this, settings, started, _in_words(error))
    return row


def _failed(this: Run, settings: Settings, started: float, problem: str) -> Row:
    """The row of a cell that failed, kept if the disk has room for it: it is run again in any case."""
    row = Row(settings, {}, time.perf_counter() - started, this.origin, problem)
    with suppress(StorageError):
        this.results.write(this.experiment, row)
    return row


def _one_by_one(this: Run, waiting: list[Settings], display: Display) -> list[Row]:
    rows = []
    for settings in waiting:
        bar = display.start(settings, this.experiment.rounds(settings))
        rows.append(run_and_write(this, settings, partial(display.advance, bar)))
        display.finish(bar, rows[-1])
    return rows


def _side_by_side(this: Run, waiting: list[Settings], display: Display, jobs: int, threads: int) -> list[Row]:
    queue, running, rows = deque(waiting), list[Child](), list[Row]()
    try:
        while queue or running:
            while queue and len(running) < jobs:
                running.append(_start(this, queue.popleft(), display, threads))
            heard = wait([child.progress for child in running])
            for child in [child for child in running if child.progress in heard]:
                said = _heard(this, child)
                if isinstance(said, int):
                    display.advance(child.bar, said)
                else:
                    running.remove(child)
                    rows.append(said)
                    display.finish(child.bar, said)
    finally:
        for child in running:
            child.process.terminate()
            child.process.join()
    return rows


def _start(this: Run, settings: Settings, display: Display, threads: int) -> Child:
    bar = display.start(settings, this.experiment.rounds(settings))
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_in_child, args=(this, settings, theirs, threads), daemon=True)
    with _interrupts_ignored():
        process.start()
    theirs.close()
    return Child(settings, process, ours, bar, time.perf_counter())


def _in_child(this: Run, settings: Settings, progress: Connection, threads: int) -> None:
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def say(heard: int | Row) -> None:
        try:
            progress.send(heard)
        except BrokenPipeError:  # the parent was killed
            sys.exit(1)

    say(run_and_write(this, settings, say))


def _end_with_parent() -> None:
    """A parent that is killed cannot stop its cells, and the next run would start them a second time."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _heard(this: Run, child: Child) -> int | Row:
    """How many rounds further a cell is, or its row, once it has ended; a process that died has written none."""
    try:
        said: int | Row = child.progress.recv()
    except (EOFError, OSError):  # it has closed its end without a last word
        child.process.join()
        problem = f"its process ended with exit code {child.process.exitcode}"
        return _failed(this, child.settings, child.started, problem)
    if isinstance(said, Row):
        child.process.join()
    return said


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """What is started in here leaves Ctrl-C to its parent, from its first moment on."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_words(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"


def _check(experiment: Experiment, place: Place, jobs: int) -> None:
    if jobs < 1:
        raise InvalidInputError("jobs", f"expected at least 1, got {jobs}")
    if experiment.alone and jobs > 1:
        raise ExperimentError(f"{experiment.name} measures time, so its cells run one by one; leave out --jobs")
    check_device(place.device)


def check_device(device: str) -> None:
    """Refuse what is no device, or none of this machine's."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InvalidInputError("device", f"expected cpu, cuda or cuda:NUMBER, got {device!r}")
    if device != "cpu" and int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise InvalidInputError("device", f"there is no {device} here; leave it out to run on the CPU")
