"""Which decisions were made, and which of them have had their feedback: late is fine, twice counts once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.errors import CorruptFileError, UnknownDecisionError
from tacit.interactions import Ids
from tacit.storage import Document, Json

# How far back feedback may refer: one bit per decision, so that memory does not grow with the rounds.
WINDOW = 1 << 23


class Ledger:
    """Numbers decisions from 0 and remembers, for the last WINDOW of them, which are settled.

    A loaded learner goes on with the numbers, and so may the one that was saved. Therefore its decisions belong to a
    new stream, and the ledger knows at which number each stream began.
    """

    def __init__(self) -> None:
        self.issued = 0
        self._streams = {uuid.uuid4().hex: 0}
        self._settled = np.zeros(WINDOW, bool)

    @property
    def stream(self) -> str:
        """The name under which decisions are made now."""
        return next(reversed(self._streams))

    def issue(self, count: int) -> Ids:
        ids = np.arange(self.issued, self.issued + count, dtype=np.int64)
        self._settled[ids % WINDOW] = False
        self.issued += count
        return ids

    def fresh(self, stream: str, ids: Ids) -> NDArray[np.bool_]:
        """Which of these decisions have had no feedback yet; the first of a repeated id counts."""
        self._refuse_unknown(stream, ids)
        first = np.zeros(len(ids), bool)
        first[np.unique(ids, return_index=True)[1]] = True
        return first & ~self._settled[ids % WINDOW]

    def settle(self, ids: Ids) -> None:
        self._settled[ids % WINDOW] = True

    def tensors(self) -> dict[str, Tensor]:
        return {"settled": torch.from_numpy(np.packbits(self._settled[: min(self.issued, WINDOW)]))}

    def document(self) -> Document:
        return {"streams": dict(self._streams), "issued": self.issued}

    @classmethod
    def restored(cls, document: Json, tensors: Mapping[str, Tensor]) -> Ledger:
        streams, issued = _read(document)
        ledger = cls()
        ledger.issued = issued
        ends = [*streams.values(), issued][1:]
        ledger._streams = {
            name: first for (name, first), end in zip(streams.items(), ends, strict=True)
            if first < end and end > issued - WINDOW
        } | {ledger.stream: issued}  # fmt: skip
        count = min(issued, WINDOW)
        packed = tensors["settled"].cpu().numpy()
        if len(packed) != -(-count // 8):
            raise CorruptFileError(f"the record of settled decisions does not fit the {issued} decisions made")
        ledger._settled[:count] = np.unpackbits(packed, count=count).astype(bool)
        return ledger

    def _refuse_unknown(self, stream: str, ids: Ids) -> None:
        if stream not in self._streams:
            raise UnknownDecisionError(
                f"the decision was made by another learner ({stream}, this one is {self.stream}); give its feedback to "
                "that learner"
            )
        first = self._streams[stream]
        end = next((later for later in self._streams.values() if later > first), self.issued)
        strange = ids[(ids < first) | (ids >= end)]
        if len(strange):
            raise UnknownDecisionError(
                f"decision {strange[0]} was not made by this learner, which knows {first} to {end - 1} of its stream; "
                "a learner loaded from disk knows the decisions made before it was saved"
            )
        forgotten = ids[ids < self.issued - WINDOW]
        if len(forgotten):
            raise UnknownDecisionError(
                f"decision {forgotten[0]} is too long ago: feedback is accepted for the last {WINDOW:,} decisions"
            )


def _read(document: Json) -> tuple[dict[str, int], int]:
    """Where each stream began, and how many decisions were made."""
    match document:
        case {"streams": dict(streams), "issued": int(issued)}:
            began = {name: first for name, first in streams.items() if isinstance(first, int)}
            if len(began) == len(streams) and all(a <= b for a, b in pairwise([0, *began.values(), issued])):
                return began, issued
    raise CorruptFileError(f"the record of decisions is {document!r}")
