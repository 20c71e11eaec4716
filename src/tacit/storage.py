"""Safe files: weights as safetensors, everything else as JSON, and a save that fails leaves the old one standing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
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


def write_bytes(path: Path, content: bytes) -> None:
    """Write all of a file or nothing: what stood there stands until the new content is on the disk."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise SaveError(f"could not write {path}: {error.strerror or error}; nothing was changed there") from error


def write_json(path: Path, document: Json) -> None:
    text = json.dumps(document, indent=2, allow_nan=False)
    write_bytes(path, f"{text}\n".encode())


def read_json(path: Path) -> Json:
    try:
        document: Json = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise CorruptFileError(f"{path} does not exist") from error
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CorruptFileError(f"{path} is not complete JSON ({error}): it is truncated or was altered") from error
    return document


def write_folder(folder: Path, document: Document, tensors: Mapping[str, Tensor]) -> None:
    """A document and its tensors as one: the document is replaced last and names the tensors it belongs to."""
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    weights = f"tensors-{digest[:16]}.safetensors"
    write_bytes(folder / weights, content)
    write_json(folder / DOCUMENT, {**document, "tensors": weights, "sha256": digest})
    for old in folder.glob("tensors-*.safetensors"):
        if old.name != weights:
            with contextlib.suppress(OSError):
                old.unlink()


def read_folder(folder: Path) -> tuple[Document, dict[str, Tensor]]:
    """What `write_folder` wrote, or a CorruptFileError that says which file is wrong."""
    document = read_json(folder / DOCUMENT)
    if not isinstance(document, dict) or not isinstance(document.get("tensors"), str):
        raise CorruptFileError(f"{folder / DOCUMENT} was not written by tacit")
    path = folder / Path(str(document["tensors"])).name
    try:
        content = path.read_bytes()
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
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def rebuild(document: Json, kinds: Mapping[str, type]) -> Any:
    """What `describe` was given; only the kinds named are built."""
    if not isinstance(document, dict):
        return document
    entries = {name: rebuild(value, kinds) for name, value in document.items() if name != "kind"}
    kind = kinds.get(str(document.get("kind")))
    if kind is None:
        raise CorruptFileError(f"unknown kind {document.get('kind')!r}; this version knows {', '.join(sorted(kinds))}")
    try:
        return kind(**entries)
    except (TypeError, ValueError) as error:
        raise CorruptFileError(f"{kind.__name__} cannot be rebuilt: {error}") from error
