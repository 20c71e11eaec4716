"""MNIST with image feedback, as in the paper's experiment: fetched once, checked, kept in a cache."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import urllib.request
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tacit.encoders import Image
from tacit.environments.classification import Classification, Labelled, Neighbour
from tacit.errors import DatasetError
from tacit.storage import write_bytes

SOURCES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
# SHA-256 of what is inside the archives: repacking changes an archive's own checksum, never this one.
CONTENTS = {
    "train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
SPACE = Image(28, 28)
TIMEOUT = 60  # seconds without an answer


def mnist(
    seed: int, device: torch.device | str = "cpu", data: Path | None = None,
    *, right: float = 1.0, wrong: float = 0.0,
) -> Classification:  # fmt: skip
    """60,000 images to learn from, each shown once, and 10,000 to score on."""
    train, test = (part.to(device) for part in load(data))
    return Classification(train, test, SPACE, Neighbour(train, SPACE), seed, right=right, wrong=wrong)


def load(data: Path | None = None) -> tuple[Labelled, Labelled]:
    """Training and test images with their labels, from the folder `data` or, without one, the cache."""
    folder = data if data is not None else cache_folder()
    if data is None:
        for name in CONTENTS:
            if not (folder / name).exists():
                _fetch(folder / name)
    return _labelled(folder, "train"), _labelled(folder, "t10k")


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tacit" / "mnist"


def _labelled(folder: Path, part: str) -> Labelled:
    images = _array(folder / f"{part}-images-idx3-ubyte.gz", header=16).reshape(-1, 28, 28)
    labels = _array(folder / f"{part}-labels-idx1-ubyte.gz", header=8)
    return Labelled(images, labels.long(), classes=10)


def _array(path: Path, header: int) -> Tensor:
    try:
        contents = _contents(path.read_bytes(), str(path))
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read ({error.strerror or error}); expected the four files {', '.join(CONTENTS)}"
        ) from error
    except DatasetError as error:
        raise DatasetError(f"{error}; delete it and try again, or fetch it by hand from {SOURCES[0]}") from error
    return torch.from_numpy(np.frombuffer(contents, np.uint8, offset=header).copy())


def _contents(archive: bytes, where: str) -> bytes:
    """What is inside an archive, if it is what it should be."""
    try:
        contents = gzip.decompress(archive)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{where} is not a complete gzip archive ({error})") from error
    if hashlib.sha256(contents).hexdigest() != CONTENTS[Path(where).name]:
        raise DatasetError(f"{where} does not contain what MNIST does: its checksum differs")
    return contents


def _fetch(path: Path) -> None:
    """Download one archive from the first source that answers with the right contents."""
    problems = []
    for source in SOURCES:
        address = f"{source}{path.name}"
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
                archive = answer.read()
            _contents(archive, address)
        except (OSError, http.client.HTTPException, DatasetError) as error:
            problems.append(f"{address}: {error}")
            continue
        write_bytes(path, archive)
        return
    raise DatasetError(
        "MNIST could not be downloaded; fetch its four files by hand and say where they are with --data DIR. "
        + "; ".join(problems)
    )
