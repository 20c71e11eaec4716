"""Plots as files: dark ink on soft paper, which reads well on light pages and on dark ones."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

from tacit.errors import MissingExtraError
from tacit.experiments.spec import Curve, Plot
from tacit.storage import write_bytes

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatter, NullLocator
except ImportError as missing:
    raise MissingExtraError("matplotlib", "plots") from missing

# After Okabe and Ito, whose colours colour-blind people tell apart; the last is darkened, so that each has a contrast
# of 3 or more to PAPER. Once they are used up they come again with another line.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a8517f")
STYLES = ("-", (0, (5, 1.5, 1, 1.5)))
DASHED = (0, (4, 2))
PAPER, INK = "#f6f7f9", "#2b3038"
SIZE = (7.2, 4.2)  # inches
DOTS = 160  # to the inch
MOST_TICKS = 8
PLAIN = FuncFormatter(lambda value, _: f"{value:,.10g}")
SETTINGS: Any = {
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.titlesize": 13, "axes.labelsize": 12, "xtick.labelsize": 11, "ytick.labelsize": 11, "legend.fontsize": 11,
    "axes.spines.top": False, "axes.spines.right": False, "grid.color": INK, "grid.alpha": 0.15,
    "figure.facecolor": PAPER, "axes.facecolor": PAPER,
    "figure.constrained_layout.w_pad": 0.14, "figure.constrained_layout.h_pad": 0.1,
    "svg.fonttype": "path", "svg.hashsalt": "tacit",
}  # fmt: skip


def save(plot: Plot, folder: Path) -> list[Path]:
    """`folder/<name>.png` and `.svg`; the same plot gives the same bytes."""
    paths = []
    with mpl.rc_context(SETTINGS):
        figure = _figure(plot)
        for kind in ("png", "svg"):
            drawn = io.BytesIO()
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(drawn, format=kind, dpi=DOTS, metadata=metadata)
            paths.append(folder / f"{plot.name}.{kind}")
            write_bytes(paths[-1], drawn.getvalue())
    return paths


def _figure(plot: Plot) -> Figure:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    if plot.logarithmic:
        _logarithmic(axes, plot)
    axes.xaxis.set_major_formatter(PLAIN)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.grid(visible=True)
    looks = itertools.product(STYLES, COLOURS)
    for curve in plot.curves:
        _draw(axes, curve, *next(looks))
    if len(plot.curves) > 1:
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def _logarithmic(axes: Axes, plot: Plot) -> None:
    """Both axes; where few points were measured, the ticks are at these."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
    measured = sorted({float(x) for curve in plot.curves for x in curve.x})
    if len(measured) <= MOST_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(measured))
        axes.xaxis.set_minor_locator(NullLocator())


def _draw(axes: Axes, curve: Curve, style: object, colour: str) -> None:
    line = DASHED if curve.dashed else style
    axes.plot(curve.x, curve.y, color=colour, linestyle=line, linewidth=2, label=curve.label)
    if len(curve.low):
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
