"""Can the decoded reward be trusted? From observed data alone: what can go wrong with a decoder, and how it shows."""

from __future__ import annotations

from tacit.health.decoding import ALL
from tacit.health.evidence import Evidence, Subject
from tacit.health.report import Check, Health
from tacit.health.sample import Sample

__all__ = ["Check", "Health", "Sample", "Subject", "examine"]


def examine(subject: Subject, sample: Sample) -> Health:
    """All checks of a learner on the rounds it kept; changes neither."""
    kept = sample.kept()
    if kept is None:
        nothing = Check("rounds", "watch", "nothing was learned from yet", "Give feedback to decisions first")
        return Health((nothing,), 0, 0, 0)
    evidence = Evidence(subject, sample, kept)
    return Health(
        tuple(check(evidence) for check in ALL), sample.seen, len(evidence.uniform), len(evidence.latest)
    )
