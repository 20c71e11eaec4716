"""The record of decisions: each is known, counts once, and is forgotten only when it is very old."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tacit.algorithms import ledger as module
from tacit.algorithms.ledger import Ledger
from tacit.errors import CorruptFileError, UnknownDecisionError


def ledger() -> Ledger:
    return Ledger("this")


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_decisions_are_numbered_from_0_without_a_gap():
    record = ledger()
    assert [record.issue(2).tolist(), record.issue(3).tolist()] == [[0, 1], [2, 3, 4]]


def test_a_decision_is_fresh_until_it_is_settled():
    record = ledger()
    record.issue(4)
    assert record.fresh("this", ids(2, 0)).tolist() == [True, True]
    record.settle(ids(2))
    assert record.fresh("this", ids(2, 0)).tolist() == [False, True]


def test_of_a_repeated_decision_the_first_is_fresh():
    record = ledger()
    record.issue(4)
    assert record.fresh("this", ids(3, 1, 3, 1, 3)).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("stream", "number", "why"),
    [
        ("that", 0, "another learner"), ("this", 4, "has made 4"), ("this", -1, "has made 4"),
        ("this", 10**12, "has made 4"),
    ],
)
def test_a_decision_that_was_not_made_here_is_unknown(stream, number, why):
    record = ledger()
    record.issue(4)
    with pytest.raises(UnknownDecisionError, match=why):
        record.fresh(stream, ids(0, number))


def test_only_the_latest_decisions_are_remembered_and_in_constant_memory(monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 8)
    record = ledger()
    size = record._settled.nbytes
    for _ in range(7):
        record.settle(record.issue(3))
    # 21 were made; 13 to 20 are remembered as settled.
    assert not record.fresh("this", np.arange(13, 21)).any()
    with pytest.raises(UnknownDecisionError, match="too long ago"):
        record.fresh("this", ids(12))
    record.issue(1)
    assert record.fresh("this", ids(21)).all()
    assert record._settled.nbytes == size


@pytest.mark.parametrize("made", [0, 1, 7, 8, 9, 20])
def test_a_restored_record_knows_what_the_saved_one_knew(monkeypatch, made):
    monkeypatch.setattr(module, "WINDOW", 16)
    record = ledger()
    record.issue(made)
    known = np.arange(max(0, made - 16), made)
    record.settle(known[::3])
    again = Ledger.restored(record.document(), record.tensors())
    assert (again.stream, again.issued) == ("this", made)
    assert again.fresh("this", known).tolist() == record.fresh("this", known).tolist()
    assert again.issue(2).tolist() == [made, made + 1]
    assert again.fresh("this", ids(made)).all()


@pytest.mark.parametrize(
    "document",
    [
        None, [], "this", {"stream": "this"}, {"issued": 9}, {"stream": 1, "issued": 9},
        *({"stream": "this", "issued": issued} for issued in ("9", True, None, -1, 17)),
    ],
)  # fmt: skip
def test_a_record_that_makes_no_sense_is_corrupt(document):
    with pytest.raises(CorruptFileError):
        Ledger.restored(document, {"settled": torch.zeros(2, dtype=torch.uint8)})
