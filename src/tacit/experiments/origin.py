"""How a row came about: which revision of the code, on what versions and hardware."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

import torch

import tacit
from tacit.experiments.spec import Origin, Place

STANDS_ON = ("tacit", "torch", "numpy")


def origin(place: Place, threads: int) -> Origin:
    """Of a cell that runs on `place` with so many threads."""
    versions = {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in STANDS_ON}
    return Origin(revision(), versions, hardware(place.device, threads), place.device)


def revision(package: Path = Path(tacit.__file__).parent) -> str:
    """The git revision of the package's sources, with +changes if they differ from it; or the installed version."""
    try:
        # A virtual environment inside somebody else's repository must not pass for a checkout of ours.
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(package, "status", "--porcelain", "--", ".")
        return _git(package, "rev-parse", "--short=12", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return f"tacit {importlib.metadata.version('tacit')}"


def hardware(device: str, threads: int) -> str:
    """The processor that does the work."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    cores = os.cpu_count() or 1
    return f"{_processor()}, {cores} cores, {threads} thread{'s' * (threads > 1)}"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:  # not Linux
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str:
    finished = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return finished.stdout.strip()
