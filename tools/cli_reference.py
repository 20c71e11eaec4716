"""Writes docs/reference/cli.md from the commands themselves; a test fails while the page says anything else.

Run from anywhere: `python tools/cli_reference.py`.
"""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer

from tacit.cli import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

HEAD = """# Command line

<!-- Written by `python tools/cli_reference.py` from the commands; what is changed here by hand is lost. -->

`tacit --help` lists the commands, `tacit COMMAND --help` the options of one, `tacit --version` says which version this
is. The commands draw plots and need data: `pip install '.[experiments]'` in the checkout, unless `make` installed them,
in `.venv/bin/tacit`.

What tacit refuses to do is said in one line on standard error, with exit code 1, and a wrong command line with exit
code 2. A command stopped with Ctrl-C ends with exit code 130.
"""


def page() -> str:
    """The whole page."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return "\n".join([HEAD, *(section(name, command) for name, command in sorted(commands.items()))])


def section(name: str, command: Any) -> str:
    """A command: what it does, and a table of what it takes."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join(["tacit", name, *(argument.metavar for argument in arguments)])
    rows = "\n".join(row(parameter) for parameter in command.params)
    return f"## {usage}\n\n{cleandoc(command.help)}\n\n| option | meaning | default |\n|---|---|---|\n{rows}\n"


def row(parameter: Any) -> str:
    """An option or argument, as a line of the table."""
    value = "" if getattr(parameter, "is_flag", False) else f" {parameter.metavar}"
    called = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0] + value
    default = f"`{parameter.default}`" if parameter.default not in (None, False) else ""
    return f"| `{called}` | {parameter.help} | {default} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
