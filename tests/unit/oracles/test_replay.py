"""The ring of earlier rounds: the oldest leave first, and it never grows."""

from __future__ import annotations

import pytest
import torch

from tacit.encoders import Image, Space, Table
from tacit.oracles.replay import Replay

ROW = Table(2)


def ring(capacity: int = 5, space: Space = ROW) -> Replay:
    return Replay(capacity, space, torch.device("cpu"))


def rounds(*numbers: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rounds that are told apart by any of their columns."""
    n = torch.tensor(numbers)
    return torch.stack([n, -n], 1).float(), n % 4, n / 100


def held(replay: Replay) -> list[int]:
    return sorted(int(row[0]) for row in replay.tensors()["contexts"])


@pytest.mark.parametrize("sizes", [(1,) * 23, (2,) * 12, (3, 7, 1, 12), (23,), (5, 5, 5), (4, 4, 4, 4, 4, 3)])
def test_the_latest_rounds_are_held_however_they_come(sizes):
    replay, seen = ring(), 0
    for size in sizes:
        replay.add(*rounds(*range(seen, seen + size)))
        seen += size
        assert held(replay) == list(range(max(0, seen - 5), seen))
        assert len(replay) == min(seen, 5)


def test_its_memory_stays_what_it_was_with_the_first_round():
    replay = ring(5)
    replay.add(*rounds(1))
    before = [column.untyped_storage().nbytes() for column in replay._columns]
    for n in range(100):
        replay.add(*rounds(n, n + 1, n + 2))
    assert [column.untyped_storage().nbytes() for column in replay._columns] == before


def test_a_round_is_drawn_with_all_that_belongs_to_it(source):
    replay = ring(50)
    replay.add(*rounds(*range(30)))
    contexts, actions, decoded = replay.sample(500, source)
    assert torch.equal(contexts[:, 0], -contexts[:, 1])
    assert torch.equal(actions, contexts[:, 0].long() % 4)
    torch.testing.assert_close(decoded, contexts[:, 0] / 100)
    # Every round comes up; a given one is missed with probability (29/30)^500, one in 20 million.
    assert set(contexts[:, 0].tolist()) == set(range(30))


def test_what_is_added_is_copied():
    replay = ring()
    batch = rounds(1, 2)
    replay.add(*batch)
    batch[0].zero_()
    assert held(replay) == [1, 2]


@pytest.mark.parametrize("seen", [0, 3, 5, 8, 12])
def test_a_restored_ring_goes_on_where_the_saved_one_stood(source, seen):
    replay, restored = ring(), ring()
    for n in range(seen):
        replay.add(*rounds(n))
    restored.restore(replay.tensors())
    assert len(restored) == len(replay)
    for n in range(seen, seen + 7):
        replay.add(*rounds(n))
        restored.add(*rounds(n))
        # In the same places, so that the same draws bring the same rounds.
        assert torch.equal(restored.tensors()["contexts"], replay.tensors()["contexts"])


def test_contexts_that_were_whole_numbers_by_chance_may_become_fractions():
    replay = ring()
    replay.add(torch.tensor([[1], [2]]), torch.tensor([0, 1]), torch.tensor([0.0, 1.0]))
    replay.add(torch.tensor([[2.5]]), torch.tensor([0]), torch.tensor([0.0]))
    assert replay.tensors()["contexts"].flatten().tolist() == [1, 2, 2.5]


@pytest.mark.parametrize("bytes_first", [True, False])
def test_images_of_bytes_and_of_numbers_are_held_alike(bytes_first):
    replay, white = ring(space=Image(4, 4)), torch.full((1, 4, 4), 255, dtype=torch.uint8)
    batches = [white, white / 255, white] if bytes_first else [white / 255, white, white]
    for image in batches:
        replay.add(image, torch.zeros(1, dtype=torch.long), torch.zeros(1))
    assert bool((replay.tensors()["contexts"] == 1).all())
