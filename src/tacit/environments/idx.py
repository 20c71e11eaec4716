"""Sets of images in the format of MNIST, with the paper's image feedback: fetched once, checked, kept in a cache."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import urllib.request
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tacit.encoders import Image
from tacit.environments.classification import Classification, Labelled, Neighbour
from tacit.errors import DatasetError
from tacit.storage import write_bytes

SPACE = Image(28, 28)
TIMEOUT = 60  # seconds without an answer


@dataclass(frozen=True)
class ImageSet:
    """Four files: where they are fetched from, and the SHA-256 of what is inside each archive.

    Repacking changes an archive's own checksum, never this one. `folder` is where the files lie in the cache, and
    may lie in a folder that holds several sets, as all of them give their files the same names.
    """

    name: str
    folder: str
    sources: tuple[str, ...]
    contents: Mapping[str, str]

    def load(self, data: Path | None = None) -> tuple[Labelled, Labelled]:
        """Training and test images with their labels: from the folder `data`, or one in it, or without it the cache."""
        where = self.cache() if data is None else self._within(data)
        if data is None:
            for name in self.contents:
                if not (where / name).exists():
                    self._fetch(where / name)
        return self._labelled(where, "train"), self._labelled(where, "t10k")

    def cache(self) -> Path:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tacit" / self.folder

    def _within(self, data: Path) -> Path:
        own = data / self.folder
        return own if own.is_dir() else data

    def _or_within(self, path: Path) -> str:
        """Where else the files may lie: several sets in one folder need folders of their own."""
        own = path.parent / self.folder
        return "" if path.parent.name == self.folder else f"; the files of {self.name} may also lie in {own}"

    def _labelled(self, where: Path, part: str) -> Labelled:
        images = self._array(where / f"{part}-images-idx3-ubyte.gz", header=16).reshape(-1, 28, 28)
        labels = self._array(where / f"{part}-labels-idx1-ubyte.gz", header=8)
        return Labelled(images, labels.long(), classes=10)

    def _array(self, path: Path, header: int) -> Tensor:
        try:
            contents = self._checked(path.read_bytes(), str(path))
        except OSError as error:
            raise DatasetError(
                f"{path} cannot be read ({error.strerror or error}); expected the four files {', '.join(self.contents)}"
                f"{self._or_within(path)}"
            ) from error
        except DatasetError as error:
            raise DatasetError(
                f"{error}; delete it and try again, or fetch it by hand from {self.sources[0]}{self._or_within(path)}"
            ) from error
        return torch.from_numpy(np.frombuffer(contents, np.uint8, offset=header).copy())

    def _checked(self, archive: bytes, where: str) -> bytes:
        """What is inside an archive, if it is what it should be."""
        try:
            contents = gzip.decompress(archive)
        except (OSError, EOFError, zlib.error) as error:
            raise DatasetError(f"{where} is not a complete gzip archive ({error})") from error
        if hashlib.sha256(contents).hexdigest() != self.contents[Path(where).name]:
            raise DatasetError(f"{where} does not contain what {self.name} does: its checksum differs")
        return contents

    def _fetch(self, path: Path) -> None:
        """Download one archive from the first source that answers with the right contents."""
        problems = []
        for source in self.sources:
            address = f"{source}{path.name}"
            try:
                with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
                    archive = answer.read()
                self._checked(archive, address)
            except (OSError, http.client.HTTPException, DatasetError) as error:
                problems.append(f"{address}: {error}")
                continue
            write_bytes(path, archive)
            return
        raise DatasetError(
            f"{self.name} could not be downloaded; fetch its four files by hand and say where they are with "
            f"--data DIR. {'; '.join(problems)}"
        )


def guessed(
    parts: tuple[Labelled, Labelled], seed: int, device: torch.device | str, right: float = 1.0, wrong: float = 0.0
) -> Classification:
    """Training and test images as rounds: the action guesses the class, the feedback is an image of a neighbour."""
    train, test = (part.to(device) for part in parts)
    return Classification(train, test, SPACE, Neighbour(train, SPACE), seed, right=right, wrong=wrong)
