"""The exploration rounds: kept until they are enough, never more than some multiple of that."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.algorithms.store import LONGEST, Store
from tacit.errors import UntrustworthyDecoderError

ROW = tacit.Table(1)


def rounds(start: int, count: int) -> tacit.Interactions:
    """Rounds numbered by their contexts and their feedback."""
    numbers = torch.arange(start, start + count)
    return tacit.Interactions(numbers, numbers % 2, torch.full((count, 2), 0.5), numbers.float())


def store_of(enough: int, space: tacit.encoders.Space = ROW) -> Store:
    return Store(enough, tacit.encoders.Problem(2, space, space))


def add(store: Store, start: int, count: int) -> None:
    with store.added(rounds(start, count)):
        pass


def held(store: Store) -> list[int]:
    return store.rounds().contexts.tolist()


@pytest.mark.parametrize("sizes", [(1,) * 60, (7,) * 9, (60,), (3, 50, 1, 1, 1)])
def test_the_latest_rounds_are_kept_however_they_come(sizes):
    store, seen = store_of(5), 0
    for size in sizes:
        add(store, seen, size)
        seen += size
        assert held(store) == list(range(max(0, seen - LONGEST * 5), seen))
        assert store.due is (seen >= 5)
        assert sum(map(len, store._batches)) <= 2 * LONGEST * 5


@pytest.mark.parametrize("sizes", [(3, 2), (3, 40), (39, 3), (39, 60), (20, 20, 5)])
def test_rounds_that_were_not_learned_from_are_taken_back(sizes):
    store = store_of(5)
    *before, last = sizes
    for number, size in enumerate(before):
        add(store, sum(sizes[:number]), size)
    with pytest.raises(MemoryError), store.added(rounds(sum(before), last)):
        raise MemoryError
    assert store._seen == sum(before)
    assert sum(map(len, store._batches)) == store._kept
    # Given again, each counts once.
    add(store, sum(before), last)
    latest = held(store)
    assert latest == sorted(set(latest))
    assert latest[-last:] == list(range(sum(before), sum(sizes)))[-LONGEST * 5 :]


def test_the_memory_of_the_feedback_may_be_used_again():
    store, batch = store_of(5), rounds(0, 3)
    with store.added(batch):
        batch.feedback.zero_()
    assert store.rounds().feedback.tolist() == [0, 1, 2]


def test_a_doubt_is_told_and_asks_for_half_as_many_rounds_again():
    store = store_of(4)
    add(store, 0, 5)
    said = r"after 5 uniform rounds: no idea\. Exploring on, to try again at 8 rounds"
    with pytest.warns(tacit.DecoderWarning, match=said):
        store.postpone(UntrustworthyDecoderError("no idea"))
    assert not store.due
    add(store, 5, 3)
    assert store.due


@pytest.mark.parametrize("seen", [0, 3, 30])
def test_a_restored_store_goes_on_where_the_saved_one_stood(seen):
    store, again = store_of(5), store_of(5)
    if seen:
        add(store, 0, seen)
    again.restore(store.tensors(), torch.device("cpu"))
    for each in (store, again):
        add(each, seen, 3)
    assert held(again) == held(store)
    assert again.due is store.due


def test_a_cleared_store_holds_nothing():
    store = store_of(5)
    add(store, 0, 5)
    store.clear()
    assert set(store.tensors()) == {"progress"}


def test_images_of_bytes_and_of_numbers_are_kept_alike():
    store, white = store_of(5, tacit.Image(4, 4)), torch.full((1, 4, 4), 255, dtype=torch.uint8)
    for image in (white, white / 255, white):
        with store.added(tacit.Interactions(image, torch.zeros(1), torch.full((1, 2), 0.5), image)):
            pass
    kept = store.rounds()
    assert bool((kept.contexts == 1).all())
    assert bool((kept.feedback == 1).all())
