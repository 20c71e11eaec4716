"""The record of decisions: each is known, counts once, and is forgotten only when it is very old."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tacit.algorithms import ledger as module
from tacit.algorithms.ledger import Ledger
from tacit.errors import CorruptFileError, UnknownDecisionError


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def test_decisions_are_numbered_from_0_without_a_gap():
    record = Ledger()
    assert [record.issue(2).tolist(), record.issue(3).tolist()] == [[0, 1], [2, 3, 4]]


def test_a_decision_is_fresh_until_it_is_settled():
    record = Ledger()
    record.issue(4)
    assert record.fresh(record.stream, ids(2, 0)).tolist() == [True, True]
    record.settle(ids(2))
    assert record.fresh(record.stream, ids(2, 0)).tolist() == [False, True]


def test_of_a_repeated_decision_the_first_is_fresh():
    record = Ledger()
    record.issue(4)
    assert record.fresh(record.stream, ids(3, 1, 3, 1, 3)).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("number", [4, -1, 10**12])
def test_a_decision_that_was_not_made_is_unknown(number):
    record = Ledger()
    record.issue(4)
    with pytest.raises(UnknownDecisionError, match=f"decision {number} was not made by this learner"):
        record.fresh(record.stream, ids(0, number))


def test_a_decision_of_another_learner_is_unknown():
    record, other = Ledger(), Ledger()
    for each in (record, other):
        each.issue(4)
    with pytest.raises(UnknownDecisionError, match="another learner"):
        record.fresh(other.stream, ids(0))


def test_only_the_latest_decisions_are_remembered_and_in_constant_memory(monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 8)
    record = Ledger()
    size = record._settled.nbytes
    for _ in range(7):
        record.settle(record.issue(3))
    # 21 were made; 13 to 20 are remembered as settled.
    assert not record.fresh(record.stream, np.arange(13, 21)).any()
    with pytest.raises(UnknownDecisionError, match="too long ago"):
        record.fresh(record.stream, ids(12))
    record.issue(1)
    assert record.fresh(record.stream, ids(21)).all()
    assert record._settled.nbytes == size


@pytest.mark.parametrize("made", [0, 1, 7, 8, 9, 20])
def test_a_restored_record_knows_what_the_saved_one_knew(monkeypatch, made):
    monkeypatch.setattr(module, "WINDOW", 16)
    record = Ledger()
    record.issue(made)
    known = np.arange(max(0, made - 16), made)
    record.settle(known[::3])
    again = Ledger.restored(record.document(), record.tensors())
    assert again.issued == made
    if made:
        assert again.fresh(record.stream, known).tolist() == record.fresh(record.stream, known).tolist()
    assert again.issue(2).tolist() == [made, made + 1]
    assert again.fresh(again.stream, ids(made)).all()


def restored(record: Ledger) -> Ledger:
    return Ledger.restored(record.document(), record.tensors())


def test_what_the_saved_learner_decides_later_is_not_taken_for_what_the_loaded_one_does():
    record = Ledger()
    record.issue(3)
    again = restored(record)
    assert record.issue(2).tolist() == again.issue(2).tolist() == [3, 4]
    with pytest.raises(UnknownDecisionError, match="before it was saved"):
        again.fresh(record.stream, ids(3))
    with pytest.raises(UnknownDecisionError, match="another learner"):
        record.fresh(again.stream, ids(3))
    assert again.fresh(record.stream, ids(0, 2)).all()
    with pytest.raises(UnknownDecisionError):
        again.fresh(again.stream, ids(2))


def test_through_many_restarts_every_decision_stays_known_and_old_names_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 8)
    record, made = Ledger(), []
    for _ in range(20):
        made.append((record.stream, record.issue(2)))
        record = restored(restored(record))
    for stream, numbers in made[-4:]:
        assert record.fresh(stream, numbers).all()
    with pytest.raises(UnknownDecisionError):
        record.fresh(*made[-5])
    # The four that the window reaches into, and the present one.
    assert len(record.document()["streams"]) == 5


@pytest.mark.parametrize(
    "document",
    [
        None, [], "this", {"streams": {"this": 0}}, {"issued": 9}, {"streams": ["this"], "issued": 9},
        *({"streams": {"this": 0}, "issued": issued} for issued in ("9", True, None, -1, 17)),
        *({"streams": {"this": 0, "that": began}, "issued": 9} for began in ("1", None, -1, 10)),
    ],
)  # fmt: skip
def test_a_record_that_makes_no_sense_is_corrupt(document):
    with pytest.raises(CorruptFileError):
        Ledger.restored(document, {"settled": torch.zeros(2, dtype=torch.uint8)})
