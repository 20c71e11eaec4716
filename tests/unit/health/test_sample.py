"""The rounds kept for health: bounded, of all times, the latest whole, and the same after a restart."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import CorruptFileError
from tacit.health import sample as module
from tacit.health.sample import Sample
from tacit.interactions import Interactions

K = 4


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNIFORM", 40)
    monkeypatch.setattr(module, "LATEST", 20)


def rounds(first: int, count: int, uniform: bool = True) -> Interactions:
    """Rounds whose context is their number."""
    p = torch.full((count, K), 1 / K) if uniform else torch.tensor([0.7, 0.1, 0.1, 0.1]).expand(count, K)
    numbers = torch.arange(first, first + count)
    return Interactions(numbers, numbers % K, p, numbers % 3)


def filled(counts: list[int], uniform: bool = True, sample: Sample | None = None) -> Sample:
    sample = sample or Sample()
    for count in counts:
        sample.add(rounds(sample.seen, count, uniform), torch.full((count,), torch.nan if uniform else 0.0))
    return sample


def test_before_the_first_round_there_is_nothing():
    assert Sample().kept() is None
    assert Sample().tensors() == {}


def test_a_few_rounds_are_all_kept_in_order():
    assert filled([7, 1, 12]).kept().when.tolist() == list(range(20))


@pytest.mark.parametrize("size", [1, 7, 500, 10_000])
def test_memory_does_not_grow_with_the_rounds(size):
    sample = filled([size] * (10_000 // size))
    assert len(sample.kept()) <= 60
    assert sample.seen == 10_000 // size * size


def test_uniform_rounds_are_spread_evenly_over_all_time():
    kept = filled([50] * 200).kept()
    by_fifth = (kept.when[:40] // 2_000).bincount(minlength=5)
    assert by_fifth.min() >= 6
    assert by_fifth.max() <= 12


def test_the_latest_rounds_are_all_there():
    assert filled([50] * 30).kept().when[-20:].tolist() == list(range(1_480, 1_500))


def test_uniform_rounds_stay_when_others_follow():
    sample = filled([30] * 10, uniform=False, sample=filled([30] * 10))
    kept = sample.kept()
    assert int(kept.uniform.sum()) == 40
    assert len(kept) == 60
    assert kept.when[kept.uniform].max() < 300


def test_how_rounds_came_in_does_not_matter():
    one, other = (filled(counts).kept() for counts in ([1] * 330, [100, 200, 30]))
    assert torch.equal(one.when, other.when)
    assert torch.equal(one.rounds.feedback, other.rounds.feedback)


def test_every_column_belongs_to_its_round():
    kept = filled([30] * 20).kept()
    assert torch.equal(kept.rounds.contexts, kept.when)
    assert torch.equal(kept.rounds.actions, kept.when % K)
    assert torch.equal(kept.rounds.feedback, kept.when % 3)


def test_restored_it_goes_on_as_if_it_had_never_stopped():
    sample = filled([30] * 5)
    again = Sample.restored(sample.tensors(), torch.device("cpu"))
    one, other = (filled([30] * 5, sample=each).kept() for each in (sample, again))
    assert torch.equal(one.when, other.when)
    assert torch.equal(one.decoded, other.decoded)


@pytest.mark.parametrize("name", ["feedback", "when", "decoded", "seen"])
def test_columns_that_do_not_fit_together_are_refused(name):
    tensors = filled([30]).tensors()
    damaged = torch.tensor(3) if name == "seen" else tensors[name][:-1]
    with pytest.raises(CorruptFileError, match="do not fit together"):
        Sample.restored(tensors | {name: damaged}, torch.device("cpu"))


def test_restored_from_nothing_it_is_empty():
    sample = Sample.restored({}, torch.device("cpu"))
    assert sample.kept() is None
    assert sample.seen == 0


def test_the_caller_may_use_the_memory_of_feedback_again():
    sample, given = Sample(), rounds(0, 5)
    sample.add(given, torch.zeros(5))
    given.feedback.fill_(9)
    assert 9 not in sample.kept().rounds.feedback.tolist()
