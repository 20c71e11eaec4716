"""Checks the size limits of the house: long functions, files, classes and constructors are split, not excused.

Run from anywhere: `python tools/sizes.py`. Prints `file:line: problem` for each excess and fails if there is one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "tests", "benchmarks", "tools")

FUNCTION_LINES = 40  # without the signature and the docstring
FILE_LINES = 400
PUBLIC_METHODS = 15  # properties included
CONSTRUCTOR_PARAMETERS = 8  # without self; a record holds the rest

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(root: Path) -> int:
    """Check every Python file under the folders of `root`; 1 if anything is too large."""
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    problems = [f"{path.relative_to(root)}:{problem}" for path in files for problem in check(path)]
    for problem in problems:
        print(problem)
    print(f"sizes: {len(problems)} over the limit" if problems else f"sizes: {len(files)} files within the limits")
    return int(bool(problems))


def check(path: Path) -> Iterator[str]:
    """Everything in one file that is too large, as `line: problem`."""
    text = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{error.lineno}: cannot be parsed: {error.msg}"
        return
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"1: the file has {_excess(lines, FILE_LINES, 'lines')}"
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield from _check_function(node)
        elif isinstance(node, ast.ClassDef):
            yield from _check_class(node)


def _check_function(function: Function) -> Iterator[str]:
    lines = body_lines(function)
    if lines > FUNCTION_LINES:
        yield f"{function.lineno}: function `{function.name}` has {_excess(lines, FUNCTION_LINES, 'lines')}"


def _check_class(node: ast.ClassDef) -> Iterator[str]:
    methods = {item.name: item for item in node.body if isinstance(item, Function)}  # overloads count once
    public = sum(not name.startswith("_") for name in methods)
    if public > PUBLIC_METHODS:
        yield f"{node.lineno}: class `{node.name}` has {_excess(public, PUBLIC_METHODS, 'public methods')}"
    constructor = methods.get("__init__")
    if constructor and (count := parameters(constructor)) > CONSTRUCTOR_PARAMETERS:
        limit = _excess(count, CONSTRUCTOR_PARAMETERS, "parameters")
        yield f"{constructor.lineno}: the constructor of `{node.name}` has {limit}"


def body_lines(function: Function) -> int:
    """Lines from the first statement after the docstring to the end, comments and blank lines included."""
    documented = ast.get_docstring(function, clean=False) is not None
    if documented and len(function.body) == 1:
        return 0
    before = function.body[0].end_lineno if documented else function.body[0].lineno - 1
    return (function.end_lineno or 0) - (before or 0)  # the parser always sets both


def parameters(function: Function) -> int:
    """Parameters without self; *args and **kwargs count as one each."""
    signature = function.args
    named = [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]
    return len(named) - 1 + (signature.vararg is not None) + (signature.kwarg is not None)


def _excess(found: int, limit: int, what: str) -> str:
    return f"{found} {what}, at most {limit} are allowed"


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
