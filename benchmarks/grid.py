"""What a second worker brings to a grid of runs."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks import make_parser
from sacm_lab.engines import make_engine
from sacm_lab.experiment import Part, make_jobs
from sacm_lab.grid import run_jobs
from sacm_lab.paper.catalogue import EXPERIMENTS

SEEDS = tuple(range(8))


def seconds_of(workers: int) -> float:
    """The same small grid from nothing, the start of the workers included."""
    part = Part(
        datasets=("Synth-12@0.5",),
        backbones=("iTransformer",),
        horizons=(96,),
        seeds=SEEDS,
        size="small",
        settings={"epochs": 12, "stride": 4},
    )
    jobs, _ = make_jobs(EXPERIMENTS.get("synth12"), part)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        tally = run_jobs(jobs, make_engine("local", workers=workers), Path(folder))
        assert tally.done == 2 * len(SEEDS), tally
        return time.perf_counter() - started


def main(rounds: int = 1) -> None:
    print(f"a grid of {2 * len(SEEDS)} runs (iTransformer small, Synth-12, 12 epochs), seconds")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers, values in seconds.items():
            values.append(seconds_of(workers))
            print(f"  {workers} at once  {values[-1]:6.1f}", file=sys.stderr, flush=True)
    best = {workers: min(values) for workers, values in seconds.items()}
    for workers, value in best.items():
        print(f"  {workers} at once  {value:6.1f}")
    print(f"  two workers do {best[1] / best[2]:.2f} times the work of one")


if __name__ == "__main__":
    make_parser(__doc__).parse_args()
    main()
