"""How long to explore when the number of rounds is known beforehand: by the theorems, not by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.algorithms import theory
from tacit.errors import InvalidInputError
from tacit.interactions import check_positive_count, check_real
from tacit.oracles.vovk import regret_bound


@dataclass(frozen=True)
class Horizon:
    """`rounds` (T) to play with `inverse_models` (|H|) and `reward_models` (|F|) candidates in the classes.

    Give it as `explore`: N and gamma then follow from the theorems. `scale` is the one constant that they leave open:
    it multiplies N, and divides gamma, so that N and T K / gamma stay as large as each other, as in the proof.
    """

    rounds: int
    inverse_models: int
    reward_models: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive_count(self.rounds, "rounds")
        if check_positive_count(self.reward_models, "reward_models") < 2:
            raise InvalidInputError("reward_models", f"needs at least two to choose from, got {self.reward_models}")
        if not (math.isfinite(check_real(self.scale, "scale")) and self.scale > 0):
            raise InvalidInputError("scale", f"must be a positive number, got {self.scale}")

    def off_policy_rounds(self, K: int, sigma: float) -> int:
        """N of Algorithm 1."""
        N = theory.off_policy_rounds(self.rounds, K, sigma, self.inverse_models, self.scale)
        return self._checked(N, (self.rounds - 1) // 2)

    def on_policy_rounds(self, K: int, sigma: float) -> int:
        """N of Algorithm 2."""
        gamma = self.scale * self.gamma(K, sigma)
        N = theory.on_policy_rounds(self.rounds, K, sigma, self.inverse_models, gamma, self.scale)
        return self._checked(N, self.rounds - 1)

    def gamma(self, K: int, sigma: float) -> float:
        """The gamma of Algorithm 2, for Vovk's oracle."""
        return theory.on_policy_gamma(
            self.rounds, K, sigma, self.inverse_models, regret_bound(self.reward_models), 1 / self.scale
        )

    def _checked(self, N: int, most: int) -> int:
        if N > most:
            raise InvalidInputError(
                "explore", f"the theory asks for N = {N} rounds of exploration, more than the horizon of "
                f"{self.rounds} leaves ({most}); play longer, or give a smaller `scale`"
            )
        return N
