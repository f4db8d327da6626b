"""`make bench`: every benchmark, or the ones named on the command line."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "core",
    "loader",
    "backbones",
    "training",
    "serving",
    "grid",
    "quality_cost",
    "startup",
    "strategies_cost",
)


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}: choose from {', '.join(NAMES)}")
    for name in chosen:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
