"""A page that needs nothing but itself: nothing is loaded from elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from sacm.reports.style import apply_theme, variables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0 1rem}
h2{font-size:1.15rem;margin:2.5rem 0 .5rem;padding-top:.6rem;border-top:1px solid var(--grid)}
p{max-width:46rem;margin:.5rem 0}
h1,p,figcaption{overflow-wrap:anywhere}
.lead{font-size:1.1rem}
.note,figcaption{color:var(--muted);font-size:.88rem}
.wide{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .7rem;text-align:right;white-space:nowrap}
th{font-weight:600;border-bottom:1.5px solid var(--muted)}
th:first-child,td:first-child{text-align:left;padding-left:0;position:sticky;left:0;
 background:var(--paper)}
th.text,td.text{text-align:left}
.settings td{white-space:normal;overflow-wrap:anywhere}
.sortable th{cursor:pointer}
.sortable th[aria-sort=ascending]::after{content:" ↑"}
.sortable th[aria-sort=descending]::after{content:" ↓"}
details{margin:.75rem 0}
summary{cursor:pointer;font-weight:600}
.figures{display:grid;gap:1.25rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
figure{margin:0;min-width:0}
figure svg{display:block;width:100%;height:auto;max-width:34rem}
figure.wide-figure{overflow-x:auto}
figure.wide-figure svg{max-width:none;min-width:36rem}
figure.large svg{max-width:46rem}
figure[class] svg{cursor:crosshair;touch-action:pan-x pan-y}
figure[class] path{vector-effect:non-scaling-stroke}
svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
pre{white-space:pre-wrap;overflow-wrap:anywhere;padding:.75rem 1rem;font-size:.85rem;
 border:1px solid var(--grid);border-radius:.4rem}
@media (max-width:40rem){table{font-size:.8rem}th,td{padding:.2rem .4rem}
 th,th:first-child,td:first-child{white-space:normal}
 th:first-child,td:first-child,.settings td:first-child{max-width:45vw;overflow-wrap:break-word}}
"""

# A click on a heading sorts a table; dragging over a part of a large figure enlarges that part.
_SCRIPT = """<script>
document.querySelectorAll('table.sortable').forEach(table => {
  const value = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const number = Number(text.replace(/[,%\\s]/g, '').replace('\u2212', '-'));
    return text !== '' && !Number.isNaN(number) ? number : text;
  };
  table.querySelectorAll('th').forEach((head, at) => head.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') === 'ascending';
    table.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const body = table.tBodies[0], sign = down ? -1 : 1;
    [...body.rows].sort((a, b) => {
      const x = value(a, at), y = value(b, at);
      const order = typeof x === typeof y ? (x > y) - (x < y) : typeof x === 'number' ? -1 : 1;
      return sign * order;
    }).forEach(row => body.appendChild(row));
  }));
});
document.querySelectorAll('figure[class] svg').forEach(svg => {
  const whole = svg.getAttribute('viewBox');
  const place = event => new DOMPoint(event.clientX, event.clientY)
    .matrixTransform(svg.getScreenCTM().inverse());
  let from = null;
  svg.addEventListener('pointerdown', event => {
    if (event.pointerType === 'mouse') { from = place(event); event.preventDefault(); }
  });
  svg.addEventListener('pointerup', event => {
    if (!from) return;
    const to = place(event), [, , width, height] = whole.split(' ').map(Number);
    const part = Math.max(Math.abs(to.x - from.x) / width, Math.abs(to.y - from.y) / height);
    const x = (from.x + to.x - part * width) / 2, y = (from.y + to.y - part * height) / 2;
    if (part > .02) svg.setAttribute('viewBox', [x, y, part * width, part * height].join(' '));
    from = null;
  });
  svg.addEventListener('dblclick', () => svg.setAttribute('viewBox', whole));
});
</script>"""
_ZOOM_HINT = " Drag over a part to enlarge it; a double click shows all again."


def page(title: str, lead: Sequence[str], sections: Mapping[str, Sequence[str]]) -> str:
    """A complete HTML document: a title, sentences with the results, then tables and figures.

    `sections` are parts in HTML, by heading; one without parts is left out. A click on a heading
    sorts a table of the class `sortable`; figures that have a class can be enlarged.
    """
    body = [f"<h1>{escape(title)}</h1>"]
    body += [f'<p class="lead">{escape(sentence)}</p>' for sentence in lead]
    for heading, parts in sections.items():
        if parts:
            body += [f"<section><h2>{escape(heading)}</h2>", *parts, "</section>"]
    whole = (
        f":root{{color-scheme:light dark;{variables(dark=False)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(dark=True)}}}}}{_STYLE}"
    )
    text = "\n".join(body)
    shared = _SCRIPT if 'class="sortable' in text or "<figure class" in text else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'  # otherwise a browser asks for one
        f"<title>{escape(title)}</title>\n<style>{whole}</style>\n</head>\n<body>\n<main>\n"
        f"{text}\n</main>\n{shared}</body>\n</html>\n"
    )


def paragraph(text: str, *, note: bool = False) -> str:
    """A sentence or more."""
    return f'<p class="note">{escape(text)}</p>' if note else f"<p>{escape(text)}</p>"


def code_block(text: str) -> str:
    """Lines to copy."""
    return f"<pre>{escape(text)}</pre>"


def folded(title: str, *parts: str) -> str:
    """Parts that a click on the title shows."""
    return f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>"


def figures(*items: str) -> str:
    """Figures side by side where there is room, below each other where there is not."""
    return f'<div class="figures">{"".join(items)}</div>'


def embed_figure(drawing: Figure, caption: str, *, name: str, kind: str = "") -> str:
    """A drawing as inline SVG.

    Args:
        drawing: The figure.
        caption: What it shows.
        name: Unique on the page; keeps the drawing's inner references its own.
        kind: CSS class: "large" takes most of the page's width, "wide-figure" all of it, and
            scrolls where the page is narrow.
    """
    chosen, caption = (f' class="{escape(kind)}"', caption + _ZOOM_HINT) if kind else ("", caption)
    return (
        f'<figure{chosen} role="img" aria-label="{escape(caption)}">{inline_svg(drawing, name)}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def inline_svg(drawing: Figure, name: str) -> str:
    """SVG without prologue, metadata or namespaces, in the colours of the page."""
    import matplotlib

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Fixed salt: the same figure is the same text. Letters stay letters, in the page's font.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        drawing.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r"(\bid=\"|\bhref=\"#|url\(#)", rf"\g<1>{name}-", svg)
    svg = re.sub(
        r'<svg [^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg
    )
    return apply_theme(svg.strip())
