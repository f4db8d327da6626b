"""Make the pictures of docs/results.md: `python docs/images/robust.py`.

They show the findings in results/robust.
"""

from __future__ import annotations

from pathlib import Path

from sacm.reports.named.diagram import rank_caption, rank_diagram
from sacm_lab.robust.gain_figure import gain_caption, gain_figure
from sacm_lab.robust.join import read_protocols

HERE = Path(__file__).parent


def main() -> None:
    """Draw gains and ranks of every protocol that the page shows, and print their captions."""
    for found in read_protocols(HERE.parents[1] / "results" / "robust"):
        name = found.findings.name
        gain_figure(found).savefig(HERE / f"robust-{name}.png", dpi=130)
        print(f"{name}: {gain_caption(found)}")
        ranks = found.findings.ranks
        if name == "T" and ranks is not None:
            rank_diagram(ranks).savefig(HERE / "robust-ranks.png", dpi=130)
            print(f"{name}: {rank_caption(ranks)}")


if __name__ == "__main__":
    main()
