"""The inverse model of the theory: the empirical risk minimiser over a finite class, found exactly.

A candidate h is made of a reward function f and a feedback decoder phi by `decoder.posterior`. As phi is 0 or 1,
h(x, y) takes one of two values for each f and x, and the counts n(x, y, a) say all that uniform rounds say. So the
risk of all |F| |Phi| candidates is one product of matrices, and no candidate is ever written out. Where probabilities
differ by round, the losses of the two values are summed round by round instead, and the product is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from tacit.decoder import posterior
from tacit.encoders import Category
from tacit.errors import CorruptFileError, InvalidInputError, NotFittedError
from tacit.interactions import Interactions
from tacit.inverse.base import Fit, InverseModel, check_rounds, is_uniform, worth

CHUNK = 2_048  # rounds at a time, each with its losses under every f


class FiniteInverse(InverseModel):
    """The h in H = {h of (f, phi)} with the least squared loss |h(x, y) - e_a|^2; ties go to the first candidate.

    For rounds that were not drawn uniformly, h in this is the posterior under their own probabilities.

    f (|F|, X, K) expected rewards, phi (|Phi|, X, Y) of 0 and 1. Contexts and feedback are columns of indices.
    """

    def __init__(self, f: Tensor, phi: Tensor) -> None:
        check_classes(f, phi)
        self._f, self._phi = f.double(), phi.double()
        self._contexts, self._feedback = Category(f.shape[1]), Category(phi.shape[2])
        self._fitted: tuple[Tensor, Tensor] | None = None

    def fit(self, rounds: Interactions, test: Interactions | None = None) -> Fit:
        """The quality is that on `rounds`, unless there is a `test`."""
        fit = self._fit(self._checked(rounds))
        return fit if test is None else self._tested(self._checked(test))

    def _checked(self, rounds: Interactions) -> Interactions:
        check_rounds(rounds, self._shape[2])
        self._check_columns(rounds.contexts, rounds.feedback)
        return rounds

    def _tested(self, test: Interactions) -> Fit:
        assert self._fitted is not None
        return replace(_logged_fit(*self._fitted, test), held_out=True)

    def _fit(self, rounds: Interactions) -> Fit:
        if is_uniform(rounds.probabilities):
            counts = count(rounds.contexts, rounds.feedback, rounds.actions, self._shape)
            f, phi = risk_minimiser(self._f, self._phi, counts)
            self._fitted = self._f[f], self._phi[phi]
            return _fit(posterior(self._fitted[0][:, None], self._fitted[1]), counts)
        best = int(logged_risks(self._f, self._phi, rounds).flatten().argmin())
        self._fitted = self._f[best // len(self._phi)], self._phi[best % len(self._phi)]
        return _logged_fit(*self._fitted, rounds)

    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        if self._fitted is None:
            raise NotFittedError("the inverse model has not been fitted; call fit with logged rounds first")
        self._check_columns(contexts, feedback)
        f, phi = self._fitted
        contexts, feedback = contexts.long(), feedback.long()  # an index of bytes would be read as a mask
        return posterior(f[contexts], phi[contexts, feedback])

    @property
    def encoders(self) -> None:
        return None

    def tensors(self) -> dict[str, Tensor]:
        """The chosen f (X, K) and phi (X, Y); nothing before the first fit."""
        return {} if self._fitted is None else {"f": self._fitted[0], "phi": self._fitted[1]}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        if not tensors:
            self._fitted = None
            return
        if set(tensors) != {"f", "phi"}:
            raise CorruptFileError(f"a finite inverse model consists of f and phi, found {sorted(tensors)}")
        f, phi = tensors["f"], tensors["phi"]
        for name, found, own in (("f", f, self._f), ("phi", phi, self._phi)):
            if found.shape != own.shape[1:]:
                raise CorruptFileError(f"{name}: expected shape {tuple(own.shape[1:])}, found {tuple(found.shape)}")
        try:
            check_classes(f[None], phi[None])
        except InvalidInputError as error:
            raise CorruptFileError(f"a finite inverse model cannot hold these values: {error}") from error
        self._fitted = f.to(self._f), phi.to(self._phi)

    @property
    def _shape(self) -> tuple[int, int, int]:
        """How many contexts, feedbacks and actions there are: X, Y, K."""
        return self._f.shape[1], self._phi.shape[2], self._f.shape[2]

    def _check_columns(self, contexts: Tensor, feedback: Tensor) -> None:
        for space, values, name in ((self._contexts, contexts, "contexts"), (self._feedback, feedback, "feedback")):
            space.check(values, name)
            space.check_range(values, name)
        if len(contexts) != len(feedback):
            raise InvalidInputError("feedback", f"{len(feedback)} rows for {len(contexts)} contexts")


def count(contexts: Tensor, feedback: Tensor, actions: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """n(x, y, a) (..., X, Y, K), in float64, from index columns (..., n); leading axes are kept apart."""
    cells = (contexts.long() * shape[1] + feedback) * shape[2] + actions
    totals = torch.zeros(*cells.shape[:-1], math.prod(shape), dtype=torch.float64, device=cells.device)
    ones = torch.ones((), dtype=torch.float64, device=cells.device).expand(cells.shape)
    totals.scatter_add_(-1, cells, ones)
    return totals.view(*cells.shape[:-1], *shape)


def risks(f: Tensor, phi: Tensor, counts: Tensor) -> Tensor:
    """Summed loss |h(x, y) - e_a|^2 (..., |F|, |Phi|) of every candidate on counts (..., X, Y, K)."""
    given_bad, given_good = (_losses(posterior(f, f.new_full(f.shape[:2], r)), counts) for r in (0.0, 1.0))
    by_phi = phi.flatten(1).T
    return given_bad @ (1 - by_phi) + given_good @ by_phi


def logged_risks(f: Tensor, phi: Tensor, rounds: Interactions) -> Tensor:
    """As `risks`, with the posterior under the probabilities that each round's action was drawn from: (|F|, |Phi|)."""
    shape = f.shape[1], phi.shape[2]
    totals = f.new_zeros(2, len(f), math.prod(shape))
    for start in range(0, len(rounds), CHUNK):
        part = rounds[slice(start, start + CHUNK)]
        contexts = part.contexts.long()
        cells = contexts * shape[1] + part.feedback
        expected, p = f[:, contexts], part.probabilities.to(f)
        for r in (0, 1):
            h = posterior(expected, f.new_full(expected.shape[:2], r), p)
            totals[r].index_add_(1, cells, _loss_of(h, part.actions))
    by_phi = phi.flatten(1).T
    return totals[0] @ (1 - by_phi) + totals[1] @ by_phi


def risk_minimiser(f: Tensor, phi: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Which f and which phi (...) make the empirical risk minimiser on counts (..., X, Y, K)."""
    best = risks(f, phi, counts).flatten(-2).argmin(-1)
    return best // len(phi), best % len(phi)


def check_classes(f: Tensor, phi: Tensor) -> None:
    """Refuse classes from which no posterior can be made."""
    if f.ndim != 3 or phi.ndim != 3 or 0 in (*f.shape, *phi.shape) or f.shape[1] != phi.shape[1]:
        raise InvalidInputError(
            "f, phi", f"expected shapes (|F|, X, K) and (|Phi|, X, Y), got {tuple(f.shape)} and {tuple(phi.shape)}"
        )
    # The negation catches NaN, which no comparison accepts.
    if not (f.is_floating_point() and bool(((f >= 0) & (f <= 1)).all())):
        raise InvalidInputError("f", "expected rewards are numbers from 0 to 1")
    if bool(((f.sum(-1) <= 0) | (f.sum(-1) >= f.shape[-1])).any()):
        raise InvalidInputError("f", "in some context reward 1, or reward 0, is impossible for every action")
    if not (phi.is_floating_point() and bool(((phi == 0) | (phi == 1)).all())):
        raise InvalidInputError("phi", "a feedback decoder answers 0 or 1, stored as floating-point numbers")


def _losses(h: Tensor, counts: Tensor) -> Tensor:
    """Summed loss (..., |F|, X Y) of answering h (|F|, X, K) whatever the feedback, by context and feedback."""
    rounds = counts.sum(-1, keepdim=True)
    # |h - e_a|^2 = |h|^2 + 1 - 2 h_a
    square = (h.square().sum(-1) + 1).T[:, None]
    return (rounds * square - 2 * counts @ h.permute(1, 2, 0)).flatten(-3, -2).mT


def _fit(h: Tensor, counts: Tensor) -> Fit:
    """How far h (X, Y, K) is below chance on the rounds counted (X, Y, K)."""
    rounds = counts.sum()
    share = counts / rounds
    losses = h.square().sum(-1, keepdim=True) + 1 - 2 * h
    loss = (share * losses).sum()
    variance = (share * (losses - loss).square()).sum()
    chance = 1 - 1 / h.shape[-1]
    return Fit(float(loss), chance, float((variance / rounds).sqrt()), int(rounds), held_out=False)


def _loss_of(h: Tensor, actions: Tensor) -> Tensor:
    """|h - e_a|^2 (..., n) of answers h (..., n, K) to the actions taken (n,)."""
    taken = actions.long()[:, None].expand(*h.shape[:-1], 1)
    losses: Tensor = h.square().sum(-1) + 1 - 2 * h.gather(-1, taken)[..., 0]
    # Where a candidate says that no action with a chance could have led here, there is no posterior: the highest loss.
    return torch.where(losses.isnan(), 2.0, losses)


def _logged_fit(f: Tensor, phi: Tensor, rounds: Interactions) -> Fit:
    """How far the candidate f (X, K), phi (X, Y) is below the answer p, round by round."""
    contexts, feedback, p = rounds.contexts.long(), rounds.feedback.long(), rounds.probabilities.to(f)
    losses = _loss_of(posterior(f[contexts], phi[contexts, feedback], p), rounds.actions)
    chance = _loss_of(p, rounds.actions)
    error = (losses - chance).std(unbiased=False) / len(losses) ** 0.5
    return Fit(
        float(losses.mean()), float(chance.mean()), float(error), len(losses), held_out=False,
        worth=worth(rounds.probabilities),
    )  # fmt: skip
