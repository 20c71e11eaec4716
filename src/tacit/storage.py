"""Safe files: weights as safetensors, everything else as JSON, and a save that fails leaves the old one standing."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from tacit.errors import CorruptFileError, SaveError

Document: TypeAlias = dict[str, "Json"]
Json: TypeAlias = bool | int | float | str | list["Json"] | Document | None

DOCUMENT = "learner.json"
TENSORS = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
LEFT_BEHIND = re.compile(rf"\.({TENSORS.pattern}|{re.escape(DOCUMENT)})\.\w+")  # by a save that was killed


def write_bytes(path: Path, content: bytes) -> None:
    """Write all of a file or nothing: what stood there stands until the new content is on the disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_and_rename(path, content)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = getattr(error, "strerror", None) or error
        raise SaveError(f"could not write {path}: {reason}; nothing was changed there") from error


def _write_and_rename(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:  # an interrupt leaves nothing lying about, either
        _discard(temporary)
        raise


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def write_json(path: Path, document: Json) -> None:
    text = json.dumps(document, indent=2, allow_nan=False)
    write_bytes(path, f"{text}\n".encode())


def read_json(path: Path) -> Json:
    try:
        document: Json = json.loads(_content(path))
    except FileNotFoundError as error:
        raise CorruptFileError(f"{path} does not exist") from error
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"{path} is not complete JSON ({error}): it is truncated or was altered") from error
    return document


def _content(path: Path) -> bytes:
    """All of a plain file: a device or a pipe might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file")
    return path.read_bytes()


def write_folder(folder: Path, document: Document, tensors: Mapping[str, Tensor]) -> None:
    """A document and its tensors as one: the document is replaced last and names the tensors it belongs to."""
    # Copied, because the format refuses tensors that share memory, as a table and a row of it do.
    content = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    weights = folder / f"tensors-{digest[:16]}.safetensors"
    unchanged = os.path.exists(weights)  # noqa: PTH110 - a name that no file can have is for write_bytes to refuse
    write_bytes(weights, content)
    try:
        write_json(folder / DOCUMENT, {**document, "tensors": weights.name, "sha256": digest})
    except BaseException:
        if not unchanged:  # else the old document needs it
            _discard(weights)
        raise
    for old in folder.iterdir():
        if (TENSORS.fullmatch(old.name) and old != weights) or LEFT_BEHIND.fullmatch(old.name):
            _discard(old)


def read_folder(folder: Path) -> tuple[Document, dict[str, Tensor]]:
    """What `write_folder` wrote, or a CorruptFileError that says which file is wrong."""
    document = read_json(folder / DOCUMENT)
    if not isinstance(document, dict) or not TENSORS.fullmatch(str(document.get("tensors"))):
        raise CorruptFileError(f"{folder / DOCUMENT} was not written by tacit")
    path = folder / str(document["tensors"])
    try:
        content = _content(path)
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != document.get("sha256"):
        raise CorruptFileError(f"{path} is truncated or was altered: its checksum is not the one in {DOCUMENT}")
    try:
        return document, load(content)
    except SafetensorError as error:
        raise CorruptFileError(f"{path} is not a safetensors file: {error}") from error


def load_module(module: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Put saved weights into a network, or say that they are of another one."""
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise CorruptFileError(f"the saved {what} does not fit its description: {error}") from error


def describe(value: object) -> Json:
    """A frozen dataclass, with what it holds, as JSON: its kind and its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        entries = {field.name: describe(getattr(value, field.name)) for field in fields(value) if field.init}
        return {"kind": type(value).__name__, **entries}
    if isinstance(value, float) and not math.isfinite(value):
        return {"kind": "float", "text": str(value)}  # JSON has no word for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def rebuild(document: Json, kinds: Mapping[str, Callable[..., Any]]) -> Any:
    """What `describe` was given; only the kinds named are built."""
    if not isinstance(document, dict):
        return document
    entries = {name: rebuild(value, kinds) for name, value in document.items() if name != "kind"}
    name = document.get("kind")
    kind = _number if name == "float" else kinds.get(str(name))
    if kind is None:
        raise CorruptFileError(f"unknown kind {name!r}; this version knows {', '.join(sorted(kinds))}")
    try:
        return kind(**entries)
    except (TypeError, ValueError) as error:
        raise CorruptFileError(f"{name} cannot be rebuilt: {error}") from error


def _number(text: str) -> float:
    return float(text)
