"""Images: two convolutions, as in the paper's experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.encoders.base import WIDTH, Encoder, Space
from tacit.errors import InvalidInputError
from tacit.interactions import check_finite, check_positive_count, check_size

SMALLEST = 4  # two 2x2 pools leave one pixel of it
BRIGHTEST = 1e6  # brighter pixels overflow in training
ROOMY = 16  # from this size on, 5x5 convolutions need no padding

MOST_MOVED = (0.25, 0.1, 1 / 7, 1 / 7)  # radians; share of the size; of half the width; of half the height


@dataclass(frozen=True)
class Image(Space):
    """height x width pixels: bytes 0..255, or numbers around 0..1; (n, h, w), or (n, channels, h, w) from two on."""

    height: int
    width: int
    channels: int = 1

    def __post_init__(self) -> None:
        for name in ("height", "width", "channels"):
            check_positive_count(getattr(self, name), name)
        if min(self.height, self.width) < SMALLEST:
            raise InvalidInputError(
                "Image", f"needs at least {SMALLEST} x {SMALLEST} pixels, got {self.height} x {self.width}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, self.width) if self.channels == 1 else (self.channels, self.height, self.width)

    def check(self, values: Tensor, name: str) -> None:
        self.check_shape(values, name)
        if values.dtype != torch.uint8 and not values.is_floating_point():
            raise InvalidInputError(name, f"pixels are bytes or floating point numbers, got {values.dtype}")

    def check_range(self, values: Tensor, name: str) -> None:
        check_finite(values, name)
        check_size(values, BRIGHTEST, name)

    def encoder(self) -> Encoder:
        return ImageEncoder(self)

    @property
    def noise_width(self) -> int:
        return 4

    def augment(self, values: Tensor, noise: Tensor) -> Tensor:
        """Turned by up to a quarter radian, scaled by up to a tenth, shifted by up to a fourteenth."""
        # Plain numbers, because a table of them could not be copied to the GPU inside a CUDA graph.
        angle, scale, right, down = (
            most * (2 * column - 1) for most, column in zip(MOST_MOVED, noise.unbind(1), strict=True)
        )
        cos, sin = angle.cos() * (1 + scale), angle.sin() * (1 + scale)
        # The grid runs from -1 to 1 along long and short sides alike: without the ratio oblong images would be sheared.
        ratio = self.height / self.width
        where = torch.stack([torch.stack([cos, -sin * ratio, right], 1), torch.stack([sin / ratio, cos, down], 1)], 1)
        pixels = self.pixels(values)
        grid = functional.affine_grid(where, list(pixels.shape), align_corners=False)
        moved = functional.grid_sample(pixels, grid, align_corners=False)
        return moved if self.channels > 1 else moved[:, 0]

    def alike(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """All bytes, or all numbers around 0..1: joined as they are, bytes would become numbers up to 255."""
        if all(batch.dtype == torch.uint8 for batch in batches):
            return list(batches)
        return [numbers(batch) for batch in batches]

    def pixels(self, values: Tensor) -> Tensor:
        """Numbers around 0..1, (n, channels, h, w)."""
        return numbers(values) if self.channels > 1 else numbers(values)[:, None]


def numbers(values: Tensor) -> Tensor:
    """Pixels as numbers around 0..1."""
    return values.float() / 255 if values.dtype == torch.uint8 else values.float()


class ImageEncoder(Encoder):
    """conv10, pool, conv20, pool, fully connected.

    Small on purpose: nine actions in ten are mere noise to an inverse model, and a larger network learns the noise by
    heart before it learns the rest: docs/decisions/0001-small-image-encoder.md.
    """

    def __init__(self, image: Image) -> None:
        super().__init__()
        self.image = image
        padding = 0 if min(image.height, image.width) >= ROOMY else 2
        height, width = (
            ((side + 2 * padding - 4) // 2 + 2 * padding - 4) // 2 for side in (image.height, image.width)
        )
        self.layers = nn.Sequential(
            nn.Conv2d(image.channels, 10, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(10, 20, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU(),
            nn.Flatten(), nn.Linear(20 * height * width, WIDTH), nn.ReLU(),
        )  # fmt: skip
        # Channels last is the faster layout for small convolutions on a CPU.
        nn.Module.to(self.layers, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def prepare(self, values: Tensor) -> None:
        """Pixels have a scale of their own."""

    def forward(self, values: Tensor) -> Tensor:
        pixels = self.image.pixels(values).contiguous(memory_format=torch.channels_last)
        encoded: Tensor = self.layers(pixels)
        return encoded
