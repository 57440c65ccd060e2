"""``seqlab tag``: labels for a file or what comes through a pipe, in bounded memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqlab.cli import _console, _labelers, _reading
from seqlab.cli._errors import CommandError, check_output, say, writing_to

if TYPE_CHECKING:
    from seqlab.cli._answers import Answer
    from seqlab.cli._stream import Item

_HELP = """
Label a file, or what comes through a pipe.

The output is the input with the predicted label as one more column. The file may have its label
column or not. It is read and answered as it comes, so that its size does not matter.

Of CoNLL-U files the label field is replaced instead, and --proba writes Proba= into MISC.

  [bold]seqlab tag address.seqlab new.txt > labelled.txt[/bold]
  [bold]cat *.txt | seqlab tag address.seqlab --proba[/bold]
  [bold]echo "10 Downing St, London" | seqlab tag address.seqlab -f text --pretty[/bold]
"""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("tag", help=_console.teach(_HELP), rich_help_panel="Commands")(tag)


def tag(
    model: Annotated[str, typer.Argument(help="Model file, from seqlab train.")],
    file: Annotated[str, typer.Argument(help="File to label (also .gz, .xz, .bz2), or - .")] = "-",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else standard output.")
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", "-p", help="Add a column: probability of the label.")
    ] = False,
    nbest: Annotated[
        int,
        typer.Option(
            "--nbest",
            "-n",
            min=0,
            help="The N best labelings of each sequence, each under a line '# rank probability' "
            "(a perceptron's score, as it has no probability).",
        ),
    ] = 0,
    constraints: Annotated[
        str | None,
        typer.Option(
            "--constraints", help="Only labelings that a tag scheme allows, for example IOB2."
        ),
    ] = None,
    pretty: Annotated[
        bool, typer.Option("--pretty", help="Show label strips for people instead of columns.")
    ] = False,
    unlabeled: Annotated[
        bool,
        typer.Option(
            "--unlabeled",
            help="The file has no labels (needed for crfsuite files; else found out).",
            rich_help_panel="Reading",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help="As in train, or text: a sequence of words a line, punctuation (, and ;) is cut off "
            "the words; auto: as the training file.",
            rich_help_panel="Reading",
        ),
    ] = "auto",
    label_column: _reading.LabelOption = None,
    separator: _reading.SeparatorOption = "auto",
    comment: _reading.CommentOption = None,
    encoding: _reading.EncodingOption = "utf-8",
) -> None:
    """Label a file; see `_HELP`."""
    if output is not None:
        check_output(output)
    if pretty and (nbest or output is not None):
        raise CommandError("--pretty goes to the terminal, without --nbest and --output")

    from seqlab.cli._answers import Answerer, renderer
    from seqlab.cli._files import labeler_of, load_model
    from seqlab.cli._stream import chunks, open_items
    from seqlab.data.io.streams import open_writer

    loaded = load_model(model)
    _labelers.set_if_known(labeler_of(loaded), n_jobs=jobs)
    answerer = Answerer(loaded, proba=proba or pretty, nbest=nbest, constraints=constraints)
    if (proba or pretty) and type(labeler_of(loaded)).__name__ == "StructuredPerceptron":
        say("note: probabilities of a StructuredPerceptron are not calibrated")
    reading = _reading.reading_of(loaded, format, label_column, separator, comment, encoding)
    if file == "-" and sys.stdin.isatty():
        _console.stderr().print("reading standard input; end it with Ctrl-D", style="dim")
    labeled = False if unlabeled else None if label_column is None else True
    items, source = open_items(file, reading, loaded, labeled=labeled, remembered=format == "auto")
    if pretty:
        _print_strips(answerer, items, source)
        return
    render = renderer(reading, answerer)
    with (
        writing_to(output),
        open_writer("-" if output is None else output, encoding) as write,
    ):
        for chunk in chunks(items, source):
            answers = answerer.answer(chunk, source.name)
            write("".join(map(render, chunk, answers)))
            if output is None:
                sys.stdout.flush()


def _print_strips(answerer: Any, items: Any, source: Any) -> None:
    from seqlab.cli._stream import chunks
    from seqlab.inspection.terminal import LabelStrip, colours_of

    console = _console.stdout()
    colours = colours_of(map(str, answerer.classes))
    for chunk in chunks(items, source):
        answers: list[Answer] = answerer.answer(chunk, source.name)
        item: Item
        for item, answer in zip(chunk, answers, strict=True):
            if item.words:
                labels, _ = answer.labelings[0]
                strip = LabelStrip(item.words, labels, answer.confidence(0), colours=colours)
                console.print(strip)
                console.print()
