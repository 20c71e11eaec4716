"""Which decisions were made, and which of them have had their feedback: late is fine, twice counts once."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Numbers decisions from 0 and remembers, for the last WINDOW of them, which are settled."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.issued = 0
        self._settled = np.zeros(WINDOW, bool)

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
        return {"stream": self.stream, "issued": self.issued}

    @classmethod
    def restored(cls, document: Json, tensors: Mapping[str, Tensor]) -> Ledger:
        record = document if isinstance(document, dict) else {}
        stream, issued = record.get("stream"), record.get("issued")
        if not isinstance(stream, str) or type(issued) is not int or issued < 0:
            raise CorruptFileError(f"the record of decisions is {document!r}")
        ledger = cls(stream)
        ledger.issued = issued
        count = min(issued, WINDOW)
        packed = tensors["settled"].cpu().numpy()
        if len(packed) != -(-count // 8):
            raise CorruptFileError(f"the record of settled decisions does not fit the {issued} decisions made")
        ledger._settled[:count] = np.unpackbits(packed, count=count).astype(bool)
        return ledger

    def _refuse_unknown(self, stream: str, ids: Ids) -> None:
        if stream != self.stream:
            raise UnknownDecisionError(
                f"the decision was made by another learner ({stream}, this one is {self.stream}); "
                "give its feedback to that learner"
            )
        strange = ids[(ids < 0) | (ids >= self.issued)]
        if len(strange):
            raise UnknownDecisionError(
                f"decision {strange[0]} was not made by this learner, which has made {self.issued}; "
                "a learner loaded from disk knows the decisions made before it was saved"
            )
        forgotten = ids[ids < self.issued - WINDOW]
        if len(forgotten):
            raise UnknownDecisionError(
                f"decision {forgotten[0]} is too long ago: feedback is accepted for the last {WINDOW:,} decisions"
            )
