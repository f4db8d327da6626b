from __future__ import annotations

from sacm.reports.page import embed_figure, page, paragraph
from sacm.reports.style import INK, SERIES, canvas, colours, house_style
from tests.reports.reading import Page


def drawing():
    with house_style():
        found, (axes,) = canvas()
        axes.plot([0, 1], [0, 1], color=SERIES[0])
        axes.scatter([0, 1], [1, 0], color=INK)
        axes.set_title("a < b")
    return found


def test_a_drawing_takes_the_size_that_the_page_gives_it():
    svg = embed_figure(drawing(), "caption", name="one")
    assert '><svg viewBox="' in svg
    assert "http" not in svg
    assert "a &lt; b" in svg


def test_two_drawings_share_no_ids():
    text = page("t", [], {"s": [embed_figure(drawing(), "c", name=n) for n in "ab"]})
    found = Page(text)
    assert len(found.ids) == len(set(found.ids)) > 0


def test_a_drawing_is_the_same_text_twice():
    assert embed_figure(drawing(), "c", name="a") == embed_figure(drawing(), "c", name="a")


def test_text_is_escaped():
    text = page("<title>", ["a & b"], {"x > y": [paragraph("<p>")], "no": []})
    assert "<h1>&lt;title&gt;</h1>" in text
    assert "a &amp; b" in text
    assert "<h2>x &gt; y</h2>" in text
    assert "<h2>no</h2>" not in text
    assert "<p>&lt;p&gt;</p>" in text


def test_more_strategies_than_colours():
    chosen = colours([str(number) for number in range(len(SERIES) + 1)])
    assert chosen["0"] == chosen[str(len(SERIES))]
