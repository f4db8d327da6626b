from __future__ import annotations

from sacm.display.html_page import inline_svg
from sacm.experiments.critical_difference import critical_difference
from sacm.reports.named.diagram import rank_caption, rank_diagram


def test_names_ranks_and_bars():
    table = [[1.0, 2.0, 2.1, 9.0], [1.0, 2.1, 2.0, 9.0]] * 5
    ranks = critical_difference(table, ["a$b", "near", "nearer", "far"])
    drawing = rank_diagram(ranks)
    (axes,) = drawing.axes
    texts = [text.get_text().strip() for text in axes.texts]
    assert texts[:4] == ["1", "2", "3", "4"]
    assert texts[4:] == ["a$b 1.00", "near 2.50", "2.50 nearer", "4.00 far"]
    bars = [list(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 3.5]
    assert len(bars) == len(ranks.cliques) == 1
    assert bars[0][0] < 2.5 < bars[0][1]
    assert "near" in inline_svg(drawing, "ranks")


def test_the_caption_says_it_in_words():
    ranks = critical_difference([[1.0, 2.0], [1.0, 2.0]], ["one", "two"])
    said = rank_caption(ranks)
    assert said.startswith("Average ranks over 2 problems, 1 is best: one 1.00, two 2.00. No Fried")
