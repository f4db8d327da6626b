"""Which data sets strategies were chosen on, and which confirm the choice."""

from __future__ import annotations

from collections.abc import Sequence

from sacm.experiments.named.findings import Group

# Named before anything was run: results/quality/README.md.
CHOSEN_ON = {
    "T": ("ETTh1", "Weather", "Exchange Rate", "ILI"),
    "N": ("BasicMotions", "Epilepsy"),
    "C": ("SMD@machine-1-1", "SMD@machine-2-1"),
}


def split_halves(protocol: str, groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """Groups on data sets that strategies were chosen on, and all others.

    Args:
        protocol: Name of the protocol; one without such halves has two empty lists.
        groups: Any groups of it.
    """
    chosen_on = CHOSEN_ON.get(protocol)
    if chosen_on is None:
        return [], []
    chosen = [group for group in groups if group.keys["data"] in chosen_on]
    return chosen, [group for group in groups if group.keys["data"] not in chosen_on]
