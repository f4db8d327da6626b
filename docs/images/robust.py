"""Make the pictures of docs/results.md: `python docs/images/robust.py`.

They show the results in results/robust.
"""

from __future__ import annotations

from pathlib import Path

from sacm.metrics.catalogue import metric
from sacm_lab.commands import Asked, collect_rows, owner_of
from sacm_lab.experiment import Part
from sacm_lab.paper.figures.gains import gain_figure
from sacm_lab.report import pair_experiment
from sacm_lab.robust.commands import widen
from sacm_lab.robust.protocols import PROTOCOLS

HERE = Path(__file__).parent


def main() -> None:
    """Draw the gains of every protocol by data set and network."""
    names = PROTOCOLS.names()
    folder = HERE.parents[1] / "results" / "robust"
    for protocol in PROTOCOLS.values():
        files = [path for path in folder.glob("*.csv") if owner_of(path, names) == protocol.name]
        experiment = widen(protocol, Asked(Part(), ()), sorted(files))
        frame, _ = collect_rows(experiment, Part(), None, sorted(files))
        first = experiment.metrics[0]
        pairs = pair_experiment(experiment, frame)
        pairs = pairs[(pairs["metric"] == first) & ~pairs["strategy"].isin(experiment.references)]
        gains = {
            " ".join(map(str, place)): {
                name: rows["gain"].tolist() for name, rows in group.groupby("strategy", sort=False)
            }
            for place, group in pairs.groupby(["data", "backbone"], sort=False)
        }
        unit = "percentage points" if metric(first).share else "%"
        figure = gain_figure(gains, unit=unit, title=f"{protocol.title}: {metric(first).label}")
        figure.savefig(HERE / f"robust-{protocol.name}.png", dpi=130)


if __name__ == "__main__":
    main()
