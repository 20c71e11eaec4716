"""What was acted on is kept to be decoded again: bounded, in order, the uniform rounds for good."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.algorithms import memory
from tacit.algorithms.memory import Memory

CAPACITY = 10
ROW = tacit.Table(1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CAPACITY", CAPACITY)


def rounds(start: int, count: int) -> tuple[tacit.Interactions, torch.Tensor]:
    """Rounds numbered by their contexts and their feedback, and what is decoded: a hundredth of the number."""
    numbers = torch.arange(start, start + count)
    made = tacit.Interactions(numbers[:, None], numbers % 2, torch.full((count, 2), 0.5), numbers.float()[:, None])
    return made, numbers / 100


def begun(uniform: int = 4, space: tacit.encoders.Space = ROW) -> Memory:
    made = Memory(tacit.encoders.Problem(2, space, space))
    made.begin(*rounds(0, uniform))
    return made


def numbers(made: Memory) -> list[int]:
    held, decoded = made.rounds()
    found = held.contexts[:, 0].long().tolist()
    assert held.feedback[:, 0].tolist() == found
    assert decoded.tolist() == pytest.approx([number / 100 for number in found])
    assert held.actions.tolist() == [number % 2 for number in found]
    return found


@pytest.mark.parametrize("uniform", [1, 4, 30])
@pytest.mark.parametrize("sizes", [(1,) * 70, (7,) * 10, (70,), (3, 50, 1, 1, 1), (20, 1)])
def test_it_holds_every_uniform_round_and_the_latest_others_in_order_however_they_come(uniform, sizes):
    made, seen = begun(uniform), uniform
    for size in sizes:
        made.add(*rounds(seen, size))
        seen += size
        assert len(made) <= uniform + 2 * CAPACITY
        held = numbers(made)
        assert len(held) == len(made)
        assert held[:uniform] == list(range(uniform))
        latest = held[uniform:]
        assert latest == list(range(seen - len(latest), seen))
        assert len(latest) >= min(seen - uniform, CAPACITY)


def test_it_is_never_more_than_it_may_be_in_between(monkeypatch):
    """Whoever asks for nothing has no more memory taken either."""
    made = begun()
    for start in range(4, 400, 3):
        made.add(*rounds(start, 3))
        assert sum(len(batch) for batch, _ in made._batches) == len(made) <= 4 + 2 * CAPACITY


def test_begun_again_it_holds_nothing_else():
    made = begun()
    made.add(*rounds(4, 5))
    made.begin(*rounds(50, 3))
    assert numbers(made) == [50, 51, 52]
    made.add(*rounds(53, 25))
    assert numbers(made) == [50, 51, 52, *range(68, 78)]


def test_what_is_decoded_anew_takes_the_place_of_what_was_decoded_before():
    made = begun()
    made.add(*rounds(4, 5))
    before = made.rounds()[0]
    made.redecode(torch.ones(9))
    held, decoded = made.rounds()
    assert decoded.tolist() == [1.0] * 9
    assert torch.equal(held.contexts, before.contexts)
    more, new = rounds(9, 2)
    made.add(more, new)
    assert made.rounds()[1].tolist() == pytest.approx([1.0] * 9 + [0.09, 0.1])


def test_the_memory_of_the_feedback_may_be_used_again():
    made, (batch, decoded) = begun(), rounds(4, 3)
    made.add(batch, decoded)
    batch.feedback.zero_()
    assert numbers(made) == list(range(7))


def test_images_of_bytes_and_of_numbers_are_kept_alike():
    space = tacit.Image(4, 4)
    made, white = Memory(tacit.encoders.Problem(2, space, space)), torch.full((1, 4, 4), 255, dtype=torch.uint8)
    for number, image in enumerate((white, white / 255, white)):
        batch = tacit.Interactions(image, torch.zeros(1).long(), torch.full((1, 2), 0.5), image), torch.ones(1)
        made.add(*batch) if number else made.begin(*batch)
    held, _ = made.rounds()
    assert bool((held.contexts == 1).all())
    assert bool((held.feedback == 1).all())


@pytest.mark.parametrize("more", [0, 5, 19, 33])
def test_a_restored_memory_goes_on_where_the_saved_one_stood(more):
    made, again = begun(), begun(7)
    if more:
        made.add(*rounds(4, more))
    again.restore({name: value.clone() for name, value in made.tensors().items()}, torch.device("cpu"))
    assert (numbers(again), len(again)) == (numbers(made), len(made))
    for start in range(4 + more, 80, 6):
        for each in (made, again):
            each.add(*rounds(start, 6))
        assert numbers(again) == numbers(made)


def test_a_memory_that_never_began_can_be_saved():
    again = begun()
    empty = Memory(tacit.encoders.Problem(2, ROW, ROW))
    assert empty.tensors() == {}
    again.restore({}, torch.device("cpu"))
    assert len(again) == len(empty) == 0
    assert again.tensors() == {}
