"""`sacm robust list`: the protocols there are."""

from __future__ import annotations

from sacm.cli.options import AsJson


def list_command(as_json: AsJson = False) -> None:
    """The protocols there are, and what they run.

    Example: sacm robust list
    """
    from sacm.cli.output import show_json, show_texts
    from sacm_lab.robust.protocols import PROTOCOLS

    if as_json:
        show_json(
            [
                {
                    "name": one.name,
                    "title": one.title,
                    "task": one.task,
                    "data": list(one.datasets),
                    "backbones": list(one.backbones),
                    "strategies": list(one.strategies),
                }
                for one in PROTOCOLS.values()
            ]
        )
        return
    rows = [
        (one.name, one.title, ", ".join(one.datasets), ", ".join(one.backbones))
        for one in PROTOCOLS.values()
    ]
    show_texts(("protocol", "what", "data", "backbones"), rows)
