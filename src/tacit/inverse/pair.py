"""A network that reads a context and a feedback together, and learns from which of them belong together."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.encoders.base import WIDTH, Space
from tacit.training import uniforms

SHARED = 32  # the width in which contexts and feedback are compared


class PairNetwork(nn.Module):
    """From contexts (n, ...) and feedback (n, ...) to `outputs` numbers each: an encoder for either, joined.

    With `contrast` it has two more layers, which only `contrast_loss` uses.
    """

    def __init__(self, context: Space, feedback: Space, outputs: int, contrast: bool) -> None:
        super().__init__()
        self.context = context.encoder()
        self.feedback = feedback.encoder()
        self.head = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))
        self.compared = nn.ModuleList(nn.Linear(WIDTH, SHARED) for _ in range(2 if contrast else 0))

    def prepare(self, contexts: Tensor, feedback: Tensor) -> None:
        self.context.prepare(contexts)
        self.feedback.prepare(feedback)

    def forward(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        return self.joined(self.context(contexts), self.feedback(feedback))

    def joined(self, x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
        """From vectors (n, WIDTH) of both; `mask` (n, WIDTH) multiplies the units between, for dropout."""
        first, bend, last = self.head
        hidden = bend(first(torch.cat([x, y], 1)))
        logits: Tensor = last(hidden if mask is None else hidden * mask)
        return logits

    def contrast_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """How badly the feedback of each context is told from that of the others in the batch (InfoNCE, both ways).

        Every round teaches this, whatever its action and reward, while nine actions in ten are noise to h. What tells
        feedback apart by context is what its meaning depends on.
        """
        on_x, on_y = self.compared
        scores = on_x(x) @ on_y(y).T / SHARED**0.5
        # The diagonal by hand: cross_entropy with indices adds its gradient in no fixed order on a GPU.
        right = scores.diagonal()
        loss: Tensor = ((scores.logsumexp(0) - right).mean() + (scores.logsumexp(1) - right).mean()) / 2
        return loss


class Moved:
    """Small random changes to a batch of pairs, each from numbers drawn beforehand: a step must not draw by itself."""

    def __init__(self, context: Space, feedback: Space, augment: bool, dropout: float) -> None:
        self._spaces = context, feedback
        self._widths = [space.noise_width if augment else 0 for space in self._spaces] + [WIDTH if dropout else 0]
        self._dropout = dropout

    def noise(self, count: int, source: torch.Generator, device: torch.device) -> list[Tensor]:
        """Numbers for `count` pairs: for contexts, for feedback, for dropout; empty where nothing is changed."""
        return [uniforms(count, width, source, device) for width in self._widths]

    def pairs(self, x: Tensor, y: Tensor, x_noise: Tensor, y_noise: Tensor) -> tuple[Tensor, Tensor]:
        context, feedback = self._spaces
        return (
            context.augment(x, x_noise) if x_noise.numel() else x,
            feedback.augment(y, y_noise) if y_noise.numel() else y,
        )

    def mask(self, noise: Tensor) -> Tensor | None:
        if not noise.numel():
            return None
        return (noise >= self._dropout).float() / (1 - self._dropout)


def binary_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Log loss (n,) of a yes or no, labels within [0, 1]."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
