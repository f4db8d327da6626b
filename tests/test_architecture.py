"""Dependencies between the parts of the package point one way; read from the source."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path

import sacm

ROOT = Path(sacm.__file__).parent
# Lower levels know nothing of higher ones; parts of one level may know each other.
LEVELS = (
    ("errors", "task_name"),
    ("core", "theory", "metrics", "faults"),
    ("inject",),
    ("backbones", "data", "strategies", "quality"),
    ("tasks",),
    ("training",),
    ("experiments",),
    ("reports", "estimators", "cli"),
    ("integrations",),
)
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}
# The package's own file offers the heavy parts lazily, by name.
PARTS = sorted({path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")})


def imports_of(path: Path) -> set[str]:
    """Parts of this package that a file imports, at whatever depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "sacm":
                found.add(rest.partition(".")[0])
    return found


@functools.cache
def edges() -> dict[tuple[str, str], str]:
    """(part, imported part) to a file where that happens."""
    found = {}
    for path in ROOT.rglob("*.py"):
        relative = path.relative_to(ROOT)
        part = relative.parts[0].removesuffix(".py")
        if part != "__init__":
            for target in imports_of(path):
                # `from sacm import attach` asks the package itself.
                found[part, target if target in LEVEL else "__init__"] = str(relative)
    return {edge: where for edge, where in found.items() if edge[0] != edge[1]}


def test_every_part_has_its_place() -> None:
    assert set(PARTS) - set(LEVEL) == {"__init__"}


def test_dependencies_point_one_way() -> None:
    wrong = {
        f"{part} imports {target}": where
        for (part, target), where in edges().items()
        if target in LEVEL and LEVEL[target] > LEVEL[part]
    }
    assert wrong == {}


def test_metrics_depend_on_errors_only() -> None:
    assert {target for part, target in edges() if part == "metrics"} <= {"errors"}


def test_core_depends_on_errors_only() -> None:
    assert {target for part, target in edges() if part == "core"} <= {"errors"}


def test_nothing_imports_integrations() -> None:
    assert [where for (_, target), where in edges().items() if target == "integrations"] == []


def test_only_parts_above_the_method_ask_the_package_itself() -> None:
    asking = {part for part, target in edges() if target == "__init__"}
    assert all(LEVEL[part] > LEVEL["inject"] for part in asking)


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
    for folder in ("core", "inject", "faults", "quality/windows"):
        for path in (ROOT / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                modules = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                for module in modules:
                    top = module.partition(".")[0]
                    assert top in allowed or top in sys.stdlib_module_names, (
                        f"{path.name} imports {module}"
                    )
