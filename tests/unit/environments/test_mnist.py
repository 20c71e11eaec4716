"""MNIST and Fashion-MNIST: read from a folder or fetched once, checked, and every failure says what to do."""

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
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tacit.encoders import Image
from tacit.environments import fashion, mnist
from tacit.environments.classification import Classification, Labelled
from tacit.environments.idx import ImageSet
from tacit.errors import DatasetError

TRAIN, TEST = 30, 5
NAMES = TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = tuple(mnist.FILES.contents)
MODULES = {"mnist": mnist, "fashion": fashion}
DATA = Path(os.environ.get("TACIT_DATA", ""))


def idx(values: torch.Tensor) -> bytes:
    """The format of the original files: a magic number, the sizes, the bytes."""
    return struct.pack(f">{values.ndim + 1}i", 0x0800 + values.ndim, *values.shape) + values.numpy().tobytes()


def images(count: int) -> torch.Tensor:
    return (torch.arange(count * 784) % 251).to(torch.uint8).view(count, 28, 28)


def labels(count: int) -> torch.Tensor:
    return (torch.arange(count) % 10).to(torch.uint8)


def checksums(contents: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(text).hexdigest() for name, text in contents.items()}


@pytest.fixture(params=MODULES)
def module(request: pytest.FixtureRequest) -> ModuleType:
    return MODULES[request.param]


@pytest.fixture
def archives(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Four small files in the place of the real ones, and their checksums."""
    values = dict(zip(NAMES, (images(TRAIN), labels(TRAIN), images(TEST), labels(TEST)), strict=True))
    contents = {name: idx(value) for name, value in values.items()}
    monkeypatch.setattr(module, "FILES", replace(module.FILES, contents=checksums(contents)))
    return {name: gzip.compress(text) for name, text in contents.items()}


@pytest.fixture
def files(module: ModuleType, archives: dict[str, bytes]) -> ImageSet:
    """The data set of those small files."""
    return module.FILES


@pytest.fixture
def folder(tmp_path: Path, archives: dict[str, bytes]) -> Path:
    for name, archive in archives.items():
        (tmp_path / name).write_bytes(archive)
    return tmp_path


@pytest.fixture
def cache(tmp_path: Path, files: ImageSet, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tacit" / files.folder


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


def is_complete(loaded: tuple[Labelled, Labelled]) -> bool:
    return all(
        torch.equal(part.contexts, images(count)) and torch.equal(part.labels, labels(count).long())
        for part, count in zip(loaded, (TRAIN, TEST), strict=True)
    )


# -- from a folder -----------------------------------------------------------------------------------------------------


def test_images_and_labels_are_read_from_a_folder(module, folder):
    assert is_complete(module.load(folder))


@pytest.fixture
def world(module: ModuleType, folder: Path) -> Classification:
    return {"mnist": mnist.mnist, "fashion": fashion.fashion}[module.FILES.folder](0, data=folder)


def test_the_environment_is_the_papers(world):
    assert world.problem.actions == 10
    assert world.problem.context == world.problem.feedback == Image(28, 28)
    assert world.horizon == TRAIN
    assert len(world.held_out().contexts) == TEST
    (arrival,) = world.stream(TRAIN, TRAIN)
    shown = {bytes(image.numpy()): int(label) for image, label in zip(images(TRAIN), labels(TRAIN), strict=True)}
    classes = torch.tensor([shown[bytes(image.numpy())] for image in arrival.contexts])
    actions = torch.where(torch.arange(TRAIN) % 2 == 0, classes, (classes + 3) % 10)
    feedback, hidden = arrival.react(actions)
    expected = torch.where(actions == classes, classes + 1, classes - 1) % 10
    assert [shown[bytes(image.numpy())] for image in feedback] == expected.tolist()
    assert torch.equal(hidden.values, (actions == classes).float())


@pytest.mark.parametrize("module", [mnist], ids=["mnist"])
def test_rewards_can_be_left_to_chance(folder):
    (arrival,) = mnist.mnist(0, data=folder, right=0.5, wrong=0.4).stream(TRAIN, TRAIN)
    _, hidden = arrival.react(torch.zeros(TRAIN, dtype=torch.int64))
    assert 0 < hidden.values.mean() < 1


def test_several_sets_share_a_folder_in_folders_of_their_own(files, folder, archives):
    """A folder of the set's name goes before the folder itself, whatever lies there."""
    own = folder / files.folder
    own.mkdir()
    for name, archive in archives.items():
        (own / name).write_bytes(archive)
        (folder / name).write_bytes(gzip.compress(b"another set"))
    assert is_complete(files.load(folder))
    assert is_complete(files.load(own))


def test_files_of_another_set_are_refused_with_the_place_for_ones_own(files, folder):
    (folder / TRAIN_IMAGES).write_bytes(gzip.compress(b"another set"))
    with pytest.raises(DatasetError, match=f"not contain what {files.name} does") as caught:
        files.load(folder)
    assert str(caught.value).endswith(f"the files of {files.name} may also lie in {folder / files.folder}")


def test_a_file_that_is_missing_in_the_sets_own_folder_is_wanted_there_alone(files, folder):
    (folder / files.folder).mkdir()
    with pytest.raises(DatasetError, match="No such file") as caught:
        files.load(folder)
    assert str(folder / files.folder / TRAIN_IMAGES) in str(caught.value)
    assert "may also lie" not in str(caught.value)


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
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_named_with_what_to_do(files, folder, name, damage, message):
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    with pytest.raises(DatasetError, match=message) as caught:
        files.load(folder)
    assert str(folder / name) in str(caught.value)
    assert "delete it and try again" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named_with_all_that_are_wanted(files, folder, name):
    (folder / name).unlink()
    with pytest.raises(DatasetError, match="No such file") as caught:
        files.load(folder)
    assert str(folder / name) in str(caught.value)
    assert all(wanted in str(caught.value) for wanted in NAMES)


# -- fetched -----------------------------------------------------------------------------------------------------------


def test_files_are_fetched_once_and_kept(files, cache, archives, asked):
    addresses = asked(lambda address: Answer(archives[address.rsplit("/", 1)[1]]))
    assert is_complete(files.load())
    assert addresses == [f"{files.sources[0]}{name}" for name in archives]
    assert sorted(path.name for path in cache.iterdir()) == sorted(archives)
    assert is_complete(files.load())
    assert len(addresses) == len(archives)


def test_only_what_is_missing_is_fetched(files, cache, archives, asked):
    cache.mkdir(parents=True)
    for name in (TRAIN_IMAGES, TEST_LABELS):
        (cache / name).write_bytes(archives[name])
    addresses = asked(lambda address: Answer(archives[address.rsplit("/", 1)[1]]))
    assert is_complete(files.load())
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
def test_the_next_source_is_asked_when_the_first_fails(files, cache, archives, asked, fail):
    def answer(address: str) -> Answer:
        archive = archives[address.rsplit("/", 1)[1]]
        return fail(archive) if address.startswith(files.sources[0]) else Answer(archive)

    addresses = asked(answer)
    assert is_complete(files.load())
    assert len(addresses) == 2 * len(archives)


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES.keys())
def test_without_any_source_the_error_says_what_to_do_and_nothing_is_kept(files, cache, archives, asked, fail):
    asked(lambda address: fail(archives[address.rsplit("/", 1)[1]]))
    with pytest.raises(DatasetError, match="--data DIR") as caught:
        files.load()
    assert all(f"{source}{TRAIN_IMAGES}: " in str(caught.value) for source in files.sources)
    assert not cache.exists()


def test_a_damaged_cache_is_not_fetched_over_in_silence(files, cache, folder, archives):
    cache.mkdir(parents=True)
    for name, archive in archives.items():
        (cache / name).write_bytes(archive[:-20])
    with pytest.raises(DatasetError, match="delete it and try again"):
        files.load()


def test_the_cache_lies_where_the_system_wants_it(files, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache() == tmp_path / "tacit" / files.folder
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.cache() == tmp_path / ".cache" / "tacit" / files.folder


def test_no_two_sets_share_a_folder_or_a_file():
    sets = [module.FILES for module in MODULES.values()]
    assert len({files.folder for files in sets}) == len(sets)
    assert len({checksum for files in sets for checksum in files.contents.values()}) == 4 * len(sets)


@pytest.mark.slow
@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="TACIT_DATA names no folder with the four files of MNIST")
def test_the_real_files_hold_what_mnist_does():
    train, test = mnist.load(DATA)
    assert train.contexts.shape == (60_000, 28, 28)
    assert test.contexts.shape == (10_000, 28, 28)
    assert train.labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert test.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(train.contexts.float().mean() / 255) == pytest.approx(0.1307, abs=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "fashion").is_dir(), reason="TACIT_DATA names no folder that holds one called fashion")
def test_the_real_files_hold_what_fashion_mnist_does():
    train, test = fashion.load(DATA)
    assert train.contexts.shape == (60_000, 28, 28)
    assert test.contexts.shape == (10_000, 28, 28)
    assert train.labels.bincount().tolist() == [6_000] * 10
    assert test.labels.bincount().tolist() == [1_000] * 10
    assert float(train.contexts.float().mean() / 255) == pytest.approx(0.2860, abs=1e-4)
