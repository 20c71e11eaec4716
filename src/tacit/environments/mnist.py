"""MNIST with image feedback, as in the paper's experiment."""

from __future__ import annotations

from pathlib import Path

import torch

from tacit.environments.classification import Classification, Labelled
from tacit.environments.idx import ImageSet, guessed

FILES = ImageSet(
    name="MNIST",
    folder="mnist",
    sources=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    contents={
        "train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
)


def mnist(
    seed: int, device: torch.device | str = "cpu", data: Path | None = None,
    *, right: float = 1.0, wrong: float = 0.0,
) -> Classification:  # fmt: skip
    """60,000 images to learn from, each shown once, and 10,000 to score on."""
    return guessed(load(data), seed, device, right, wrong)


def load(data: Path | None = None) -> tuple[Labelled, Labelled]:
    """Training and test images with their labels, from the folder `data` or, without one, the cache."""
    return FILES.load(data)
