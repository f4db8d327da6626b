"""Hide the laboratory from a Python process; put this folder on PYTHONPATH.

`make library` runs the tests of the library with it: the library must not need `sacm_lab`.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any

_entry_points: Any = importlib.metadata.entry_points


def _without_lab(**wanted: Any) -> Any:
    found = _entry_points(**wanted)
    if wanted.get("group") != "sacm.plugins":
        return found
    return tuple(entry for entry in found if entry.value != "sacm_lab")


class _NoLab:
    """Refuses to import `sacm_lab`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "sacm_lab":
            raise ModuleNotFoundError(f"No module named {name!r}")


importlib.metadata.entry_points = _without_lab  # type: ignore[assignment]
sys.meta_path.insert(0, _NoLab())  # type: ignore[arg-type]
