"""What is understood of every file of a folder, or why it is refused.

python -m benchmarks.real_files FOLDER [--verbose]

A file counts as read if a table comes of it; whether it was read right is for a reader of the lines
to say. A traceback is always a mistake.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections import Counter
from pathlib import Path

from sacm.data.read import read_table
from sacm.errors import SACMError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="Also print notes and first rows.")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for path in sorted(options.folder.iterdir()):
        if path.is_file():
            counts[show(path, verbose=options.verbose)] += 1
    print(dict(counts))


def show(path: Path, *, verbose: bool = False) -> str:
    """Print what comes of one file, and say in a word what that was."""
    started = time.perf_counter()
    try:
        table = read_table(path)
    except SACMError as error:
        print(f"{path.name}: REFUSED {error}")
        return "refused"
    except Exception:
        print(f"{path.name}: TRACEBACK\n{traceback.format_exc()}")
        return "traceback"
    seconds = time.perf_counter() - started
    print(f"{path.name} ({seconds:.1f} s): " + " | ".join(table.understood))
    if verbose:
        for note in table.notes:
            print(f"    {note}")
        for row in (0, -1):
            when = "" if table.times is None else f"{table.times[row]} "
            print(f"    {when}{table.values[row][:6].tolist()}")
    return "read"


if __name__ == "__main__":
    main()
