"""A page that needs nothing but itself: nothing is loaded from elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from sacm.reports.table import record_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ZOOM_HINT = " Drag over a part to enlarge it; a double click shows all again."


def page(title: str, lead: Sequence[str], sections: Mapping[str, Sequence[str]]) -> str:
    """A complete HTML document; `sections` are parts in HTML by heading, empty ones left out."""
    body = [f"<h1>{escape(title)}</h1>"]
    body += [f'<p class="lead">{escape(sentence)}</p>' for sentence in lead]
    for heading, parts in sections.items():
        if parts:
            body += [f"<section><h2>{escape(heading)}</h2>", *parts, "</section>"]
    # Pages load nothing, so they hold the files beside this one.
    assets = resources.files("sacm.reports")
    css, script = ((assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'  # otherwise a browser asks for one
        f"<title>{escape(title)}</title>\n"
        f"<style>{css}</style>\n"
        "</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n"
        f"<script>\n{script}</script></body>\n</html>\n"
    )


def paragraph(text: str, *, note: bool = False) -> str:
    """A sentence or more."""
    return f'<p class="note">{escape(text)}</p>' if note else f"<p>{escape(text)}</p>"


def details(**records: dict[str, Any]) -> list[str]:
    """Records, such as settings, as tables that are folded away; what is None is left out."""
    parts = []
    for title, record in records.items():
        table = record_table(title, record).html(kind="settings")
        parts.append(f"<details><summary>{title.capitalize()}</summary>{table}</details>")
    return parts


def figures(*items: str) -> str:
    """Figures side by side where there is room, below each other where there is not."""
    return f'<div class="figures">{"".join(items)}</div>'


def embed_figure(drawing: Figure, caption: str, *, name: str, kind: str = "") -> str:
    """A drawing as inline SVG; `name` is unique on the page, `kind` a CSS class that enlarges."""
    import matplotlib

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Fixed salt: the same figure is the same text. Letters stay letters, in the page's font.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        drawing.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue().strip()
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg[svg.index("<svg") :])
    svg = re.sub(r"(\bid=\"|\bhref=\"#|url\(#)", rf"\g<1>{name}-", svg)
    box = r'<svg [^>]*viewBox="([^"]*)"[^>]*>'
    svg = re.sub(box, r'<svg viewBox="\1" aria-hidden="true">', svg)
    chosen, caption = (f' class="{escape(kind)}"', caption + _ZOOM_HINT) if kind else ("", caption)
    return (
        f'<figure{chosen} role="img" aria-label="{escape(caption)}">{svg}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
