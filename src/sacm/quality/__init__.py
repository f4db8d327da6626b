"""Quality of data: what is broken, how far each value can be trusted, what it probably was."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Load `sacm.quality.labels` when it is first asked for: values need no model of labels."""
    if name != "labels":
        raise AttributeError(f"module 'sacm.quality' has no attribute {name!r}")
    import sacm.quality.labels as labels

    return labels
