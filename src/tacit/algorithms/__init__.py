"""The algorithms, one file each, readable beside the paper."""

from __future__ import annotations

from pathlib import Path

from tacit.algorithms import saving
from tacit.algorithms.horizon import Horizon
from tacit.algorithms.learner import Learner
from tacit.algorithms.models import FiniteClasses, Models, Networks
from tacit.algorithms.off_policy import OffPolicy
from tacit.algorithms.on_policy import OnPolicy
from tacit.algorithms.two_view import TwoView

__all__ = ["FiniteClasses", "Horizon", "Learner", "Models", "Networks", "OffPolicy", "OnPolicy", "TwoView", "load"]

LEARNERS: dict[str, type[Learner]] = {kind.__name__: kind for kind in (OffPolicy, OnPolicy, TwoView)}


def load(folder: str | Path, *, device: str | None = None) -> Learner:
    """The learner that `save` wrote to `folder`; it goes on with the same numbers as if it had never stopped."""
    return saving.load(Path(folder), LEARNERS, device)
