"""Imports between the parts of `sacm` are exactly those listed here, and they point one way.

Imports are read from the source at any depth, so one inside a function counts too.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path

import sacm

ROOT = Path(sacm.__file__).parent
# What each part imports, lower parts first. A new edge is a decision: add it, or do without.
_EDGES = """
errors:
types:
core: errors
inject: core errors
files: errors
registry: errors
settings: errors types
theory: errors
reports:
data: errors registry settings types
metrics: data errors registry types
backbones: core errors inject registry types
quality: backbones data errors files inject reports types
strategies: backbones core data errors files inject quality registry types
tasks: backbones data errors metrics quality settings strategies types
training: backbones data errors files inject settings strategies tasks
inference: backbones data errors files metrics reports settings strategies tasks training
experiments: data errors files metrics reports settings strategies
    tasks training
estimators: data errors files inference metrics settings tasks training types
integrations: core errors inject quality
testing: backbones core data inject strategies tasks types
cli: __init__ backbones data errors experiments files inference quality registry reports
    settings strategies tasks training types
"""
ALLOWED: dict[str, set[str]] = {
    part: set(targets.split())
    for part, targets in re.findall(r"^(\w+):((?:.*\n)(?: +.*\n)*)", _EDGES, flags=re.MULTILINE)
}
# What needs no library but torch and NumPy.
CORE_PARTS = ("core", "inject", "quality.windows", "quality.protect", "quality.config")


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ["sacm", *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def module_of(name: str) -> str | None:
    """The module that a dotted name is or lives in; None for other packages."""
    while name.partition(".")[0] == "sacm":
        if name in modules():
            return name
        name = name.rpartition(".")[0]
    return None


def imported_names(node: ast.AST, module: str) -> list[str]:
    """Dotted names that a statement imports; none for other statements."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module}: imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_when_loaded(module: str) -> set[str]:
    """Modules of this package that a module imports while it is loaded itself."""
    names = [
        name
        for node in syntax_tree(modules()[module]).body
        for name in imported_names(node, module)
    ]
    return {target for target in map(module_of, names) if target not in (None, module)}


def part_of(module: str) -> str:
    """The part of the package that a module belongs to; `python -m sacm` is the package's own."""
    return module.split(".")[1] if module not in ("sacm", "sacm.__main__") else "__init__"


def import_edges() -> dict[tuple[str, str], str]:
    """(part, imported part) to a module where that happens."""
    edges = {}
    for module, path in modules().items():
        for node in ast.walk(syntax_tree(path)):
            for target in filter(None, map(module_of, imported_names(node, module))):
                if part_of(target) != part_of(module) != "__init__":
                    edges[part_of(module), part_of(target)] = module
    return edges


def test_every_part_is_listed() -> None:
    assert {part_of(module) for module in modules()} - {"__init__"} == set(ALLOWED)


def test_parts_import_what_is_listed_and_nothing_else() -> None:
    edges = import_edges()
    wrong = {edge: module for edge, module in edges.items() if edge[1] not in ALLOWED[edge[0]]}
    assert wrong == {}
    listed = {(part, target) for part, targets in ALLOWED.items() for target in targets}
    assert listed - set(edges) == set(), "an edge that nothing uses should leave the list"


def test_a_part_imports_only_parts_that_are_listed_before_it() -> None:
    order = ["__init__", *ALLOWED]
    wrong = [
        f"{part} imports {target}"
        for part, targets in ALLOWED.items()
        for target in targets
        if order.index(target) > order.index(part)
    ]
    assert wrong == []


def test_no_module_needs_itself_to_be_loaded() -> None:
    done: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> None:
        if module in path:
            raise AssertionError(" -> ".join([*path[path.index(module) :], module]))
        if module in done:
            return
        path.append(module)
        for target in sorted(imports_when_loaded(module)):
            visit(target)
        path.pop()
        done.add(module)

    for module in modules():
        visit(module)


def test_the_package_file_loads_nothing_at_once_but_the_errors() -> None:
    at_once = {
        node.module
        for node in syntax_tree(ROOT / "__init__.py").body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sacm.")
    }
    assert at_once == {"sacm.errors"}


def test_the_core_is_torch_and_numpy_alone() -> None:
    allowed = {"torch", "numpy", "sacm", "__future__"}
    for module, path in modules().items():
        if not module.removeprefix("sacm.").startswith(CORE_PARTS):
            continue
        for node in ast.walk(syntax_tree(path)):
            for name in imported_names(node, module):
                top = name.partition(".")[0]
                assert top in allowed or top in sys.stdlib_module_names, f"{module} imports {name}"
