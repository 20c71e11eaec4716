"""What is to be decided, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.encoders.base import Space
from tacit.interactions import check_action_count, check_kind


@dataclass(frozen=True)
class Problem:
    """`actions` to choose from, the kind of context each choice is made in, the kind of feedback that follows."""

    actions: int
    context: Space
    feedback: Space

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", check_action_count(self.actions))
        check_kind(self.context, Space, "context")
        check_kind(self.feedback, Space, "feedback")
