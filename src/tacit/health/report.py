"""What a check says, and all checks together: a severity, what was found, what to do."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tacit.errors import InvalidInputError
from tacit.health.statistics import LEVEL

Severity: TypeAlias = Literal["ok", "watch", "broken"]
SEVERITIES: tuple[Severity, ...] = ("ok", "watch", "broken")
VERDICTS = {
    "ok": "nothing speaks against the decoded reward",
    "watch": "do not rely on the decoded reward before this is cleared up",
    "broken": "do not act on the decoded reward",
}
WIDTH = 110


@dataclass(frozen=True)
class Check:
    """One question: how bad it is, what was found, what to do; `effect` is how large it is, where there is a number."""

    name: str
    severity: Severity
    finding: str
    advice: str = ""
    effect: float | None = None

    def __str__(self) -> str:
        text = f"{self.finding}. {self.advice}." if self.severity != "ok" and self.advice else f"{self.finding}."
        head = f"  {self.severity:<7} {self.name:<12} "
        return textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


@dataclass(frozen=True)
class Health:
    """Whether the decoded reward can be trusted, as far as observed data tells; printed, it reads as a report.

    `rounds` were learned from; the checks looked at `uniform` uniformly drawn ones and at the `latest` ones.
    """

    checks: tuple[Check, ...]
    rounds: int
    uniform: int
    latest: int

    @property
    def verdict(self) -> Severity:
        """The worst that any check says."""
        return max((check.severity for check in self.checks), key=SEVERITIES.index)

    @property
    def spoke(self) -> tuple[str, ...]:
        """The names of the checks that found something, the worst first."""
        return tuple(check.name for check in self._worst_first() if check.severity != "ok")

    def __getitem__(self, name: str) -> Check:
        """The check of that name."""
        named = {check.name: check for check in self.checks}
        if name not in named:
            raise InvalidInputError("name", f"there is no check {name!r} in this report; there are {', '.join(named)}")
        return named[name]

    def __str__(self) -> str:
        lines = [f"health: {self.verdict}, {VERDICTS[self.verdict]}"]
        lines += [
            f"  {self.rounds:,} rounds; looked at {self.uniform:,} uniform ones and the latest {self.latest:,}. If all "
            f"is well, at most {LEVEL:.0%} of such reports raise an alarm."
        ]
        return "\n".join([*lines, *map(str, self._worst_first())])

    def _worst_first(self) -> list[Check]:
        return sorted(self.checks, key=lambda check: -SEVERITIES.index(check.severity))
