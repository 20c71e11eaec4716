"""Rounds held as columns: what a learner may see, and, apart by type, what it never sees.

Imports nothing of tacit but errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.errors import InvalidInputError

Ids: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = slice | Tensor

# float32 rounding over K terms stays far below this; a forgotten action does not.
PROBABILITY_TOLERANCE = 1e-3

# torch can neither compare these nor index with them.
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)

_CHECKED_BEFORE: ContextVar[bool] = ContextVar("checked before", default=False)


@contextmanager
def checked_before() -> Iterator[None]:
    """Leave out the checks of values, each of which waits for the device, for data that has passed them as a whole."""
    token = _CHECKED_BEFORE.set(True)
    try:
        yield
    finally:
        _CHECKED_BEFORE.reset(token)


@dataclass(frozen=True, eq=False)
class Interactions:
    """A batch of n rounds: everything that was seen, nothing that was hidden.

    contexts (n, ...) and feedback (n, ...) in whatever form their encoders read, actions (n,) in
    0..K-1, probabilities (n, K) of every action at the time of the draw.

    >>> rounds = Interactions.of(
    ...     contexts=[[0.0], [1.0]], actions=[0, 1], probabilities=[[0.5, 0.5]] * 2, feedback=[[3.0], [4.0]])
    >>> len(rounds), rounds.action_count
    (2, 2)
    """

    contexts: Tensor
    actions: Tensor
    probabilities: Tensor
    feedback: Tensor

    @classmethod
    def of(cls, *, contexts: object, actions: object, probabilities: object | None, feedback: object) -> Interactions:
        """Rounds from arrays, lists or tensors, checked."""
        if probabilities is None:
            raise InvalidInputError(
                "probabilities",
                "the log does not say how likely each action was, and without that nothing can be learned from it. "
                "Log the probabilities of all K actions with each decision; if the policy that wrote the log is "
                "known, compute them from it (uniform over K actions: 1/K everywhere)",
            )
        rounds = cls(
            as_tensor(contexts, "contexts"),
            as_tensor(actions, "actions"),
            as_tensor(probabilities, "probabilities"),
            as_tensor(feedback, "feedback"),
        )
        check_interactions(rounds)
        # Bytes would index as a mask, and narrower integers not at all.
        return replace(rounds, actions=rounds.actions.long())

    def __len__(self) -> int:
        return len(self.actions)

    def __getitem__(self, rows: Rows) -> Interactions:
        return Interactions(self.contexts[rows], self.actions[rows], self.probabilities[rows], self.feedback[rows])

    @property
    def action_count(self) -> int:
        return self.probabilities.shape[1]

    @classmethod
    def concatenate(cls, batches: Sequence[Interactions]) -> Interactions:
        return cls(*(torch.cat([getattr(batch, field.name) for batch in batches]) for field in fields(cls)))

    def to(self, device: torch.device | str) -> Interactions:
        return Interactions(*(getattr(self, field.name).to(device) for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Decision:
    """A batch of choices, waiting for feedback. `decision[rows]` takes part of it, in any order, one row as well.

    `stream` names the learner that decided; `ids` number its decisions from 0.
    """

    stream: str
    ids: Ids
    contexts: Tensor
    actions: Tensor
    probabilities: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: int | slice | Sequence[int] | NDArray[np.generic]) -> Decision:
        index = np.ascontiguousarray(np.arange(len(self))[rows])  # at least one axis, and nothing backwards
        if index.ndim != 1:
            raise InvalidInputError("decision", f"expected one number per row that is taken, got {rows!r}")
        where = torch.from_numpy(index).to(self.actions.device)
        return Decision(
            self.stream, self.ids[index], self.contexts[where], self.actions[where], self.probabilities[where]
        )


@dataclass(frozen=True, eq=False)
class HiddenReward:
    """The reward that nobody sees: made by an environment, read by evaluation, never by a learner."""

    values: Tensor

    def __len__(self) -> int:
        return len(self.values)


def as_tensor(values: object, name: str) -> Tensor:
    """A tensor that shares memory where it can; real numbers only."""
    tensor = values.detach() if isinstance(values, Tensor) else _from_array(values, name)
    if tensor.is_complex():
        raise InvalidInputError(name, f"expected real numbers, got {tensor.dtype}")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        raise InvalidInputError(name, "expected a dense tensor, neither sparse, nor quantised, nor without values")
    if tensor.is_floating_point() and tensor.element_size() == 1:  # few operations know eight-bit floats
        return tensor.float()
    if tensor.dtype not in WIDE_UNSIGNED:
        return tensor
    whole = tensor.long()
    if tensor.dtype == torch.uint64 and bool((whole < 0).any()):
        raise InvalidInputError(name, "a whole number of 2^63 or more does not fit; number such values from 0")
    return whole


def _from_array(values: object, name: str) -> Tensor:
    try:
        if np.ma.is_masked(values):
            raise ValueError("some values are masked; leave such rounds out, or fill in what is missing")
        array = np.asarray(values)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"found {array.dtype}; text and categories have to be numbered first")
        # torch wants the machine's byte order, and warns of memory that may only be read: such arrays are copied.
        return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(name, f"cannot be read as an array of numbers: {error}") from error


def check_interactions(rounds: Interactions) -> None:
    """Refuse rounds that cannot have happened, naming the first row that is wrong."""
    if not isinstance(rounds, Interactions):
        raise InvalidInputError("log", f"expected Interactions, made by Interactions.of, got {type(rounds).__name__}")
    if not all(isinstance(getattr(rounds, field.name), Tensor) for field in fields(rounds)):
        raise InvalidInputError("log", "its columns are not tensors; make it with Interactions.of")
    columns = {field.name: getattr(rounds, field.name) for field in fields(rounds)}
    sizes = {name: len(column) if column.ndim else 0 for name, column in columns.items()}
    if len(set(sizes.values())) != 1:
        raise InvalidInputError("interactions", f"columns differ in length: {sizes}")
    if not sizes["actions"]:
        raise InvalidInputError("interactions", "the log is empty: there is nothing to learn from")
    check_finite(rounds.contexts, "contexts")
    check_finite(rounds.feedback, "feedback")
    check_probabilities(rounds.probabilities)
    check_actions(rounds.actions, rounds.action_count)
    taken = rounds.probabilities.gather(1, rounds.actions.long()[:, None])[:, 0]
    _refuse_first(
        taken <= 0, "probabilities", "the action that was taken has probability zero",
        "log the probabilities that it was drawn from",
    )


def check_actions(actions: Tensor, count: int) -> None:
    if actions.ndim != 1 or actions.is_floating_point() or actions.dtype == torch.bool:
        raise InvalidInputError(
            "actions", f"expected a column of integers, got {actions.dtype} of shape {tuple(actions.shape)}"
        )
    check_within(actions, count, "actions")


def check_within(values: Tensor, count: int, name: str) -> None:
    if _CHECKED_BEFORE.get():
        return
    _refuse_first((values < 0) | (values >= count), name, f"outside 0..{count - 1}", "number them from 0", values)


def check_probabilities(probabilities: Tensor) -> None:
    if probabilities.ndim != 2 or not probabilities.is_floating_point():
        raise InvalidInputError(
            "probabilities",
            "expected the probability of every action, one row per round and one column per action, "
            f"got {probabilities.dtype} of shape {tuple(probabilities.shape)}",
        )
    check_action_count(probabilities.shape[1])
    check_finite(probabilities, "probabilities")
    advice = "log the probability of every action, not only of the one taken"
    _refuse_first((probabilities < 0).any(1), "probabilities", "a probability is negative", advice)
    totals = probabilities.sum(1)
    _refuse_first((totals - 1).abs() > PROBABILITY_TOLERANCE, "probabilities", "they do not sum to 1", advice, totals)


def check_action_count(count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise InvalidInputError(
            "actions", f"expected at least two actions to choose from, got {count!r}: with one there is no choice"
        )


def check_finite(values: Tensor, name: str) -> None:
    if values.is_floating_point() and values.numel() and not _CHECKED_BEFORE.get():
        finite = values.isfinite()
        _refuse_first(
            ~(finite.flatten(1).all(1) if values.ndim > 1 else finite), name, "not a finite number (NaN or infinity)",
            "leave such rounds out, or fill in what is missing",
        )


def check_size(values: Tensor, most: float, name: str) -> None:
    """Refuse numbers beyond `most`: a single one could turn every weight of a network into NaN."""
    if values.is_floating_point() and values.numel() and not _CHECKED_BEFORE.get():
        large = values.abs() > most
        _refuse_first(
            large.flatten(1).any(1) if values.ndim > 1 else large, name, f"a number beyond {most:g}",
            "leave such rounds out, or fill in what is missing; scale the others",
        )


def _refuse_first(wrong: Tensor, name: str, problem: str, advice: str, values: Tensor | None = None) -> None:
    if not bool(wrong.any()):
        return
    row = int(wrong.int().argmax())
    found = "" if values is None else f" (found {values[row].item():g})"
    share = f"{int(wrong.sum())} of {len(wrong)} rows are wrong"
    raise InvalidInputError(name, f"{problem}{found} in row {row}; {share}; {advice}")


def check_count(values: Tensor, count: int, name: str) -> None:
    if len(values) != count:
        raise InvalidInputError(name, f"expected one per decision, {count}, got {len(values)}")


def check_positive_count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInputError(name, f"expected a whole number, at least 1, got {value!r}")
    return value
