"""Check the built site: internal links lead somewhere, nothing is loaded from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.exceptions import PluginError

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
# Not loaded by a browser: where the page or a neighbour of it lives.
NAMED_ONLY = {"canonical", "prev", "next", "alternate"}


class Page(HTMLParser):
    """Targets and ids of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif LOADED.get(tag) in values and values.get("rel") not in NAMED_ONLY:
            self.loads.append(values[LOADED[tag]])


def ids_of(page: Page | None) -> set[str]:
    """What a link may point to; a script of the theme adds two."""
    return set() if page is None else page.ids | {"__toc", "__drawer"}


def find_problems(site: Path) -> list[str]:
    """One sentence for each broken link and each file that is loaded from another host."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    problems = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        problems += [
            f"{name} loads {target} from another host."
            for target in page.loads
            if urlsplit(target).netloc
        ]
        if path.name == "404.html":
            continue  # it is shown at any address, so its links are absolute
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                problems.append(f"{name} links to {link}, which does not exist.")
            elif parts.fragment and unquote(parts.fragment) not in ids_of(pages.get(target)):
                problems.append(f"{name} links to {link}, which has no such section.")
    return problems


def on_post_build(config: Any, **_: Any) -> None:
    """Called by mkdocs when all files are written."""
    problems = find_problems(Path(config["site_dir"]))
    if problems:
        raise PluginError("\n".join(problems))
