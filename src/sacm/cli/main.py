"""`sacm`: the command line. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from sacm.cli import commands
from sacm.cli.commands import COMMANDS
from sacm.errors import RunError, SACMError, SACMWarning

_FIRST_OPTIONS = 6  # that the help of a command shows before headings
_INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


class LazyGroup(TyperGroup):
    """Imports the file of a command when the command runs, not to list it in the help."""

    def list_commands(self, ctx: Any) -> list[str]:
        return commands.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give a command without its options, which is what the list of commands shows."""
        line, group = COMMANDS.entry(cmd_name).help, COMMANDS.entry(cmd_name).group
        return TyperCommand(cmd_name, help=line, rich_help_panel=group or None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return args[0], load_command(args[0]), args[1:]


def load_command(name: str) -> Any:
    """Import a command and make it one of Typer's; its help begins with six options."""
    group = COMMANDS.get(name)
    if not isinstance(group, typer.Typer):
        function, group = group, typer.Typer(add_completion=False)
        group.command()(function)
    command = typer.main.get_command(group)
    command.name = name
    for each in (command, *getattr(command, "commands", {}).values()):
        options = [option for option in each.params if option.param_type_name == "option"]
        plain = [option for option in options if not getattr(option, "rich_help_panel", None)]
        for option in plain[_FIRST_OPTIONS:]:
            option.rich_help_panel = "More options"
    return command


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


@app.callback()
def sacm(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=show_version, is_eager=True),
    ] = False,
) -> None:
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
