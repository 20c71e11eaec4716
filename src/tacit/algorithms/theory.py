"""The numbers of rounds and the gamma that the paper's theorems ask for.

| here               | paper                        | value, with L = log(|H| T)                                   |
|--------------------|------------------------------|--------------------------------------------------------------|
| off_policy_rounds  | Theorem 1, N                 | (T K / sigma)^(2/3) L^(1/3)                                  |
| on_policy_gamma    | proof of Theorem 2, gamma    | min{(K T / RegSq)^(1/2), sigma^(2/3) (K T)^(1/3) L^(-1/3)}   |
| on_policy_rounds   | proof of Theorem 2, N        | (T K gamma L)^(1/2) / sigma                                  |
| off_policy_bound   | Theorem 1                    | (T K / sigma)^(2/3) L^(1/3)                                  |
| on_policy_bound    | proof of Theorem 2, last     | gamma RegSq + T K gamma L / (sigma^2 N) + T K / gamma + N    |
|                    | display but one              |                                                              |

The second term of gamma differs from the printed one, sigma^(-2/3) (K T)^(2/3) L^(-1/3), which cannot be meant. The
bound that precedes it is `on_policy_bound`. The N that balances its second and last terms is `on_policy_rounds`, which
leaves (T K gamma L)^(1/2) / sigma to balance against T K / gamma: gamma^(3/2) = sigma (T K / L)^(1/2), the value
here, and both become sigma^(-2/3) (K T)^(2/3) L^(1/3) as Theorem 2 promises. With the printed exponents the minimum
would be (K T / RegSq)^(1/2) for all large T, and N alone would grow like T^(3/4).

The theorems hold up to a constant, and hold for any constant in front of N and gamma: `scale` is that constant. At
scale 1 N exceeds T unless T is large. Every function rounds a number of rounds up.
"""

from __future__ import annotations

import math

from tacit.errors import InvalidInputError
from tacit.interactions import check_action_count, check_real


def off_policy_rounds(T: int, K: int, sigma: float, class_size: int, scale: float = 1.0) -> int:
    """N of Algorithm 1: it explores for 2N rounds, N for the posterior and N for the policy."""
    _check("scale", scale)
    return math.ceil(scale * off_policy_bound(T, K, sigma, class_size))


def on_policy_gamma(
    T: int, K: int, sigma: float, class_size: int, regression_regret: float, scale: float = 1.0
) -> float:
    """gamma of Algorithm 2, from RegSq, the regret of its regression oracle; corrected as said above."""
    L = _log_class(T, K, sigma, class_size)
    _check("regression_regret", regression_regret)
    _check("scale", scale)
    from_inverse: float = sigma ** (2 / 3) * (K * T) ** (1 / 3) * L ** (-1 / 3)
    return scale * min(math.sqrt(K * T / regression_regret), from_inverse)


def on_policy_rounds(T: int, K: int, sigma: float, class_size: int, gamma: float, scale: float = 1.0) -> int:
    """N of Algorithm 2 for a given gamma: the uniform rounds before inverse-gap weighting starts."""
    L = _log_class(T, K, sigma, class_size)
    _check("gamma", gamma)
    _check("scale", scale)
    return math.ceil(scale * math.sqrt(T * K * gamma * L) / sigma)


def off_policy_bound(T: int, K: int, sigma: float, class_size: int) -> float:
    """What the regret of Algorithm 1 is at most, up to a constant."""
    L = _log_class(T, K, sigma, class_size)
    return float((T * K / sigma) ** (2 / 3) * L ** (1 / 3))


def on_policy_bound(
    T: int, K: int, sigma: float, class_size: int, regression_regret: float, gamma: float, N: float
) -> float:
    """What the regret of Algorithm 2 is at most for any gamma and N, up to a constant."""
    L = _log_class(T, K, sigma, class_size)
    for name, value in (("regression_regret", regression_regret), ("gamma", gamma), ("N", N)):
        _check(name, value)
    return gamma * regression_regret + T * K * gamma * L / (sigma**2 * N) + T * K / gamma + N


def _log_class(T: int, K: int, sigma: float, class_size: int) -> float:
    """log(|H| T), the arguments that all functions share being checked on the way."""
    check_action_count(K)
    _check("T", T)
    _check("class_size", class_size)
    _check("sigma", sigma)
    if class_size * T <= 1:
        raise InvalidInputError("T", "one round and one candidate leave nothing to learn")
    return math.log(class_size * T)


def _check(name: str, value: float) -> None:
    if not (math.isfinite(check_real(value, name)) and value > 0):
        raise InvalidInputError(name, f"must be a positive number, got {value}")
