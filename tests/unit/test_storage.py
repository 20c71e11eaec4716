"""Files are whole or not there, damage is noticed and named, and nothing is ever unpickled."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import nn

from tacit.errors import CorruptFileError, InvalidInputError, SaveError
from tacit.seeding import initialisation
from tacit.storage import (
    DOCUMENT,
    describe,
    load_module,
    read_folder,
    read_json,
    rebuild,
    write_bytes,
    write_folder,
    write_json,
)  # fmt: skip

SOURCE = Path(__file__).parents[2] / "src"
UNSAFE = re.compile(
    r"\b(pickle|dill|cloudpickle|joblib|shelve|marshal)\b|\btorch\.(load|save)\b|\bnp\.load\b|allow_pickle"
    r"|(?<![\w.])(eval|exec)\("
)


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, after: int = 0, error: BaseException | None = None) -> Iterator[None]:
    """A disk on which `after` files still find room."""
    written = 0
    really = os.fsync

    def fsync(handle: int) -> None:
        nonlocal written
        written += 1
        if written > after:
            raise error or OSError(errno.ENOSPC, "No space left on device")
        really(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The operating system itself refuses more, in the middle of writing."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def weights(folder: Path) -> Path:
    (path,) = folder.glob("tensors-*.safetensors")
    return path


# -- one file ----------------------------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_folders_and_nothing_beside_it(tmp_path):
    write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"
    assert names(tmp_path / "a" / "b") == ["file"]
    assert (tmp_path / "a" / "b" / "file").stat().st_mode & 0o777 == 0o644


def test_a_file_is_replaced_as_a_whole(tmp_path):
    write_bytes(tmp_path / "file", b"a long old content")
    write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_reader_never_sees_a_file_half_written(tmp_path):
    write_bytes(tmp_path / "file", b"old")
    with (tmp_path / "file").open("rb") as reader:
        write_bytes(tmp_path / "file", b"new")
        assert reader.read() == b"old"


@pytest.mark.parametrize("old", [b"old", None], ids=["replaced", "new"])
@pytest.mark.parametrize("limited", ["by the disk", "by the size of a file"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, old, limited):
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)
    limit = full_disk(monkeypatch) if limited == "by the disk" else files_of_at_most(1_000)
    with pytest.raises(SaveError, match=re.escape(str(path))) as caught, limit:
        write_bytes(path, bytes(100_000))
    assert "nothing was changed" in str(caught.value)
    assert names(tmp_path) == ([] if old is None else ["file"])
    assert old is None or path.read_bytes() == old


def test_an_interrupt_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), full_disk(monkeypatch, error=KeyboardInterrupt()):
        write_bytes(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.parametrize("place", ["file/inside", "folder"], ids=["below a file", "where a folder is"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SaveError, match=f"could not write {re.escape(str(tmp_path / place))}: "):
        write_bytes(tmp_path / place, b"content")
    assert names(tmp_path) == ["file", "folder"]


def test_json_comes_back_as_it_was(tmp_path):
    document = {"a": [1, 2.5, True, None], "ü": {"b": "text"}}
    write_json(tmp_path / "file.json", document)
    assert read_json(tmp_path / "file.json") == document


def test_a_number_that_json_does_not_know_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "file.json", {"loss": math.nan})
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "content",
    [b"", b'{"a": [1, 2', b'{"a": 1} trailing', b"\xff\xfe\x00\x01", b"\x80abc", b"[" * 100_000],
    ids=["empty", "truncated", "too long", "not text", "not UTF-8", "bottomless"],
)
def test_damaged_json_is_named(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=re.escape(f"{path} is not complete JSON")):
        read_json(path)


def test_a_missing_file_and_a_folder_in_its_place_are_named(tmp_path):
    with pytest.raises(CorruptFileError, match=re.escape(f"{tmp_path / 'file.json'} does not exist")):
        read_json(tmp_path / "file.json")
    with pytest.raises(CorruptFileError, match=re.escape(f"{tmp_path} cannot be read")):
        read_json(tmp_path)


# -- a document with its tensors ---------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write_folder(tmp_path, {"name": "first"}, {"a": torch.arange(6.0)})
    return tmp_path


def is_the_first(folder: Path) -> bool:
    document, tensors = read_folder(folder)
    return document["name"] == "first" and tensors["a"].tolist() == list(range(6)) and len(names(folder)) == 2


def test_a_document_and_its_tensors_come_back_as_they_were(tmp_path):
    table = torch.arange(12.0).reshape(3, 4)
    tensors = {
        "table": table, "a row of it": table[1], "turned": table.T, "doubles": table.double(), "empty": table[:0],
        "number": torch.tensor(7), "bytes": torch.arange(5, dtype=torch.uint8), "truths": torch.tensor([True, False]),
        "learned": nn.Parameter(torch.ones(2)),
    }  # fmt: skip
    write_folder(tmp_path, {"name": "all kinds"}, tensors)
    document, found = read_folder(tmp_path)
    assert document["name"] == "all kinds"
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name
        assert found[name].dtype == tensor.dtype, name


def test_a_new_save_takes_the_place_of_the_old_and_touches_nothing_else(saved):
    (saved / "notes.txt").write_text("mine")
    (saved / "tensors-mine.safetensors").write_text("mine, too")
    write_folder(saved, {"name": "second"}, {"a": torch.zeros(2)})
    document, tensors = read_folder(saved)
    assert (document["name"], tensors["a"].tolist()) == ("second", [0.0, 0.0])
    assert len(names(saved)) == 4


def test_what_a_killed_save_left_behind_goes_with_the_next_one(saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tacit.storage._discard", lambda path: None)  # a killed process tidies nothing up
        for after in (0, 1):
            with pytest.raises(SaveError), full_disk(monkeypatch, after):
                write_folder(saved, {"name": "second"}, {"a": torch.zeros(2)})
    (saved / ".notes").write_text("mine")
    assert len(names(saved)) == 6
    write_folder(saved, {"name": "third"}, {"a": torch.ones(2)})
    assert names(saved) == [".notes", DOCUMENT, weights(saved).name]


@pytest.mark.parametrize("after", [0, 1], ids=["at the tensors", "at the document"])
@pytest.mark.parametrize("tensor", [torch.zeros(1_000), torch.arange(6.0)], ids=["new tensors", "the same tensors"])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt()], ids=["full disk", "interrupt"])
def test_a_save_that_stops_half_way_leaves_the_old_one_whole(saved, monkeypatch, after, tensor, error):
    kind = SaveError if error is None else KeyboardInterrupt
    with pytest.raises(kind), full_disk(monkeypatch, after, error):
        write_folder(saved, {"name": "second"}, {"a": tensor})
    assert is_the_first(saved)


def test_tensors_too_large_for_the_disk_leave_the_old_save_whole(saved):
    with pytest.raises(SaveError, match="could not write"), files_of_at_most(1_000):
        write_folder(saved, {"name": "second"}, {"a": torch.zeros(1_000)})
    assert is_the_first(saved)


def edit(**changed: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        document = json.loads((folder / DOCUMENT).read_text())
        (folder / DOCUMENT).write_text(json.dumps(document | changed))

    return damage


def replace_byte(place: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = bytearray(weights(folder).read_bytes())
        content[place] ^= 1
        weights(folder).write_bytes(content)

    return damage


def forge(content: bytes = b"not tensors at all") -> Callable[[Path], None]:
    """Not a safetensors file, but the one that the document wants."""

    def damage(folder: Path) -> None:
        weights(folder).write_bytes(content)
        edit(sha256=hashlib.sha256(content).hexdigest())(folder)

    return damage


def claim(*shape: int) -> bytes:
    """Four bytes that are said to be a tensor of this shape."""
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


def in_place_of(name: str | None, put: Callable[[Path], None]) -> Callable[[Path], None]:
    """Something else where a file was, the tensors for None."""

    def damage(folder: Path) -> None:
        path = folder / name if name else weights(folder)
        path.unlink()
        put(path)

    return damage


def linked_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


DAMAGE = {
    "tensors cut short": (lambda folder: os.truncate(weights(folder), 50), "safetensors is truncated or was altered"),
    "tensors empty": (lambda folder: os.truncate(weights(folder), 0), "safetensors is truncated or was altered"),
    "a byte of the header": (replace_byte(10), "safetensors is truncated or was altered"),
    "a byte of the numbers": (replace_byte(-1), "safetensors is truncated or was altered"),
    "tensors missing": (lambda folder: weights(folder).unlink(), "safetensors cannot be read"),
    "tensors that are none": (forge(), "is not a safetensors file"),
    "document cut short": (lambda folder: os.truncate(folder / DOCUMENT, 30), f"{DOCUMENT} is not complete JSON"),
    "document missing": (lambda folder: (folder / DOCUMENT).unlink(), f"{DOCUMENT} does not exist"),
    "document of another kind": (
        lambda folder: (folder / DOCUMENT).write_text("[1, 2]"), f"{DOCUMENT} was not written by tacit",
    ),
    "no word of the tensors": (edit(tensors=None), f"{DOCUMENT} was not written by tacit"),
    "tensors from elsewhere": (edit(tensors="../tensors-0123456789abcdef.safetensors"), "was not written by tacit"),
    "tensors in a place of their own": (edit(tensors="/tmp/tensors-0123456789abcdef.safetensors"), "was not written"),
    "a gigantic tensor": (forge(claim(2**40, 2**20)), "is not a safetensors file"),
    "a header that never ends": (forge((2**60).to_bytes(8, "little") + b"{}"), "is not a safetensors file"),
    "a pipe for tensors": (in_place_of(None, os.mkfifo), "safetensors cannot be read: it is not a plain file"),
    "a pipe for the document": (in_place_of(DOCUMENT, os.mkfifo), f"{DOCUMENT} cannot be read: it is not a plain"),
    "a document that never ends": (in_place_of(DOCUMENT, linked_to("/dev/zero")), "it is not a plain file"),
    "a link to another file": (in_place_of(None, linked_to(__file__)), "safetensors is truncated or was altered"),
    "another checksum": (edit(sha256="0" * 64), "safetensors is truncated or was altered"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_save_is_refused_and_the_file_named(saved, damage, message):
    assert is_the_first(saved)
    damage(saved)
    with pytest.raises(CorruptFileError, match=message) as caught:
        read_folder(saved)
    assert str(saved) in str(caught.value)


def test_weights_of_another_network_are_refused(source):
    with initialisation(source):
        network = nn.Linear(2, 3)
    load_module(network, {"weight": torch.ones(3, 2), "bias": torch.zeros(3)}, "oracle")
    assert network.weight.sum() == 6
    for tensors in ({"weight": torch.ones(2, 2), "bias": torch.zeros(3)}, {"bias": torch.zeros(3)}):
        with pytest.raises(CorruptFileError, match="the saved oracle does not fit its description"):
            load_module(network, tensors, "oracle")


# -- settings as JSON --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inner:
    width: int
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.width < 0:
            raise InvalidInputError("width", "is negative")


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    made: int = field(init=False, default=3)


KINDS = {"Inner": Inner, "Outer": Outer}


@pytest.mark.parametrize(
    "value", [Outer("x", Inner(2, 0.5)), Inner(1), 7, "text", True, None, 0.25, math.inf, -math.inf], ids=repr
)
def test_settings_come_back_through_a_file_as_they_were(tmp_path, value):
    write_json(tmp_path / "file.json", describe(value))
    assert rebuild(read_json(tmp_path / "file.json"), KINDS) == value


def test_a_loss_that_is_not_a_number_can_be_saved(tmp_path):
    write_json(tmp_path / "file.json", describe(Inner(1, math.nan)))
    assert math.isnan(rebuild(read_json(tmp_path / "file.json"), KINDS).rate)


@pytest.mark.parametrize("value", [[1], {"a": 1}, Inner, object(), torch.ones(1)])
def test_what_has_no_json_form_is_not_described(value):
    with pytest.raises(TypeError, match="has no JSON form"):
        describe(value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "Path", "name": "x"}, "unknown kind 'Path'; this version knows Inner, Outer"),
        ({"width": 1}, "unknown kind None"),
        ({"kind": ["Inner"]}, "unknown kind"),
        ({"kind": "Outer", "name": "x", "inner": {"kind": "os.system"}}, "unknown kind 'os.system'"),
        ({"kind": "Inner", "height": 1}, "Inner cannot be rebuilt: .*height"),
        ({"kind": "Inner", "width": "two"}, "Inner cannot be rebuilt"),
        ({"kind": "Inner", "width": -2}, "Inner cannot be rebuilt: width: is negative"),
        ({"kind": "float", "text": "much"}, "float cannot be rebuilt"),
    ],
)
def test_only_the_kinds_named_are_built_and_only_from_good_settings(document, message):
    with pytest.raises(CorruptFileError, match=message):
        rebuild(document, KINDS)


# -- nothing is unpickled ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["import pickle", "torch.load(path)", "load(f, allow_pickle=True)", "x = eval(text)"])
def test_the_search_for_unpickling_finds_it(line):
    assert UNSAFE.search(line)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_unpickled(path):
    assert [line for line in path.read_text(encoding="utf-8").splitlines() if UNSAFE.search(line)] == []


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"], ids=["too long", "null byte"])
def test_a_folder_that_cannot_exist_is_a_failed_save(tmp_path, name):
    with pytest.raises(SaveError, match="could not write"):
        write_folder(tmp_path / name, {}, {})
