"""Which action was taken, given context and feedback?"""

from tacit.inverse.base import Fit, InverseModel
from tacit.inverse.finite import FiniteInverse
from tacit.inverse.network import InverseTraining, NetworkInverse

__all__ = ["FiniteInverse", "Fit", "InverseModel", "InverseTraining", "NetworkInverse"]
