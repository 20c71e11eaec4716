"""The regression oracle of the theory: Vovk's aggregating algorithm over a finite class, for squared loss.

Every candidate f has a weight that falls by exp(-eta loss); the prediction is the weighted mean of the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from tacit.encoders import Category, Encoder
from tacit.errors import CorruptFileError, InvalidInputError
from tacit.interactions import check_actions, check_finite
from tacit.oracles.base import Oracle

CHUNK = 2_048  # rounds at a time
# exp(-eta (z - r)^2) is concave in z for all z, r in [0, 1] just when 2 eta (z - r)^2 <= 1.
ETA = 0.5


class VovkOracle(Oracle):
    """Predictions from a class f (|F|, X, K) of values in [0, 1]; contexts are columns of indices in 0..X-1.

    Whatever the decoded rewards, the summed squared loss exceeds that of the best candidate by at most
    log|F| / eta = 2 log|F|. Vovk's substitution function would allow eta = 2 and log|F| / 2, but its prediction can
    leave the convex hull of the class, where the paper wants it; the weighted mean at eta = 1/2 stays in it by
    construction, for all actions at once. Within a batch the order of rounds does not matter, as weights multiply.

    >>> import torch
    >>> oracle = VovkOracle(torch.tensor([[[0.0, 1.0]], [[1.0, 0.0]]]))
    >>> oracle.predict(torch.tensor([0])).tolist()
    [[0.5, 0.5]]
    """

    def __init__(self, f: Tensor) -> None:
        # The negation catches NaN, which no comparison accepts.
        if f.ndim != 3 or 0 in f.shape or not f.is_floating_point() or not bool(((f >= 0) & (f <= 1)).all()):
            raise InvalidInputError("f", f"expected (|F|, X, K) numbers from 0 to 1, got {f.dtype} of {tuple(f.shape)}")
        self._f = f.double()
        self._contexts = Category(f.shape[1])
        self._log_weights = uniform_log_weights(self._f)

    def predict(self, contexts: Tensor) -> Tensor:
        self._check_contexts(contexts)
        # An index of bytes would be read as a mask.
        return mean_prediction(self._log_weights, self._f[:, contexts.long()].movedim(0, -2))

    def update(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        self._check(contexts, actions, decoded)
        losses = squared_losses(self._f, contexts.long(), actions.long(), decoded.to(self._f))
        self._log_weights = aggregate(self._log_weights, losses.sum(0))

    def warm_up(
        self, contexts: Tensor, actions: Tensor, decoded: Tensor, encoder: Encoder | None = None
    ) -> None:
        """Passes: Algorithm 2 starts its oracle after exploration, and the theorem counts its regret from there."""

    def relearn(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        self._log_weights = uniform_log_weights(self._f)
        for part in zip(contexts.split(CHUNK), actions.split(CHUNK), decoded.split(CHUNK), strict=True):
            self.update(*part)

    def tensors(self) -> dict[str, Tensor]:
        return {"log_weights": self._log_weights}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        if set(tensors) != {"log_weights"}:
            raise CorruptFileError(f"Vovk's oracle consists of log_weights, found {sorted(tensors)}")
        found = tensors["log_weights"]
        if found.shape != self._log_weights.shape:
            raise CorruptFileError(f"log_weights: expected {len(self._f)} candidates, found shape {tuple(found.shape)}")
        if not found.is_floating_point() or not bool(found.isfinite().all()):
            raise CorruptFileError("log_weights: not finite numbers")
        self._log_weights = found.to(self._log_weights)

    def _check_contexts(self, contexts: Tensor) -> None:
        self._contexts.check(contexts, "contexts")
        self._contexts.check_range(contexts, "contexts")

    def _check(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        self._check_contexts(contexts)
        check_actions(actions, self._f.shape[2])
        if len(contexts) != len(actions) or decoded.shape != actions.shape:
            sizes = f"{len(contexts)} contexts, {len(actions)} actions, {len(decoded)} rewards"
            raise InvalidInputError("decoded", f"expected as many of each, got {sizes}")
        check_finite(decoded, "decoded")
        if bool(((decoded < 0) | (decoded > 1)).any()):
            raise InvalidInputError("decoded", "decoded rewards are numbers from 0 to 1")


def regret_bound(candidates: int) -> float:
    """RegSq of the paper: the most by which the summed squared loss can exceed the best candidate's."""
    return math.log(candidates) / ETA


def uniform_log_weights(f: Tensor) -> Tensor:
    """Log-weights (|F|,) before anything was seen of the candidates f (|F|, ...)."""
    return f.new_full((len(f),), -math.log(len(f)))


def squared_losses(f: Tensor, contexts: Tensor, actions: Tensor, decoded: Tensor) -> Tensor:
    """Loss (..., |F|) of every candidate f (|F|, X, K) on the rounds given (...)."""
    return (f[:, contexts, actions].movedim(0, -1) - decoded[..., None]).square()


def aggregate(log_weights: Tensor, losses: Tensor) -> Tensor:
    """Log-weights (..., |F|) after losses (..., |F|); they sum to 1 again, so nothing ever overflows."""
    return (log_weights - ETA * losses).log_softmax(-1)


def mean_prediction(log_weights: Tensor, values: Tensor) -> Tensor:
    """The weighted mean (..., K) of what the candidates say, values (..., |F|, K), by log-weights (..., |F|)."""
    return (log_weights.softmax(-1)[..., None, :] @ values)[..., 0, :]
