"""`sacm`: the command line. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from sacm.errors import ArgumentError, SACMError, SACMWarning, did_you_mean

# Typer has click inside, under a private name; the root of its errors is found by one of them.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]


class CommandPlace(NamedTuple):
    """Where a command is: a function, or a Typer app with commands of its own."""

    module: str
    name: str


COMMANDS = {
    "demo": CommandPlace("sacm.cli.demo", "demo"),
    "train": CommandPlace("sacm.cli.train", "train"),
    "evaluate": CommandPlace("sacm.cli.evaluate", "evaluate"),
    "replay": CommandPlace("sacm.cli.replay", "replay"),
    "predict": CommandPlace("sacm.cli.predict", "predict"),
    "backtest": CommandPlace("sacm.cli.backtest", "backtest"),
    "compare": CommandPlace("sacm.cli.compare", "compare"),
    "tune": CommandPlace("sacm.cli.tune", "tune"),
    "runs": CommandPlace("sacm.cli.run_list", "app"),
    "export": CommandPlace("sacm.cli.export", "export"),
    "score": CommandPlace("sacm.cli.score", "score"),
    "quality": CommandPlace("sacm.cli.quality", "quality"),
    "corrupt": CommandPlace("sacm.cli.corrupt", "corrupt"),
    "data": CommandPlace("sacm.cli.data", "app"),
    "backbones": CommandPlace("sacm.cli.backbones", "backbones"),
    "strategies": CommandPlace("sacm.cli.strategies", "strategies"),
    "paper": CommandPlace("sacm_lab.paper.commands", "app"),
    "robust": CommandPlace("sacm_lab.robust.commands", "app"),
}


class LazyGroup(TyperGroup):
    """Imports the file of a command when the command is asked for, not to list it in the help."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; the commands are described by their docstrings, read from the files."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._listing:
            return TyperCommand(cmd_name, help=first_line(COMMANDS[cmd_name]))
        if cmd_name not in COMMANDS:
            hint, known = did_you_mean(cmd_name, COMMANDS), ", ".join(COMMANDS)
            raise ArgumentError(f"there is no command {cmd_name!r}.{hint} Commands: {known}.")
        place = COMMANDS[cmd_name]
        found = getattr(importlib.import_module(place.module), place.name)
        if not isinstance(found, typer.Typer):
            function, found = found, typer.Typer(add_completion=False)
            found.command()(function)
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def first_line(place: CommandPlace) -> str:
    """What a command does: the first line of its docstring, without importing its file."""
    spec = importlib.util.find_spec(place.module)
    assert spec is not None
    tree = ast.parse(Path(str(spec.origin)).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == place.name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    # A group of commands is described by its file, as in "`sacm data`: which data sets there are".
    line = (ast.get_docstring(tree) or "").partition("\n")[0].partition(": ")[2]
    return line[:1].upper() + line[1:]


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
    """Deep time-series models for data that are broken in places.

    Example: sacm train forecasting --data my.csv
    """


def main() -> None:
    """Run the command line: exit code 2 for what the user can mend, 1 for a failed run."""
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, SACMWarning):  # a sentence for users, without file and line
                typer.echo(f"Warning: {message}", err=True)
            else:
                show_other(message, category, *place, **options)

        warnings.showwarning = show
        write_what_can_be()
        run_command()


def write_what_can_be() -> None:
    """Let terminals without UTF-8 show a question mark for what they lack, instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def run_command() -> NoReturn:
    """Run the command of the command line and leave with its exit code."""
    try:
        code = app(prog_name="sacm", standalone_mode=False)
    except SACMError as error:
        from sacm.cli.wording import as_options

        fail(as_options(str(error)), 2 if isinstance(error, ArgumentError) else 1)
    except ClickException as error:
        fail(usage_sentence(error), 2)
    except typer.Abort:
        fail("stopped.", 1)
    except KeyboardInterrupt:
        fail("stopped: the same command continues a training run.", 130)
    except (OSError, MemoryError, RuntimeError) as error:
        sentence = resource_sentence(error)
        if sentence is None:
            raise
        fail(sentence, 1)
    sys.exit(code if isinstance(code, int) else 0)


def resource_sentence(error: Exception) -> str | None:
    """What the machine lacks, as a sentence; None if the error is another."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, BrokenPipeError):
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror.lower()}."
    if isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text:
        return "there is not enough memory: use a smaller network, batch or window, or fewer rows."
    return None


def usage_sentence(error: Any) -> str:
    """A usage error as one sentence that says where to look; empty if help has been printed."""
    context = getattr(error, "ctx", None)
    path = "sacm" if context is None else context.command_path
    message = error.format_message().rstrip(".")
    return message and f"{message}: see `{path} --help`."


def fail(sentence: str, code: int) -> NoReturn:
    """One sentence on standard error, and out."""
    if sentence:
        typer.echo(f"Error: {sentence}", err=True)
    sys.exit(code)
