"""Expected decoded reward per action, and the policies chosen by it."""

from tacit.oracles.base import Oracle
from tacit.oracles.network import NetworkOracle, OracleTraining
from tacit.oracles.policies import FinitePolicies, PolicyOracle
from tacit.oracles.policy_network import NetworkPolicies
from tacit.oracles.vovk import VovkOracle

__all__ = [
    "FinitePolicies", "NetworkOracle", "NetworkPolicies", "Oracle", "OracleTraining", "PolicyOracle", "VovkOracle",
]  # fmt: skip
