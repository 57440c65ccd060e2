"""The program: its commands, its help, and the one place where errors are handled."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import seqlab
from seqlab.cli import datasets, demo, evaluate, inspect, reproduce, tag, train
from seqlab.cli._command import Command, StartingCommand
from seqlab.cli._console import format_help
from seqlab.cli._errors import (
    DEBUG,
    FAILURE,
    INTERRUPTED,
    TERMINATED,
    USAGE,
    discard_stdout,
    one_line_warnings,
    print_message,
    report_error,
)
from seqlab.cli._interrupts import ignore_signals, was_terminated
from seqlab.cli._labelers import parameter_names
from seqlab.utils.streams import replace_closed_streams

# The base class of typer's usage errors: typer comes with its own click or uses the installed one.
_ClickException: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_HELP = """
Label sequences: addresses, references, mails, logs, signals.

A file has one token per line, with columns separated by spaces or tabs, the label in the last column,
and a blank line between sequences. Get started in five minutes, without Python:

  [bold]seqlab train addresses.conll -o address.seqlab[/bold]
  [dim]train a model; the default features suit text[/dim]

  [bold]seqlab tag address.seqlab new.txt --proba[/bold]
  [dim]label a file or standard input, with probabilities[/dim]

  [bold]seqlab evaluate address.seqlab test.conll[/bold]
  [dim]precision, recall and F1 with confidence intervals; most frequent confusions[/dim]

  [bold]seqlab inspect address.seqlab[/bold]
  [dim]the strongest features and transitions of each label[/dim]

No data yet? [bold]seqlab demo[/bold] shows everything on generated addresses.
"""


class Program(TyperGroup):
    """The group of commands; turns every error into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; see `seqlab.cli._errors` for the exit codes."""
        given = list(sys.argv[1:] if args is None else args)
        debug = os.environ.get(DEBUG)
        if "--debug" in given:  # anywhere: users add it at the end after an error
            given.remove("--debug")
            os.environ[DEBUG] = "1"
        try:
            code = super().main(given, prog_name or "seqlab", complete_var, False, **extra)
            sys.stdout.flush()
        except OSError as error:  # standard output has gone, or is full
            code = report_error(error)
            discard_stdout()
        except SystemExit as error:
            # In this mode click and rich exit only at a broken pipe, for example while printing help.
            code = report_error(BrokenPipeError()) if error.code == FAILURE else error.code
        except _ClickException as error:
            code = _report_usage_error(error)
        except typer.Abort:
            code = report_error(KeyboardInterrupt())
        finally:
            gc.unfreeze()  # what a command froze, because the process may continue
            if debug is None:
                os.environ.pop(DEBUG, None)
        code = code if isinstance(code, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the command of a parsed command line."""
        try:
            with one_line_warnings():
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except (typer.Exit, typer.Abort, _ClickException):
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report_error(error)) from None


def _report_usage_error(error: Any) -> int:
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "seqlab"
    unknown = getattr(error, "option_name", None)  # of an option that does not exist
    if context is not None and context.info_name == "train" and isinstance(unknown, str):
        name = unknown.lstrip("-").replace("-", "_")
        if name in parameter_names():
            message = f"No such option: {unknown}; set parameters of the model with -p {name}=VALUE"
    print_message(f"{message} (see {command} --help)")
    return USAGE


app = typer.Typer(
    name="seqlab",
    cls=Program,
    help=format_help(_HELP),
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    (train.train, train.HELP, StartingCommand),
    (tag.tag, tag.HELP, StartingCommand),
    (evaluate.evaluate, evaluate.HELP, StartingCommand),
    (inspect.inspect, inspect.HELP, StartingCommand),
    (demo.demo, demo.HELP, Command),
    (reproduce.reproduce, reproduce.HELP, Command),
)
for _function, _help, _class in _COMMANDS:
    app.command(cls=_class, help=format_help(_help), rich_help_panel="Commands")(_function)
app.add_typer(datasets.app, name="datasets", rich_help_panel="Commands")


@app.callback(invoke_without_command=True)
def _program(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of errors; allowed anywhere on the line."),
    ] = False,
) -> None:
    if version:
        print(f"seqlab {seqlab.__version__}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help(), end="")


def run() -> None:
    """Run the command line of the process, after `seqlab.cli._interrupts.exit_on_signals`."""
    try:
        replace_closed_streams()
        app()
    except KeyboardInterrupt as interrupt:  # outside any command
        code = report_error(interrupt)
        sys.exit(TERMINATED if was_terminated() else code)
    except SystemExit as end:
        if end.code == INTERRUPTED and was_terminated():
            sys.exit(TERMINATED)
        raise
    finally:
        ignore_signals()
        gc.freeze()  # no last scan: the system frees the memory at once
