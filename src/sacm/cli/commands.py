"""The commands by name; a plug-in adds its own in the same way.

COMMANDS.register("mine", group=RESEARCH, help="What it does.")("my_package.commands:mine")

The value names a function, or a `typer.Typer` with commands of its own. It is imported when the
command runs; the help of `sacm` itself needs only the line given here.
"""

from __future__ import annotations

from sacm.registry import COMMANDS

ANALYSIS = "With a table of your own"
OPERATION = "In operation"
RESEARCH = "For research"
GROUPS = (ANALYSIS, OPERATION, RESEARCH)

for _group, _place, _help in (
    (ANALYSIS, "demo:demo", "Compare raw training with SACM and with the guard."),
    (ANALYSIS, "quality:quality", "Find broken values in a table, or wrong labels."),
    (ANALYSIS, "quality:rules", "Write a file of rules for the guard, to edit."),
    (ANALYSIS, "train:train", "Train a network, test it, and keep the run."),
    (ANALYSIS, "predict:predict", "Forecast, classify or detect with a run."),
    (ANALYSIS, "evaluate:evaluate", "Test a run again, also on other data."),
    (ANALYSIS, "score:score", "Rank windows of a series by unreliability."),
    (OPERATION, "runs:runs", "List, show, compare, report and remove runs."),
    (OPERATION, "backtest:backtest", "Forecast the past from several origins."),
    (OPERATION, "export:export", "Write the network of a run for other programs."),
    (RESEARCH, "compare:compare", "Compare strategies on the same seeds."),
    (RESEARCH, "tune:tune", "Search settings by validation results."),
    (RESEARCH, "catalogues:backbones", "List the networks."),
    (RESEARCH, "catalogues:strategies", "List the strategies."),
):
    _name = _place.partition(":")[2]
    COMMANDS.register(_name, group=_group, help=_help)(f"sacm.cli.{_place}")


def names() -> list[str]:
    """List all commands by group; groups that plug-ins name themselves come last."""
    groups = dict.fromkeys([*GROUPS, *(COMMANDS.entry(name).group for name in COMMANDS.names())])
    return [name for group in groups for name in COMMANDS.names(group)]
