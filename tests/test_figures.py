import base64
import io
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from helpers import BookError, figures

PAGES = {"light": "#ffffff", "dark": "#121212"}  # backgrounds of the site's theme


@pytest.fixture(autouse=True)
def agg():
    plt.switch_backend("agg")
    with mpl.rc_context():
        figures.style()
        yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch):
    outputs = []
    monkeypatch.setattr(figures, "show_html", lambda html, text: outputs.append((html, text)))
    return outputs


def contrast(one, other):
    """Contrast ratio of two colours by WCAG 2: 1 to 21."""

    def luminance(color):
        rgb = np.array(mpl.colors.to_rgb(color))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def picture(html):
    data = re.search(r'src="data:image/png;base64,([^"]+)"', html).group(1)
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_text_and_shapes_stand_out_on_both_pages(page):
    assert contrast(figures.GREY, page) > 4.25
    for color in figures.COLORS[:4]:
        assert contrast(color, page) > 3
    for name in ("font.size", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"):
        assert mpl.rcParams[name] >= 12


def test_grey_is_the_best_there_is():
    greys = [f"#{v:02x}{v:02x}{v:02x}" for v in range(256)]
    assert (
        max(greys, key=lambda g: min(contrast(g, page) for page in PAGES.values())) == figures.GREY
    )


def test_nothing_is_told_by_colour_alone():
    cycle = list(mpl.rcParams["axes.prop_cycle"])
    for look in ("color", "marker", "linestyle"):
        assert len({str(line[look]) for line in cycle}) == len(cycle) == len(figures.COLORS)
    assert len(set(figures.HATCHES)) == len(figures.COLORS)


def test_show_gives_a_sharp_transparent_picture_with_alt_text(shown):
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1])
    figures.show(fig, alt='A line that rises from 0 to "1" < 2.')
    ((html, text),) = shown
    assert text == 'figure: A line that rises from 0 to "1" < 2.'
    assert 'alt="A line that rises from 0 to &quot;1&quot; &lt; 2."' in html
    image = picture(html)
    assert image.width > 1.5 * fig.get_figwidth() * fig.dpi
    assert int(re.search(r'width="(\d+)"', html).group(1)) == image.width // 2
    assert image.mode == "RGBA" and image.getpixel((2, 2))[3] == 0
    assert not plt.get_fignums()  # else the notebook shows it again, without alt text


@pytest.mark.parametrize("alt", ["", "figure", None])
def test_show_refuses_a_figure_without_alt_text(alt, shown):
    fig, _ = plt.subplots()
    with pytest.raises(BookError, match="needs a sentence"):
        figures.show(fig, alt=alt)
    assert not shown


def test_timeline():
    rows = [("call 1", 0, 2.0, "capture"), ("call 2", 2.0, 0, "hit"), ("call 1", 3, 1, "capture")]
    (ax,) = figures.timeline(rows, xlabel="ms").axes
    bars = {kind.get_label(): list(kind) for kind in ax.containers}
    assert [(b.get_x(), b.get_width()) for b in bars["capture"]] == [(0, 2.0), (3, 1)]
    assert bars["hit"][0].get_width() == pytest.approx(4 / 200)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["call 1", "call 2"]
    assert ax.yaxis_inverted() and ax.get_xlabel() == "ms"
    assert bars["hit"][0].get_hatch() != bars["capture"][0].get_hatch()


def test_timeline_of_bad_rows():
    with pytest.raises(BookError, match="needs rows"):
        figures.timeline([])
    with pytest.raises(BookError, match="no duration below 0"):
        figures.timeline([("a", 1, -1, "x")])
    with pytest.raises(BookError, match="tells 6 kinds apart, not 7"):
        figures.timeline([("a", i, 1, str(i)) for i in range(7)])
