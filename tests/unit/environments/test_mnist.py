"""MNIST: read from a folder or fetched once, checked either way, and every failure says what to do."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import struct
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tacit.encoders import Image
from tacit.environments import mnist
from tacit.errors import DatasetError

TRAIN, TEST = 30, 5
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = mnist.CONTENTS


def idx(values: torch.Tensor) -> bytes:
    """The format of the original files: a magic number, the sizes, the bytes."""
    return struct.pack(f">{values.ndim + 1}i", 0x0800 + values.ndim, *values.shape) + values.numpy().tobytes()


def images(count: int) -> torch.Tensor:
    return (torch.arange(count * 784) % 251).to(torch.uint8).view(count, 28, 28)


def labels(count: int) -> torch.Tensor:
    return (torch.arange(count) % 10).to(torch.uint8)


@pytest.fixture
def archives(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Four small files in the place of the real ones, and their checksums."""
    values = dict(zip(mnist.CONTENTS, (images(TRAIN), labels(TRAIN), images(TEST), labels(TEST)), strict=True))
    contents = {name: idx(value) for name, value in values.items()}
    monkeypatch.setattr(mnist, "CONTENTS", {name: hashlib.sha256(text).hexdigest() for name, text in contents.items()})
    return {name: gzip.compress(text) for name, text in contents.items()}


@pytest.fixture
def folder(tmp_path: Path, archives: dict[str, bytes]) -> Path:
    for name, archive in archives.items():
        (tmp_path / name).write_bytes(archive)
    return tmp_path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tacit" / "mnist"


class Answer(io.BytesIO):
    """What a server sends; it may break off."""

    def __init__(self, content: bytes, broken: Exception | None = None) -> None:
        super().__init__(content)
        self._broken = broken

    def read(self, size: int | None = -1) -> bytes:
        if self._broken:
            raise self._broken
        return super().read(size)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], Answer]], list[str]]:
    """Puts a server in place; the list fills with the addresses that it is asked for."""

    def serve(answer: Callable[[str], Answer]) -> list[str]:
        addresses: list[str] = []

        def urlopen(address: str, timeout: float) -> Answer:
            addresses.append(address)
            return answer(address)

        monkeypatch.setattr(urllib.request, "urlopen", urlopen)
        return addresses

    return serve


def raising(error: Exception) -> Answer:
    raise error


def is_complete(loaded: tuple[mnist.Labelled, mnist.Labelled]) -> bool:
    return all(
        torch.equal(part.contexts, images(count)) and torch.equal(part.labels, labels(count).long())
        for part, count in zip(loaded, (TRAIN, TEST), strict=True)
    )


# -- from a folder -----------------------------------------------------------------------------------------------------


def test_images_and_labels_are_read_from_a_folder(folder):
    assert is_complete(mnist.load(folder))


def test_the_environment_is_the_papers(folder):
    made = mnist.mnist(0, data=folder)
    assert made.problem.actions == 10
    assert made.problem.context == made.problem.feedback == Image(28, 28)
    assert made.horizon == TRAIN
    assert len(made.held_out().contexts) == TEST
    (arrival,) = made.stream(TRAIN, TRAIN)
    shown = {bytes(image.numpy()): int(label) for image, label in zip(images(TRAIN), labels(TRAIN), strict=True)}
    digits = torch.tensor([shown[bytes(image.numpy())] for image in arrival.contexts])
    actions = torch.where(torch.arange(TRAIN) % 2 == 0, digits, (digits + 3) % 10)
    feedback, hidden = arrival.react(actions)
    expected = torch.where(actions == digits, digits + 1, digits - 1) % 10
    assert [shown[bytes(image.numpy())] for image in feedback] == expected.tolist()
    assert torch.equal(hidden.values, (actions == digits).float())


def test_rewards_can_be_left_to_chance(folder):
    (arrival,) = mnist.mnist(0, data=folder, right=0.5, wrong=0.4).stream(TRAIN, TRAIN)
    _, hidden = arrival.react(torch.zeros(TRAIN, dtype=torch.int64))
    assert 0 < hidden.values.mean() < 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda archive: archive[:-20], "is not a complete gzip archive"),
        (lambda archive: b"", "checksum differs"),
        (lambda archive: b"<html>not found</html>", "is not a complete gzip archive"),
        (lambda archive: archive[:30] + b"\xff\xff" + archive[32:], "is not a complete gzip archive"),
        (lambda archive: gzip.compress(gzip.decompress(archive)[:-1]), "checksum differs"),
        (lambda archive: gzip.compress(gzip.decompress(archive) + b"\0"), "checksum differs"),
    ],
    ids=["truncated", "empty", "a web page", "altered", "too short inside", "too long inside"],
)
@pytest.mark.parametrize("name", mnist.CONTENTS)
def test_a_damaged_file_is_named_with_what_to_do(folder, name, damage, message):
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    with pytest.raises(DatasetError, match=message) as caught:
        mnist.load(folder)
    assert str(folder / name) in str(caught.value)
    assert "delete it and try again" in str(caught.value)


@pytest.mark.parametrize("name", mnist.CONTENTS)
def test_a_missing_file_is_named_with_all_that_are_wanted(folder, name):
    (folder / name).unlink()
    with pytest.raises(DatasetError, match="No such file") as caught:
        mnist.load(folder)
    assert str(folder / name) in str(caught.value)
    assert all(wanted in str(caught.value) for wanted in mnist.CONTENTS)


# -- fetched -----------------------------------------------------------------------------------------------------------


def test_files_are_fetched_once_and_kept(cache, archives, asked):
    addresses = asked(lambda address: Answer(archives[address.rsplit("/", 1)[1]]))
    assert is_complete(mnist.load())
    assert addresses == [f"{mnist.SOURCES[0]}{name}" for name in archives]
    assert sorted(path.name for path in cache.iterdir()) == sorted(archives)
    assert is_complete(mnist.load())
    assert len(addresses) == len(archives)


def test_only_what_is_missing_is_fetched(cache, archives, asked):
    cache.mkdir(parents=True)
    for name in (TRAIN_IMAGES, TEST_LABELS):
        (cache / name).write_bytes(archives[name])
    addresses = asked(lambda address: Answer(archives[address.rsplit("/", 1)[1]]))
    assert is_complete(mnist.load())
    assert [address.rsplit("/", 1)[1] for address in addresses] == [TRAIN_LABELS, TEST_IMAGES]


NOT_FOUND = urllib.error.HTTPError("address", 404, "Not Found", http.client.HTTPMessage(), io.BytesIO())

FAILURES = {
    "unreachable": lambda archive: raising(urllib.error.URLError("Name or service not known")),
    "too slow": lambda archive: raising(TimeoutError("timed out")),
    "not there": lambda archive: raising(NOT_FOUND),
    "broken off": lambda archive: Answer(b"", http.client.IncompleteRead(archive[:10])),
    "not HTTP": lambda archive: raising(http.client.BadStatusLine("hello")),
    "cut short": lambda archive: Answer(archive[:-20]),
    "altered": lambda archive: Answer(archive[:30] + b"\xff\xff" + archive[32:]),
    "something else": lambda archive: Answer(gzip.compress(b"something else")),
}


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES.keys())
def test_the_next_source_is_asked_when_the_first_fails(cache, archives, asked, fail):
    def answer(address: str) -> Answer:
        archive = archives[address.rsplit("/", 1)[1]]
        return fail(archive) if address.startswith(mnist.SOURCES[0]) else Answer(archive)

    addresses = asked(answer)
    assert is_complete(mnist.load())
    assert len(addresses) == 2 * len(archives)


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES.keys())
def test_without_any_source_the_error_says_what_to_do_and_nothing_is_kept(cache, archives, asked, fail):
    asked(lambda address: fail(archives[address.rsplit("/", 1)[1]]))
    with pytest.raises(DatasetError, match="--data DIR") as caught:
        mnist.load()
    assert all(f"{source}{TRAIN_IMAGES}: " in str(caught.value) for source in mnist.SOURCES)
    assert not cache.exists()


def test_a_damaged_cache_is_not_fetched_over_in_silence(cache, folder, archives):
    cache.mkdir(parents=True)
    for name, archive in archives.items():
        (cache / name).write_bytes(archive[:-20])
    with pytest.raises(DatasetError, match="delete it and try again"):
        mnist.load()


def test_the_cache_lies_where_the_system_wants_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert mnist.cache_folder() == tmp_path / "tacit" / "mnist"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert mnist.cache_folder() == tmp_path / ".cache" / "tacit" / "mnist"


@pytest.mark.slow
@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="TACIT_DATA names no folder with the four files of MNIST")
def test_the_real_files_hold_what_mnist_does():
    train, test = mnist.load(Path(os.environ["TACIT_DATA"]))
    assert train.contexts.shape == (60_000, 28, 28)
    assert test.contexts.shape == (10_000, 28, 28)
    assert train.labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert test.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(train.contexts.float().mean() / 255) == pytest.approx(0.1307, abs=1e-4)
