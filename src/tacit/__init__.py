"""tacit learns what people want from how they react."""

from tacit.algorithms import FiniteClasses, Horizon, Learner, Models, Networks, OffPolicy, OnPolicy, TwoView, load
from tacit.decoder import Decoder
from tacit.encoders import Category, Image, Table
from tacit.errors import (
    CorruptFileError,
    DatasetError,
    DecoderWarning,
    ExperimentError,
    IdentifiabilityError,
    InvalidInputError,
    LogWarning,
    MissingExtraError,
    NotFittedError,
    SaveError,
    StorageError,
    TacitError,
    UnknownDecisionError,
    UntrustworthyDecoderError,
)  # fmt: skip
from tacit.exploration import Constant, Schedule, SquareRoot
from tacit.health import Health
from tacit.interactions import Decision, HiddenReward, Interactions
from tacit.inverse import Fit, InverseTraining
from tacit.oracles import OracleTraining

__version__ = "0.1.0"

__all__ = [
    "Category", "Constant", "CorruptFileError", "DatasetError", "Decision", "Decoder", "DecoderWarning",
    "ExperimentError", "FiniteClasses", "Fit", "Health", "HiddenReward", "Horizon", "IdentifiabilityError", "Image",
    "Interactions", "InvalidInputError", "InverseTraining", "Learner", "LogWarning", "MissingExtraError", "Models",
    "Networks", "NotFittedError", "OffPolicy", "OnPolicy", "OracleTraining", "SaveError", "Schedule", "SquareRoot",
    "StorageError", "Table", "TacitError", "TwoView", "UnknownDecisionError", "UntrustworthyDecoderError", "load",
]  # fmt: skip
