"""The 1,797 digits of scikit-learn, 8 x 8 pixels, with the paper's image feedback: small, embedded, quick."""

from __future__ import annotations

import torch

from tacit.encoders import Image
from tacit.environments.classification import Classification, Labelled, Neighbour
from tacit.errors import MissingExtraError

SPACE = Image(8, 8)


def digits(seed: int, device: torch.device | str = "cpu", passes: int = 3) -> Classification:
    """Four fifths to learn from, each shown `passes` times, the rest to score on; split by the seed."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "digits") from error
    data = load_digits()
    everything = Labelled(
        torch.from_numpy(data.images).float() / 16, torch.from_numpy(data.target).long(), classes=10
    ).to(device)
    train, test = everything.split(seed, passes)
    return Classification(train, test, SPACE, Neighbour(train, SPACE), seed)
