"""What the pages tell people to type works.

Python blocks run from top to bottom in one namespace and one empty folder, but for those marked
`python no-run`. Of `console` blocks every `sacm` command must parse; those marked `console run` are
run in the same folder.
"""

from __future__ import annotations

import glob
import importlib
import re
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from sacm.cli.main import app, main
from sacm.registry import temporary_entries

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


# Pages that train networks.
TRAINS = ("start.md", "experiments.md", "serving.md", "extending.md", "covariates.md")


def name_of(page: Path) -> str:
    """The page's path in the repository."""
    return str(page.relative_to(ROOT))


class Block(NamedTuple):
    kind: str
    text: str
    line: int

    @property
    def commands(self) -> list[list[str]]:
        """The `sacm` commands of a console block, in words."""
        lines = self.text.replace("\\\n", " ").splitlines()
        typed = [line.removeprefix("$ sacm ") for line in lines if line.startswith("$ sacm ")]
        return [shlex.split(words, comments=True) for words in typed]


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(match["kind"].strip(), match["text"], text[: match.start()].count("\n") + 1)
        for match in FENCE.finditer(text)
    ]


def parse(words: list[str]) -> None:
    """Let the command line take its options in, without running anything."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("sacm", list(words))
    rest = [*getattr(context, "_protected_args", ()), *context.args]
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        rest = [*getattr(context, "_protected_args", ()), *context.args]


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expanded = [part for word in words for part in sorted(glob.glob(word)) or [word]]
    monkeypatch.setattr(sys, "argv", ["sacm", *expanded])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code, f"sacm {' '.join(words)}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in TRAINS else ()) for page in PAGES],
    ids=name_of,
)
def test_page_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SACM_CACHE", str(tmp_path / "cache"))
    for part in ("backbones", "data", "metrics", "strategies"):  # their own entries must stay
        importlib.import_module(f"sacm.{part}")
    with temporary_entries():  # a page may register things
        work_through(page, monkeypatch)


def work_through(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.kind == "python":
            # Lines in error messages are those of the page.
            source = "\n" * block.line + block.text
            exec(compile(source, str(page), "exec", dont_inherit=True), namespace)
        elif block.kind == "console run":
            for words in block.commands:
                run(words, monkeypatch)
        elif block.kind == "console":
            for words in block.commands:
                parse(words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_marks_its_blocks(page: Path) -> None:
    known = {
        "python",
        "python no-run",
        "console",
        "console run",
        "toml",
        "text",
        "bibtex",
        "{.python}",
        "",
    }
    assert {block.kind for block in blocks(page)} <= known


@pytest.mark.parametrize("words", ["train forecasting --dat x", "trian", "score", "data lits"])
def test_wrong_commands_do_not_parse(words: str) -> None:
    with pytest.raises(Exception, match=r"No such|no command|Missing"):
        parse(words.split())
