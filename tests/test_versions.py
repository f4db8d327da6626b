from __future__ import annotations

import re
import tomllib
from pathlib import Path

import sacm

ROOT = Path(__file__).parent.parent


def read_constraints(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {package.lower(): version for package, version in pairs}


def test_the_oldest_versions_are_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["train"]]
    bounds = dict(requirement.lower().split(">=") for requirement in needed)
    oldest = read_constraints("constraints-oldest.txt")
    assert oldest.keys() == bounds.keys()
    assert oldest.pop("torch") == read_constraints("constraints.txt")["torch"]
    for package, version in oldest.items():
        assert version.startswith(f"{bounds[package]}."), package


def test_every_extra_of_a_user_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    for extra in project["optional-dependencies"].keys() - {"dev", "docs"}:
        assert f"| `{extra}` |" in page, extra


def test_the_version_is_the_same_wherever_it_is_stated():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    stated = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    assert stated is not None
    assert stated[1] == project["version"] == sacm.__version__
