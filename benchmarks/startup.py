"""How long commands that train nothing take, as ratios to `python -c "import torch"`.

Processes run turn by turn. PYTHONPATH chooses the code that is measured.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import make_parser
from benchmarks.timing import interleave, ratio

_RUN = "import sys; from sacm.cli.main import main; sys.argv = ['sacm', *sys.argv[1:]]; main()"


def call(*arguments: str) -> None:
    """Run Python once, silently; a command that fails has no time."""
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def write_series(path: Path) -> None:
    """A thousand hours of two channels."""
    time = np.arange(1000)
    stamps = np.datetime64("2024-01-01T00") + time.astype("timedelta64[h]")
    noise = np.random.default_rng(0).normal(size=(2, 1000))
    load, heat = np.sin(2 * np.pi * time / 24) + 0.2 * noise
    rows = zip(stamps, load, heat, strict=True)
    text = "\n".join(f"{when},{a:.4f},{b:.4f}" for when, a, b in rows)
    path.write_text(f"date,load,heat\n{text}\n", encoding="utf-8")


def main(rounds: int = 7) -> None:
    with tempfile.TemporaryDirectory() as folder:
        series, runs = Path(folder) / "my.csv", Path(folder) / "runs"
        write_series(series)
        sizes = ("--size", "small", "--epochs", "1", "--input-len", "48", "--horizon", "12")
        place = ("--data", str(series), "--runs", str(runs))
        call("-c", _RUN, "train", "forecasting", *place, *sizes)
        run = str(next(runs.iterdir()))
        commands = {
            "--help": ("--help",),
            "strategies": ("strategies",),
            "score": ("score", str(series)),
            "quality": ("quality", str(series)),
            "predict": ("predict", run),
            "evaluate": ("evaluate", run),
            "paper plan": ("paper", "run", "real_forecasting", "--plan", "--runs", folder),
        }
        reference = {"import torch": lambda: call("-c", "import torch")}
        measured = {
            name: lambda arguments=arguments: call("-c", _RUN, *arguments)
            for name, arguments in commands.items()
        }
        seconds = interleave({**reference, **measured}, rounds=rounds, warmup=1)
    base = seconds["import torch"]
    print(f"{'command':12} {'s':>6} {'s beyond torch':>15}   ratio to `import torch` [quartiles]")
    for name, own in seconds.items():
        beyond = float(np.median(np.subtract(own, base)))
        print(f"{name:12} {np.median(own):6.2f} {beyond:15.2f}   {ratio(own, base)}")


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
