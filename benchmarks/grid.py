"""What a second worker brings to a grid, and what Ray costs against processes of this machine."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from sacm.experiments.engines import make_engine
from sacm.experiments.grid import Grid
from sacm.experiments.grid_points import Selection
from sacm.experiments.named.experiment import points
from sacm.experiments.plan import make_plan
from sacm.experiments.run_plan import run_plan
from sacm_lab.paper.experiments.catalogue import find

SEEDS = tuple(range(8))
WAYS = (("local", 1), ("local", 2), ("ray", 2))


def seconds_of(engine: str, workers: int) -> float:
    """The same small grid from nothing, the start of the workers included."""
    experiment = find("synth12")
    selection = Selection(
        datasets=("Synth-12@0.5",),
        backbones=("iTransformer",),
        horizons=(96,),
        seeds=SEEDS,
        sizes=("small",),
        settings={"epochs": 12, "stride": 4},
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plan = make_plan(Grid(selection, folder).groups(points(experiment, selection)), folder)
        started = time.perf_counter()
        tally = run_plan(plan, make_engine(engine, workers=workers), folder, workers=workers)
        assert tally.done == 2 * len(SEEDS), tally
        return time.perf_counter() - started


def main(rounds: int = 1) -> None:
    print(f"a grid of {2 * len(SEEDS)} runs (iTransformer small, Synth-12, 12 epochs), seconds")
    seconds: dict[tuple[str, int], list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for engine, workers in WAYS:
            seconds[engine, workers].append(seconds_of(engine, workers))
            taken = seconds[engine, workers][-1]
            print(f"  {engine:5} {workers} at once  {taken:6.1f}", file=sys.stderr, flush=True)
    best = {way: min(values) for way, values in seconds.items()}
    for (engine, workers), value in best.items():
        print(f"  {engine:5} {workers} at once  {value:6.1f}")
    print(f"  two workers do {best['local', 1] / best['local', 2]:.2f} times the work of one")
    print(f"  Ray takes {best['ray', 2] / best['local', 2]:.2f} of the time of local processes")


if __name__ == "__main__":
    main()
