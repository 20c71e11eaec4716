"""The networks of an experiment: as they come, or hardly trained, for its quick shape."""

from __future__ import annotations

from tacit.algorithms import Networks
from tacit.experiments.spec import Place
from tacit.inverse import InverseTraining
from tacit.oracles import OracleTraining


def networks(place: Place, brief: bool) -> Networks:
    """On the device of the experiment."""
    if not brief:
        return Networks(on=place.device)
    return Networks(
        InverseTraining(contrast_steps=10, steps=20, patience=1, interval=1, batch=32),
        OracleTraining(warm_up=20, replay=1, batch=32), place.device,
    )  # fmt: skip
