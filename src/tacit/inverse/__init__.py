"""What feedback tells in its context: which action was taken, and whether it was a good one."""

from tacit.inverse.base import Fit, InverseModel
from tacit.inverse.finite import FiniteInverse
from tacit.inverse.network import InverseTraining, NetworkInverse
from tacit.inverse.reward import FiniteReward, NetworkReward, RewardModel

__all__ = [
    "FiniteInverse", "FiniteReward", "Fit", "InverseModel", "InverseTraining", "NetworkInverse", "NetworkReward",
    "RewardModel",
]  # fmt: skip
