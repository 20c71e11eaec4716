"""The experiments by name; each is imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module

from tacit.errors import ExperimentError
from tacit.experiments.spec import Experiment

# The class is in the module of the experiment's name.
CLASSES = {
    "ablation": "Ablation", "digits": "Digits", "growth": "Growth", "health": "Health", "logs": "Logs",
    "mnist": "Mnist", "ope": "Ope", "refined": "Refined", "theory": "Theory", "transfer": "Transfer",
}  # fmt: skip


def named(name: str) -> Experiment:
    """An experiment by its name."""
    if name not in CLASSES:
        raise ExperimentError(f"there is no experiment {name!r}; there are {', '.join(CLASSES)}")
    module = import_module(f"tacit.experiments.{name}")
    experiment: Experiment = getattr(module, CLASSES[name])()
    return experiment


def every() -> list[Experiment]:
    """All experiments."""
    return [named(name) for name in CLASSES]
