"""How well a policy does: on hidden reward, where an environment has it, and on the decoded reward of a log."""

from tacit.evaluation.hidden_value import DecoderError, HiddenInterval, decoder_error, hidden_interval
from tacit.evaluation.off_policy import Estimate, doubly_robust, ips, self_normalised

__all__ = [
    "DecoderError", "Estimate", "HiddenInterval", "decoder_error", "doubly_robust", "hidden_interval", "ips",
    "self_normalised",
]  # fmt: skip
