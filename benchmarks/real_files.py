"""What is understood of every file of a folder, or why it is refused and what the option does.

python -m benchmarks.real_files FOLDER [--verbose]

Each file is read twice: as `sacm quality` reads it (rows as they are) and as `sacm train` does (on
a regular grid). After a refusal it is read again with the first option that the sentence names.
A file counts as read if a table comes of it; whether it was read right is for a reader of the
lines to say. A traceback is always a mistake.
"""

from __future__ import annotations

import argparse
import re
import shlex
import time
import traceback
from collections import Counter
from pathlib import Path

from sacm.data.read import Table, read_table
from sacm.errors import SACMError

OPTION = re.compile(r"--(encoding) .* may be (\w+)|--([a-z-]+) ('[^']*'|[^\s;]*[^\s:;,.])")
WORDS = ("names", "leaves", "takes", "makes", "or", "decides")  # after an option without a value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="Also print notes and first rows.")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for path in sorted(options.folder.iterdir()):
        if path.is_file():
            for command in ("quality", "train"):
                counts[f"{command}: {show(path, command, verbose=options.verbose)}"] += 1
    print(dict(sorted(counts.items())))


def show(path: Path, command: str, *, verbose: bool = False) -> str:
    """Print what comes of one file, and say in a word what that was."""
    started = time.perf_counter()
    grid = command == "train"
    try:
        table = read_table(path, grid=grid)
    except SACMError as error:
        print(f"{path.name} ({command}): REFUSED {error}")
        return follow(path, str(error), grid=grid)
    except Exception:
        print(f"{path.name} ({command}): TRACEBACK\n{traceback.format_exc()}")
        return "traceback"
    seconds = time.perf_counter() - started
    print(f"{path.name} ({command}, {seconds:.1f} s): " + " | ".join(table.understood))
    if verbose:
        show_rows(table)
    return "read"


def follow(path: Path, sentence: str, *, grid: bool) -> str:
    """Read a refused file again with the first option that the sentence names."""
    pairs = [(match[1] or match[3], match[2] or match[4]) for match in OPTION.finditer(sentence)]
    for name, written in [pair for pair in pairs if pair[1] not in WORDS][:1]:
        value = shlex.split(written)[0].removesuffix(".") or written
        try:
            table = read_table(path, {name.replace("-", "_"): value}, grid=grid)
        except SACMError as error:
            print(f"    --{name} {value}: REFUSED {error}")
            continue
        print(f"    --{name} {value}: " + " | ".join(table.understood))
        return "read with the option"
    return "refused"


def show_rows(table: Table) -> None:
    """Print the notes, the first and the last row."""
    for note in table.notes:
        print(f"    {note}")
    for row in (0, -1):
        when = "" if table.times is None else f"{table.times[row]} "
        print(f"    {when}{table.values[row][:6].tolist()}")


if __name__ == "__main__":
    main()
