"""How the project reads: random docstrings and comments, and the reading ease of pages.

Example: python -m benchmarks.words --seed 1
Example: python -m benchmarks.words README.md docs/start.md
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import tokenize
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def docstrings() -> list[tuple[str, str]]:
    """Place and first paragraph of every docstring of the package."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if text:
                name = getattr(node, "name", "module")
                texts.append((f"{path.relative_to(SOURCE)}:{name}", text.split("\n\n")[0]))
    return texts


def comments() -> list[tuple[str, str]]:
    """Place and text of every comment of the package that holds words, not shapes."""
    texts = []
    for path in sorted(SOURCE.rglob("*.py")):
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                words = token.string.split()
                if token.type == tokenize.COMMENT and len(words) > 4 and words[1][0] != "[":
                    texts.append((f"{path.relative_to(SOURCE)}:{token.start[0]}", token.string))
    return texts


def prose(page: str) -> str:
    """The sentences of a Markdown page: no code, tables, links or headings."""
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    lines = [line for line in page.splitlines() if not re.match(r"\s*([|#!<>$]|---)", line)]
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))
    return re.sub(r"[`*]", "", text)


def reading_ease(text: str) -> float:
    """Flesch's reading ease: 60 is plain English, 30 is hard. Groups of vowels are syllables."""
    words = re.findall(r"[A-Za-z]+", text)
    sentences = max(1, len(re.findall(r"[.!?:]\s", text)))
    syllables = sum(
        max(1, len(re.findall(r"[aeiouy]+", re.sub(r"e$", "", word.lower())))) for word in words
    )
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / max(1, len(words))


def main() -> None:
    """Print the samples, or the reading ease of the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--docstrings", type=int, default=30)
    parser.add_argument("--comments", type=int, default=20)
    asked = parser.parse_args()
    if asked.pages:
        for path in asked.pages:
            text = prose(path.read_text())
            print(f"{path}: Flesch {reading_ease(text):.0f}, {len(text.split())} words")
        return
    chance = random.Random(asked.seed)
    for texts, count in ((docstrings(), asked.docstrings), (comments(), asked.comments)):
        for place, text in chance.sample(texts, min(count, len(texts))):
            print(f"{place}\n    {' '.join(text.split())}")
        print()


if __name__ == "__main__":
    main()
