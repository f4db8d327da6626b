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

_BUILT_IN = {
    ANALYSIS: (
        ("demo", "sacm.cli.demo:demo", "Compare raw training with SACM and with the guard."),
        ("quality", "sacm.cli.quality:quality", "Find broken values in a table, or wrong labels."),
        ("rules", "sacm.cli.quality:rules", "Write a file of rules for the guard, to edit."),
        ("train", "sacm.cli.train:train", "Train a network, test it, and keep the run."),
        ("predict", "sacm.cli.predict:predict", "Forecast, classify or detect with a run."),
        ("evaluate", "sacm.cli.evaluate:evaluate", "Test a run again, also on other data."),
        ("score", "sacm.cli.score:score", "Rank windows of a series by unreliability."),
    ),
    OPERATION: (
        ("runs", "sacm.cli.runs:app", "List, show, compare, report and remove runs."),
        ("backtest", "sacm.cli.backtest:backtest", "Forecast the past from several origins."),
        ("export", "sacm.cli.export:export", "Write the network of a run for other programs."),
    ),
    RESEARCH: (
        ("compare", "sacm.cli.compare:compare", "Compare strategies on the same seeds."),
        ("tune", "sacm.cli.tune:tune", "Search settings by validation results."),
        ("backbones", "sacm.cli.catalogues:backbones", "List the networks."),
        ("strategies", "sacm.cli.catalogues:strategies", "List the strategies."),
    ),
}
for _group, _commands in _BUILT_IN.items():
    for _name, _place, _help in _commands:
        COMMANDS.register(_name, group=_group, help=_help)(_place)


def names() -> list[str]:
    """List all commands by group; groups that plug-ins name themselves come last."""
    groups = dict.fromkeys([*GROUPS, *map(COMMANDS.group, COMMANDS.names())])
    return [name for group in groups for name in COMMANDS.names(group)]
