"""A learner as a folder: learner.json says what it is, a safetensors file beside it what it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from tacit.algorithms.ledger import Ledger
from tacit.algorithms.models import FiniteClasses, Models, Networks, best_device
from tacit.decoder import Decoder
from tacit.encoders import Category, Image, Problem, Table
from tacit.errors import CorruptFileError, InvalidInputError
from tacit.exploration import Constant, SquareRoot
from tacit.inverse import Fit, InverseTraining
from tacit.oracles import OracleTraining
from tacit.storage import Document, describe, read_folder, rebuild, write_folder

if TYPE_CHECKING:
    from tacit.algorithms.learner import Learner

FORMAT = 1
SAVED = (
    Category, Constant, Decoder, Fit, Image, InverseTraining, Networks, OracleTraining, Problem, SquareRoot, Table,
)  # fmt: skip
KINDS: dict[str, type] = {kind.__name__: kind for kind in SAVED}


def save(learner: Learner, folder: Path) -> None:
    """Write `learner` to `folder`, whole or not at all."""
    document: Document = {
        "format": FORMAT,
        "learner": type(learner).__name__,
        "seed": learner.seed,
        "problem": describe(learner.problem),
        "decoder": describe(learner.decoder),
        "settings": {name: describe(value) for name, value in learner.settings().items()},
        "models": "FiniteClasses" if isinstance(learner.models, FiniteClasses) else describe(learner.models),
        "fit": describe(learner.fit_quality),
        "decisions": learner.ledger.document(),
    }
    tensors = {f"{part}/{name}": value for part, entries in learner.parts().items() for name, value in entries.items()}
    if isinstance(learner.models, FiniteClasses):
        tensors |= {"models/f": learner.models.f, "models/phi": learner.models.phi}
    write_folder(folder, document, tensors)


def load(folder: Path, kinds: Mapping[str, Callable[..., Learner]], device: str | None = None) -> Learner:
    """The learner saved in `folder`, on `device` or the best there is; goes on with the same numbers."""
    document, tensors = read_folder(folder)
    if document.get("format") != FORMAT:
        raise CorruptFileError(
            f"{folder} was saved in format {document.get('format')!r}; this version of tacit reads format {FORMAT}"
        )
    parts: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        part, _, name = key.partition("/")
        parts.setdefault(part, {})[name] = value
    try:
        learner = _rebuilt(document, parts, kinds, device)
        learner.ledger = Ledger.restored(document["decisions"], parts["ledger"])
        learner.fit_quality = rebuild(document["fit"], KINDS)
        learner.restore(parts)
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError, InvalidInputError) as error:
        raise CorruptFileError(f"{folder} is not a learner that this version of tacit can read: {error!r}") from error
    return learner


def _rebuilt(
    document: Document, parts: dict[str, dict[str, Tensor]], kinds: Mapping[str, Callable[..., Learner]], device: str | None
) -> Learner:
    """A learner with the saved settings that has learned nothing yet."""
    settings = document["settings"]
    assert isinstance(settings, dict)
    problem = rebuild(document["problem"], KINDS)
    return kinds[str(document["learner"])](
        problem.actions, problem.context, problem.feedback,
        decoder=rebuild(document["decoder"], KINDS), models=_models(document, parts, device), seed=document["seed"],
        **{name: rebuild(value, KINDS) for name, value in settings.items()},
    )  # fmt: skip


def _models(document: Document, parts: dict[str, dict[str, Tensor]], device: str | None) -> Models:
    if document["models"] == "FiniteClasses":
        return FiniteClasses(**parts["models"])
    networks: Networks = rebuild(document["models"], KINDS)
    return replace(networks, on=device or best_device())
