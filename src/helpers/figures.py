"""Figures that read in light and dark, without colour, and without eyes."""

import base64
import io
from html import escape

import matplotlib as mpl
from cycler import cycler

from helpers.display import show_html
from helpers.paths import BookError

# The grey with the best contrast on both pages: 4.35 : 1 on white, 4.30 : 1 on #121212. No grey
# reaches 4.5 on both, so text is at least 12 points, and shapes need only 3 : 1.
GREY = "#797979"
GREY_PARTS = (
    *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "legend.labelcolor"),
    *("xtick.color", "ytick.color", "grid.color", "hatch.color"),
)
# Okabe and Ito's colours (https://jfly.uni-koeln.de/color/) without black and yellow, which
# vanish on one of the pages. The first four have 3 : 1 on both. Each series also gets a marker,
# a dash and a hatch of its own: colour alone says nothing.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1, 3, 1)))
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")


def style() -> None:
    """Set the book's figure style for this kernel. Dense lines: plot(..., marker="")."""
    mpl.rcParams.update(
        {
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.framealpha": 0,
            "figure.figsize": (7.2, 3.6),
            "figure.dpi": 100,
            "figure.constrained_layout.use": True,
            "font.size": 12,
            "xtick.labelsize": 12,
            "ytick.labelsize": 12,
            "legend.fontsize": 12,
            "axes.titlesize": 13,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": False,
            "grid.alpha": 0.4,
            "lines.linewidth": 2,
            "hatch.linewidth": 1.2,
            "axes.prop_cycle": cycler(color=COLORS, marker=MARKERS, linestyle=DASHES),
        }
        | dict.fromkeys(GREY_PARTS, GREY)
    )


def show(fig, *, alt: str) -> None:
    """Display a figure, at twice its resolution, with `alt` for whoever does not see it.

    Say in `alt` what the figure shows, with its numbers, in a sentence or two. The figure is
    closed, so that a notebook shows it once.
    """
    show_html(as_html(fig, alt=alt), f"figure: {alt}")
    _pyplot().close(fig)


def as_html(fig, *, alt: str) -> str:
    """The figure as one HTML element that holds its own image; see `show`."""
    if not isinstance(alt, str) or len(alt.split()) < 4:
        raise BookError("A figure needs a sentence, alt=..., that tells what it shows.")
    image = io.BytesIO()
    fig.savefig(image, format="png", dpi=2 * fig.dpi, bbox_inches="tight")
    width = int.from_bytes(image.getvalue()[16:20], "big") // 2  # PNG header: width in pixels
    # HTML, since neither JupyterLab nor myst-nb 1.4 takes an alt text from an output of type
    # image/png. The class keeps the theme from laying white under it in dark mode.
    return (
        f'<img class="figure dark-light" width="{width}" alt="{escape(alt)}" '
        f'src="data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}">'
    )


def timeline(rows: list[tuple[str, float, float, str]], *, xlabel: str = "seconds"):
    """Bars over time: rows of (lane, start, duration, kind). Returns the figure.

    Lanes stand from top to bottom and kinds in the legend in the order of first appearance; a
    kind has its colour and its hatch. A duration of 0 is an event, drawn as a thin bar.
    """
    if not rows or any(duration < 0 for _, _, duration, _ in rows):
        raise BookError("timeline() needs rows (lane, start, duration, kind), no duration below 0.")
    lanes, kinds = list(dict.fromkeys(r[0] for r in rows)), list(dict.fromkeys(r[3] for r in rows))
    if len(kinds) > len(COLORS):
        raise BookError(f"timeline() tells {len(COLORS)} kinds apart, not {len(kinds)}.")
    thinnest = max(start + duration for _, start, duration, _ in rows) / 200
    fig, ax = _pyplot().subplots(figsize=(7.2, 1.1 + 0.45 * len(lanes)))
    for i, kind in enumerate(kinds):
        bars = [row for row in rows if row[3] == kind]
        ax.barh(
            [lanes.index(lane) for lane, *_ in bars],
            [max(duration, thinnest) for _, _, duration, _ in bars],
            left=[start for _, start, *_ in bars],
            height=0.6,
            label=kind,
            facecolor=(COLORS[i], 0.55),
            edgecolor=COLORS[i],
            hatch=HATCHES[i],
        )
    ax.set_yticks(range(len(lanes)), lanes)
    ax.invert_yaxis()
    ax.set_xlabel(xlabel)
    fig.legend(loc="outside upper left", ncols=len(kinds), borderaxespad=0, handlelength=1.6)
    return fig


def _pyplot():
    import matplotlib.pyplot as plt  # half a second that only a figure pays

    return plt
