"""Fashion-MNIST, ten kinds of clothing in the format of MNIST, with the same image feedback."""

from __future__ import annotations

from pathlib import Path

import torch

from tacit.environments.classification import Classification, Labelled
from tacit.environments.idx import ImageSet, guessed

FILES = ImageSet(
    name="Fashion-MNIST",
    folder="fashion",
    sources=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    contents={
        "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
)


def fashion(seed: int, device: torch.device | str = "cpu", data: Path | None = None) -> Classification:
    """60,000 images to learn from, each shown once, and 10,000 to score on."""
    return guessed(load(data), seed, device)


def load(data: Path | None = None) -> tuple[Labelled, Labelled]:
    """Training and test images with their labels, from the folder `data` or, without one, the cache."""
    return FILES.load(data)
