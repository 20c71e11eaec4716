"""One seed makes named, independent random generators, which are passed in, never global."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tacit.errors import InvalidInputError


def generator(seed: int, name: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator that depends on `seed` and `name` alone."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidInputError("seed", f"expected an integer >= 0, got {seed!r}")
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:7], "big"))


@contextmanager
def initialisation(source: torch.Generator) -> Iterator[None]:
    """Run torch's layer initialisers, which only know the CPU's global generator, from `source`."""
    seed = int(torch.randint(2**31, (1,), generator=source, device=source.device).item())
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would reach the GPUs' generators as well, and those are not given back.
        torch.default_generator.manual_seed(seed)
        yield
