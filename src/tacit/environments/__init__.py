"""Sources of rounds, each with a reward that only evaluation reads."""

from tacit.environments.base import Arrival, Environment, HeldOut

__all__ = ["Arrival", "Environment", "HeldOut"]
