"""A learner as a folder: learner.json says what it is, a safetensors file beside it what it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from torch import Tensor

from tacit.algorithms.ledger import Ledger
from tacit.algorithms.models import FiniteClasses, Models, Networks, best_device
from tacit.decoder import Decoder
from tacit.encoders import Category, Image, Problem, Space, Table
from tacit.errors import CorruptFileError, SaveError
from tacit.exploration import Constant, SquareRoot
from tacit.inverse import Fit, InverseTraining
from tacit.oracles import OracleTraining
from tacit.storage import DOCUMENT, Document, Json, describe, read_folder, rebuild, write_folder

if TYPE_CHECKING:
    from tacit.algorithms.learner import Learner

Kind = TypeVar("Kind")
Kinds: TypeAlias = Mapping[str, Callable[..., "Learner"]]
Parts: TypeAlias = dict[str, dict[str, Tensor]]

FORMAT = 1
SAVED = (
    Category, Constant, Decoder, Fit, Image, InverseTraining, Networks, OracleTraining, Problem, SquareRoot, Table,
)  # fmt: skip
KINDS: dict[str, type] = {kind.__name__: kind for kind in SAVED}


def save(learner: Learner, folder: Path) -> None:
    """Write `learner` to `folder`, whole or not at all."""
    finite = learner.models if isinstance(learner.models, FiniteClasses) else None
    document: Document = {
        "format": FORMAT,
        "learner": type(learner).__name__,
        "seed": learner.seed,
        "problem": _described(learner.problem),
        "decoder": _described(learner.decoder),
        "settings": {name: _described(value) for name, value in learner.settings().items()},
        "models": "FiniteClasses" if finite else _described(learner.models),
        "fit": _described(learner.fit_quality),
        "decisions": learner.ledger.document(),
    }
    tensors = {f"{part}/{name}": value for part, entries in learner.parts().items() for name, value in entries.items()}
    if finite:
        tensors |= {"models/f": finite.f, "models/phi": finite.phi}
    document["names"] = [*sorted(tensors)]
    write_folder(folder, document, tensors)


def load(folder: Path, kinds: Kinds, device: str | None = None) -> Learner:
    """The learner saved in `folder`, on `device` or the best there is; goes on with the same numbers."""
    document, tensors = read_folder(folder)
    if document.get("format") != FORMAT:
        raise CorruptFileError(
            f"{folder} was saved in format {document.get('format')!r}; this version of tacit reads format {FORMAT}"
        )
    _check_names(document, tensors, folder)
    parts: Parts = {}
    for key, value in tensors.items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise CorruptFileError(f"{folder}: {key} holds numbers that are not finite; go back to an earlier save")
        part, _, name = key.partition("/")
        parts.setdefault(part, {})[name] = value
    try:
        learner = _rebuilt(document, parts, kinds, device)
        learner.ledger = Ledger.restored(document["decisions"], parts["ledger"])
        learner.fit_quality = None if document["fit"] is None else _rebuilt_as(Fit, document["fit"])
        learner.restore(parts)
    except (
        KeyError, TypeError, AttributeError, IndexError, RuntimeError, ValueError, OverflowError, MemoryError
    ) as error:  # fmt: skip
        raise CorruptFileError(f"{folder} is not a learner that this version of tacit can read: {error!r}") from error
    return learner


def _check_names(document: Document, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse tensors that are not those of the learner: what is missing may only be missed much later."""
    names = document.get("names")
    if not isinstance(names, list):
        raise CorruptFileError(f"{folder / DOCUMENT} does not say which tensors belong to it")
    said = {str(name) for name in names}
    for problem, found in (("lack", said - tensors.keys()), ("have unknown", tensors.keys() - said)):
        if found:
            which = ", ".join(sorted(found))
            raise CorruptFileError(f"{folder}: the tensors {problem} {which}; go back to an earlier save")


def _described(value: object) -> Json:
    """`value` as JSON; refused unless `load` could build it again, or a save would be lost without a word."""
    try:
        document = describe(value)
        rebuild(document, KINDS)
    except (TypeError, CorruptFileError) as error:
        raise SaveError(f"a learner with {value!r} cannot be saved, as it could not be loaded: {error}") from error
    return document


def _rebuilt(document: Document, parts: Parts, kinds: Kinds, device: str | None) -> Learner:
    """A learner with the saved settings that has learned nothing yet."""
    settings = document["settings"]
    if not isinstance(settings, dict):
        raise TypeError(f"settings: expected names and values, found {settings!r}")
    problem = _rebuilt_as(Problem, document["problem"])
    if not (isinstance(problem.context, Space) and isinstance(problem.feedback, Space)):
        raise TypeError(f"expected kinds of context and feedback, found {problem!r}")
    return kinds[str(document["learner"])](
        problem.actions, problem.context, problem.feedback,
        decoder=_rebuilt_as(Decoder, document["decoder"]), models=_models(document, parts, device),
        seed=document["seed"], **{name: rebuild(value, KINDS) for name, value in settings.items()},
    )  # fmt: skip


def _models(document: Document, parts: Parts, device: str | None) -> Models:
    if document["models"] == "FiniteClasses":
        return FiniteClasses(**{name: table.to(device or "cpu") for name, table in parts["models"].items()})
    return replace(_rebuilt_as(Networks, document["models"]), on=device or best_device())


def _rebuilt_as(kind: type[Kind], document: Json) -> Kind:
    value = rebuild(document, KINDS)
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, found {value!r}")
    return value
