"""How large the parts of the repository are: files, lines, functions and public names.

    python -m benchmarks.size                 # the working tree
    python -m benchmarks.size --since 2e3e34e # beside an earlier commit

A public name is a class, function or constant at the top of a module, without a leading underscore.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Size(NamedTuple):
    """What is counted; sizes add up."""

    files: int = 0
    lines: int = 0
    functions: int = 0
    names: int = 0

    def plus(self, other: Size) -> Size:
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def measure(text: str) -> Size:
    """Measure one file."""
    tree = ast.parse(text)
    functions = sum(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    public = sum(not name.startswith("_") for name in names)
    return Size(1, text.count("\n"), functions, public)


def part_of(path: str) -> str:
    """Name the part that a file belongs to: `sacm/data`, `sacm_lab/paper`, `tests`."""
    steps = path.removeprefix("src/").split("/")
    if steps[0] not in ("sacm", "sacm_lab"):
        return steps[0]
    return "/".join(steps[:2]) if len(steps) > 2 else f"{steps[0]}/*.py"


def read_tree(commit: str | None) -> dict[str, Size]:
    """Measure every part of a commit, or of the working tree for None."""
    listing = ["git", "ls-files"] if commit is None else ["git", "ls-tree", "-r", "--name-only"]
    listed = subprocess.check_output([*listing, *([commit] if commit else [])], cwd=ROOT, text=True)
    parts: dict[str, Size] = defaultdict(Size)
    for path in listed.splitlines():
        if not path.endswith(".py") or path.split("/")[0] not in ("src", "tests"):
            continue
        if commit is not None:
            text = subprocess.check_output(["git", "show", f"{commit}:{path}"], cwd=ROOT, text=True)
        elif (ROOT / path).exists():
            text = (ROOT / path).read_text(encoding="utf-8")
        else:
            continue
        size = measure(text)
        package = part_of(path).split("/")[0]
        for part in dict.fromkeys((part_of(path), package)):
            parts[part] = parts[part].plus(size)
    return parts


def main() -> None:
    """Print one line for each part; a package's own line is the sum of its parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", help="an earlier commit to show beside the working tree")
    since = parser.parse_args().since
    now = read_tree(None)
    before = read_tree(since) if since else {}
    columns = "".join(f"{name:>11}" for name in Size._fields)
    print(f"{'part':24}{columns}" + (f"   {since}:{columns}" if since else ""))
    for part in sorted({*now, *before}):
        counts = "".join(f"{count:11,}" for count in now.get(part, Size()))
        earlier = "".join(f"{count:11,}" for count in before.get(part, Size()))
        print(f"{part:24}{counts}" + (f"   {'':{len(since) + 1}}{earlier}" if since else ""))


if __name__ == "__main__":
    main()
