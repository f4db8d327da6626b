"""`sacm`: the command line. Nothing heavy is imported before a command runs.

A command is a function or a `typer.Typer`, registered by where it is; a plug-in does the same:
COMMANDS.register("mine", group="For research", help="What it does.")("my_package.commands:mine")
"""

from __future__ import annotations

import io
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from sacm.errors import RunError, SACMError, SACMWarning
from sacm.registry import COMMANDS

GROUPS = ("With a table of your own", "In operation", "For research")
ANALYSIS, OPERATION, RESEARCH = GROUPS
_FIRST_OPTIONS = 6  # that the help of a command shows before headings
_INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended

for _group, _place, _help in (
    (ANALYSIS, "quality:quality", "Find broken values in a table, or wrong labels."),
    (ANALYSIS, "quality:rules", "Write a file of rules for the guard, to edit."),
    (ANALYSIS, "train:train", "Train a network, test it, and keep the run."),
    (ANALYSIS, "use:predict", "Forecast, classify or detect with a run."),
    (ANALYSIS, "use:evaluate", "Test a run again, also on other data."),
    (ANALYSIS, "quality:score", "Rank windows of a series by unreliability."),
    (OPERATION, "runs:runs", "List, show, report and remove runs."),
    (OPERATION, "use:backtest", "Forecast the past from several origins."),
    (OPERATION, "use:export", "Write the network of a run for other programs."),
    (RESEARCH, "train:compare", "Compare strategies on the same seeds."),
    (RESEARCH, "train:tune", "Search settings by validation results."),
    (RESEARCH, "catalogues:backbones", "List the networks."),
    (RESEARCH, "catalogues:strategies", "List the strategies."),
):
    _name = _place.partition(":")[2]
    COMMANDS.register(_name, group=_group, help=_help)(f"sacm.cli.{_place}")


class LazyGroup(TyperGroup):
    """Imports the file of a command when the command runs, not to list it in the help."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List all commands by group; groups that plug-ins name themselves come last."""
        named = {name: COMMANDS.entry(name).group for name in COMMANDS.names()}
        groups = dict.fromkeys([*GROUPS, *named.values()])
        return [name for group in groups for name in COMMANDS.names(group)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give a command without its options, which is what the list of commands shows."""
        entry = COMMANDS.entry(cmd_name)
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.group or None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import a command and make it one of Typer's; its help begins with six options."""
        name, group = args[0], COMMANDS.get(args[0])
        if not isinstance(group, typer.Typer):
            function, group = group, typer.Typer(add_completion=False)
            group.command()(function)
        command = typer.main.get_command(group)
        command.name = name
        for each in (command, *getattr(command, "commands", {}).values()):
            options = [option for option in each.params if option.param_type_name == "option"]
            for option in [o for o in options if not o.rich_help_panel][_FIRST_OPTIONS:]:
                option.rich_help_panel = "More options"
        return name, command, args[1:]


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from sacm import __version__

        typer.echo(f"sacm {__version__}")
        raise typer.Exit


_Version = typer.Option("--version", callback=show_version, is_eager=True, help="The version.")


@app.callback()
def sacm(version: Annotated[bool, _Version] = False) -> None:
    """Robust deep learning on time series.

    Example: sacm train forecasting --data my.csv
    """


def main() -> NoReturn:
    """Run the command line: exit code 2 for what the user can mend, 1 for a failed run."""
    show_other = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, SACMWarning):  # a sentence for users, without file and line
            typer.echo(f"Warning: {message}", err=True)
        else:
            show_other(message, category, *place, **options)

    for stream in (sys.stdout, sys.stderr):
        # Terminals without UTF-8 show a question mark for what they lack.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.showwarning = show
        try:
            code = app(prog_name="sacm", standalone_mode=False)
        except (Exception, KeyboardInterrupt) as error:
            sentence, code = explain(error)
            if sentence is None:
                raise
            if sentence:
                typer.echo(f"Error: {sentence}", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def explain(error: BaseException) -> tuple[str | None, int]:
    """Give the sentence and exit code of an error; no sentence for one that is a bug."""
    if isinstance(error, SACMError):
        return str(error), 1 if isinstance(error, RunError) else 2
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        path = "sacm" if context is None else context.command_path
        message = error.format_message().rstrip(".")  # empty if help has been printed
        return message and f"{message}: see `{path} --help`.", 2
    if isinstance(error, typer.Abort):
        return "stopped.", 1
    if isinstance(error, KeyboardInterrupt):
        return "stopped: the same command continues a training run.", _INTERRUPTED
    if isinstance(error, OSError) and error.strerror and not isinstance(error, BrokenPipeError):
        path = "" if error.filename is None else f"{error.filename}: "
        return f"{path}{error.strerror.lower()}.", 1
    text = str(error)
    if isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text:
        return "not enough memory: use a smaller network, batch or window, or fewer rows.", 1
    return None, 1
