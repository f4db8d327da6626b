"""Dependencies between the parts of the package are exactly those listed here; read from source.

Imports count at any depth of the code, so a lazy import is one too.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path

import sacm

ROOT = Path(sacm.__file__).parent
# What each part may import, lower parts first. A new edge is a decision: add it, or do without.
_EDGES = """
errors:
core: errors
inject: core errors
registry: errors
types:
backbones: core errors inject registry types
faults: errors registry
data: errors faults registry types
files: errors
metrics: errors registry types
reports: core errors files
quality: backbones data reports errors files inject
strategies: backbones core data errors faults files inject quality registry types
settings: errors types
tasks: backbones data errors metrics quality settings strategies types
training: backbones data errors files inject settings strategies tasks
experiments: core data errors files inject metrics quality registry reports settings strategies
    tasks training types
inference: backbones data errors files metrics quality settings strategies tasks training
cli: __init__ backbones data errors experiments faults files inference quality reports
    settings strategies tasks training types
estimators: backbones data errors files inference metrics settings tasks training types
integrations: core errors files inject quality
theory: errors
testing: backbones core data errors inject strategies tasks types
"""
ALLOWED: dict[str, set[str]] = {
    part: set(targets.split())
    for part, targets in re.findall(r"^(\w+):((?:.*\n)(?: +.*\n)*)", _EDGES, flags=re.MULTILINE)
}
# Parts that need no library but torch and NumPy.
CORE_PARTS = ("core", "inject", "quality.windows", "quality.protect", "quality.kinds")


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


@functools.cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of this package that a module imports, or names in a string to import later."""
    found: set[str | None] = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(module_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            found.update(module_of(f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value if node.value in modules() and node.value != "sacm" else None)
    return frozenset(name for name in found if name is not None and name != module)


def part_of(module: str) -> str:
    """The part of the package that a module belongs to; `python -m sacm` is the package's own."""
    return module.split(".")[1] if module not in ("sacm", "sacm.__main__") else "__init__"


def import_edges() -> dict[tuple[str, str], str]:
    """(part, imported part) to a module where that happens; names in strings left out."""
    found = {}
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                names = [alias.name for alias in getattr(node, "names", ()) if alias is not None]
                names = names if isinstance(node, ast.Import) else []
            for target in filter(None, map(module_of, names)):
                if part_of(target) != part_of(module) != "__init__":
                    found[part_of(module), part_of(target)] = module
    return found


def test_every_part_is_listed() -> None:
    assert {part_of(module) for module in modules()} - {"__init__"} == set(ALLOWED)


def test_parts_import_what_is_listed_and_nothing_else() -> None:
    found = import_edges()
    wrong = {edge: where for edge, where in found.items() if edge[1] not in ALLOWED[edge[0]]}
    assert wrong == {}
    listed = {(part, target) for part, targets in ALLOWED.items() for target in targets}
    assert listed - set(found) == set(), "an edge that nothing uses should leave the list"


def test_no_module_depends_on_itself_through_others() -> None:
    done: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> None:
        if module in path:
            raise AssertionError(" -> ".join([*path[path.index(module) :], module]))
        if module in done:
            return
        path.append(module)
        for target in sorted(imports_of(module)):
            visit(target)
        path.pop()
        done.add(module)

    # The package's own file offers every public name, lazily and by name.
    for module in modules():
        if module != "sacm":
            visit(module)


def test_the_package_file_loads_nothing_at_once_but_the_errors() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    at_once = {
        node.module.split(".")[1]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sacm.")
    }
    assert at_once == {"errors"}


def test_the_core_is_torch_and_numpy_alone() -> None:
    allowed = {"torch", "numpy", "sacm", "__future__"}
    for module, path in modules().items():
        if not module.removeprefix("sacm.").startswith(CORE_PARTS):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                top = name.partition(".")[0]
                assert top in allowed or top in sys.stdlib_module_names, f"{module} imports {name}"
