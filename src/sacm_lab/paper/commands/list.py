"""`sacm paper list`: the experiments and figures there are."""

from __future__ import annotations

from sacm.cli.options import AsJson


def list_command(as_json: AsJson = False) -> None:
    """The experiments and figures there are.

    Example: sacm paper list
    """
    from sacm.cli.output import show_json, show_texts
    from sacm_lab.paper import figures
    from sacm_lab.paper.experiments.catalogue import EXPERIMENTS

    drawings = [(name, figures.describe(name)) for name in figures.names()]
    if as_json:
        experiments = [
            {"name": one.name, "title": one.title, "where": one.where, "task": one.task}
            for one in EXPERIMENTS.values()
        ]
        drawn = [{"name": name, "title": title} for name, title in drawings]
        show_json({"experiments": experiments, "figures": drawn})
        return
    rows = [(one.name, one.title, one.where) for one in EXPERIMENTS.values()]
    show_texts(("experiment", "what", "where"), rows)
    show_texts(("figure", "what"), drawings)
