"""The program: its commands, its help, and the one place where errors are answered."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import seqlab
from seqlab.cli import datasets, demo, evaluate, inspect, reproduce, tag, train
from seqlab.cli._console import teach
from seqlab.cli._errors import DEBUG, FAILURE, USAGE, answer, one_line_warnings, say
from seqlab.cli._garbage import leave_the_rest, look_again

# The base of typer's usage errors, whichever click it brings.
_ClickException: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_HELP = """
Label sequences: addresses, references, mails, logs, signals.

A file has one token a line, its columns separated by spaces or tabs, the label last, and a blank
line between sequences. Five minutes, no Python:

  [bold]seqlab train addresses.conll -o address.seqlab[/bold]
  [dim]learn from the file; a good default template for text[/dim]

  [bold]seqlab tag address.seqlab new.txt --proba[/bold]
  [dim]label a file without labels, or what comes through a pipe[/dim]

  [bold]seqlab evaluate address.seqlab test.conll[/bold]
  [dim]precision, recall, F1 with confidence intervals; worst confusions[/dim]

  [bold]seqlab inspect address.seqlab[/bold]
  [dim]what each label looks for, which transitions it likes[/dim]

No data at hand? [bold]seqlab demo[/bold] shows all of it on generated addresses.
"""


class Program(TyperGroup):
    """The group of commands; answers every error with one line and an exit code."""

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
        if "--debug" in given:  # anywhere, as one adds it when something has gone wrong
            given.remove("--debug")
            os.environ[DEBUG] = "1"
        try:
            code = super().main(given, prog_name or "seqlab", complete_var, False, **extra)
            sys.stdout.flush()
        except BrokenPipeError as error:
            code = answer(error)
        except SystemExit as error:
            # Asked not to exit, click and rich do so at a broken pipe only (of the help, say).
            code = answer(BrokenPipeError()) if error.code == FAILURE else error.code
        except _ClickException as error:
            code = _answer_usage(error)
        except typer.Abort:
            code = answer(KeyboardInterrupt())
        finally:
            look_again()
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
            raise typer.Exit(answer(error)) from None


def _answer_usage(error: Any) -> int:
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "seqlab"
    say(f"{message} (see {command} --help)")
    return USAGE


app = typer.Typer(
    name="seqlab",
    cls=Program,
    help=teach(_HELP),
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _module in (train, tag, evaluate, inspect, datasets, demo, reproduce):
    _module.register(app)


@app.callback(invoke_without_command=True)
def _program(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (anywhere on the line).")
    ] = False,
) -> None:
    if version:
        print(f"seqlab {seqlab.__version__}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help(), end="")


def main() -> None:
    """Entry point of the ``seqlab`` command."""
    try:
        app()
    except KeyboardInterrupt as interrupt:  # before any command has begun
        sys.exit(answer(interrupt))
    finally:
        leave_the_rest()
