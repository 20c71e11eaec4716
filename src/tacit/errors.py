"""Every error and warning that tacit raises.

TacitError
├── InvalidInputError (also ValueError)   an argument, an array or a setting is wrong
│   └── IdentifiabilityError              alpha, theta and K cannot be told apart from their opposite
├── UnknownDecisionError                  feedback for a decision this learner never made
├── NotFittedError                        asked before there was anything to answer with
├── UntrustworthyDecoderError             the feedback does not tell which action was taken
├── StorageError
│   ├── CorruptFileError                  a model folder or a result file is damaged or not ours
│   └── SaveError                         nothing was written; what stood there before still stands
├── DatasetError                          a data set is missing, truncated or not what it should be
├── ExperimentError                       an experiment cannot be run or its results cannot be read
└── MissingExtraError                     an optional library is not installed

DecoderWarning (UserWarning)              the decoder cannot be trusted yet; the learner keeps exploring
LogWarning (UserWarning)                  a part of a log was left out, or counts for less than it should
"""

from __future__ import annotations


class TacitError(Exception):
    """Anything that tacit refuses to do."""


class InvalidInputError(TacitError, ValueError):
    """An argument is wrong: says which, what was found, and what was expected."""

    # Exceptions are rebuilt from `args` where they cross from one process to another, so these are the parameters.
    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.argument = argument
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}"


class IdentifiabilityError(InvalidInputError):
    """The identifiability assumption of the paper (Assumption 3) cannot hold."""


class UnknownDecisionError(TacitError):
    """Feedback was given for a decision that this learner did not make."""


class NotFittedError(TacitError):
    """A result was asked for before anything was learned."""


class UntrustworthyDecoderError(TacitError):
    """The inverse model is no better than chance, so no reward can be decoded."""


class StorageError(TacitError):
    """A file could not be read or written."""


class CorruptFileError(StorageError):
    """A file is truncated, altered, or was not written by tacit."""


class SaveError(StorageError):
    """Saving failed; the file that stood there before is untouched."""


class DatasetError(TacitError):
    """A data set could not be found, fetched, or does not contain what it should."""


class ExperimentError(TacitError):
    """An experiment cannot be run, or its results cannot be read."""


class MissingExtraError(TacitError):
    """An optional library is missing; the message says how to install it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(library, extra)
        self.library = library
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.library} is not installed. Install it with: pip install 'tacit[{self.extra}]'"


class DecoderWarning(UserWarning):
    """The decoder cannot be trusted yet; the learner keeps exploring uniformly."""


class LogWarning(UserWarning):
    """A part of a log was left out, or counts for less than it should."""
