"""The architecture page shows the folders and the walks as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import walks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = {
    re.sub(r"</?code>", "", name): files.split()
    for name, files in re.findall(
        r"<summary>([^\n]+): \d+ files</summary>\n\n```text\n(.+?)\n```", PAGE, flags=re.DOTALL
    )
}


def test_every_folder_of_both_packages_is_in_the_tree() -> None:
    tree = PAGE.partition("```text")[2].partition("```")[0]
    listed = set(re.findall(r"^  (\w+)/ ", tree, flags=re.MULTILINE))
    folders = {
        path.parent.name for name in walks.PACKAGES for path in (ROOT / "src" / name).glob("*/*.py")
    }
    assert listed == folders


def test_the_walks_of_the_page_are_those_of_the_command() -> None:
    assert list(WALKS) == list(walks.AIMS)
    missing = [
        file for files in WALKS.values() for file in files if not (ROOT / "src" / file).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["one attached training step", "one protected batch"])
def test_a_walk_goes_through_the_files_of_the_page(name: str) -> None:
    step = "step" in name
    action = walks.attached_step() if step else walks.protected_batch(walks.make_table())
    action()
    with walks.trace() as files:
        action()
    assert set(files) == set(WALKS[name])
