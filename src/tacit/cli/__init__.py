"""The command line: one file per command. What takes long to import is imported by the command that needs it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import tacit
from tacit.cli.demo import demo
from tacit.cli.experiment import experiment
from tacit.cli.results import results
from tacit.errors import TacitError

app = typer.Typer(
    name="tacit", help="Learns what people want from how they react.", no_args_is_help=True,
    add_completion=False, pretty_exceptions_enable=False,
    rich_markup_mode=None,
)  # fmt: skip
for command in (demo, experiment, results):
    app.command()(command)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"tacit {tacit.__version__}")
        raise typer.Exit


@app.callback()
def every(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Learns what people want from how they react."""


def main() -> None:
    """What the shell runs: what tacit refuses to do is one line, not a traceback."""
    try:
        app(prog_name="tacit")
    except TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)
        sys.exit(1)
