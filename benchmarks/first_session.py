"""A newcomer's first session, recorded: `python -m benchmarks.first_session [PYTHON]`.

PYTHON is that of the environment in which sacm was installed; default: this one. Prints every
command, what it answered and how long it took, for docs/start.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COMMANDS = (
    "sacm quality my.csv",
    "sacm train forecasting --data my.csv --size small --epochs 3",
    "sacm predict latest --coverage 0.8 --plot next.png --out next.csv",
    "head -3 next.csv",
    "sacm evaluate latest --coverage 0.8",
    "sacm runs report latest --out run.html",
)


def write_series(path: Path, rows: int = 1500) -> None:
    """Hours of a load and a temperature: a daily wave with noise."""
    time_of = np.arange(rows)
    noise = np.random.default_rng(0).normal(size=(2, rows))
    wave = np.sin(2 * np.pi * time_of / 24)
    load, heat = 40 + 6 * wave + 2 * noise[0], 8 - 3 * wave + noise[1]
    stamps = np.datetime64("2024-03-01T00:00:00") + time_of.astype("timedelta64[h]")
    texts = (str(stamp).replace("T", " ") for stamp in stamps)
    lines = [f"{t},{a:.2f},{b:.2f}" for t, a, b in zip(texts, load, heat, strict=True)]
    path.write_text("\n".join(["date,load,temperature", *lines]) + "\n", encoding="utf-8")


def record(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[str, float]:
    """What a command prints, and its seconds."""
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    return done.stdout, time.perf_counter() - started


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    environment = {**os.environ, "COLUMNS": "120"}
    environment.pop("PYTHONPATH", None)  # what was installed, not what lies here
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_series(folder / "my.csv")

        def yardstick() -> None:
            _, seconds = record([python, "-c", "import torch"], folder, environment)
            load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
            print(f"# import torch: {seconds:.1f} s; load {load}\n")

        yardstick()
        for command in COMMANDS:
            words = command.split()
            own = [python, "-m", *words] if words[0] == "sacm" else words
            text, seconds = record(own, folder, environment)
            lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
            print(f"$ {command}\n{lines}\n# {seconds:.0f} s\n", flush=True)
        yardstick()


if __name__ == "__main__":
    main()
