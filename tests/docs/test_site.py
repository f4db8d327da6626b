"""The check of the built site finds what is broken; pages and the navigation belong together."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import sacm
from tests.scripts import load_script

ROOT = Path(__file__).parents[2]


def load(name: str) -> ModuleType:
    """A hook of the site, which is no module of a package."""
    pytest.importorskip("mkdocs", reason="needs the `docs` extra")
    return load_script(ROOT / "docs" / "hooks" / f"{name}.py")


def test_broken_links_and_foreign_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">x</a><a href="b.html#nowhere">x</a><a href="c.html">x</a>'
        '<script src="https://example.org/x.js"></script><a href="https://example.org">x</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">x</h1><a href="#there">x</a>')
    assert load("check_site").find_problems(tmp_path) == [
        "a.html loads https://example.org/x.js from another host.",
        "a.html links to b.html#nowhere, which has no such section.",
        "a.html links to c.html, which does not exist.",
    ]


def test_every_part_stands_above_what_it_imports() -> None:
    layers = load("layers")
    edges = layers.read_edges()
    height = {part: level for level, row in enumerate(layers.levels(edges)) for part in row}
    assert height.keys() == edges.keys()
    assert all(height[part] > height[target] for part in edges for target in edges[part])


def test_only_edges_that_others_imply_are_left_out_of_the_picture() -> None:
    layers = load("layers")
    edges = {"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set(), "alone": set()}
    assert layers.direct_edges(edges) == [("middle", "bottom"), ("top", "middle")]
    assert layers.draw(edges).count("<rect") == 4


def test_methods_are_found_by_their_class() -> None:
    name = load("pages").qualified_name("before_forward", "src/sacm/inject/modulator.py")
    assert name == "sacm.inject.modulator.CapacityModulator.before_forward"
    with pytest.raises(ValueError, match="defines no nothing"):
        load("pages").qualified_name("nothing", "src/sacm/inject/modulator.py")


def test_every_tutorial_shows_its_script() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md")}
    assert pages == {path.stem for path in (ROOT / "examples").glob("*.py")}
    for name in pages:
        text = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
        assert f'--8<-- "examples/{name}.py"' in text


def test_every_public_name_is_on_the_api_page() -> None:
    shown = re.findall(
        r"^::: ([\w.]+)$",
        (ROOT / "docs/reference/api.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    last_words = {name.rpartition(".")[2] for name in shown}
    on_other_pages = {"data"}
    errors = {name for name in sacm.__all__ if name.endswith(("Error", "Warning"))}
    assert "errors" in last_words
    assert set(sacm.__all__) - errors - on_other_pages <= last_words
