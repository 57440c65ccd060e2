"""``seqlab tag``: label a file or standard input, in bounded memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqlab.cli import _console, _labelers, _read_options
from seqlab.cli._errors import CommandError, check_output, naming_output, print_message
from seqlab.cli._interrupts import begin_work

if TYPE_CHECKING:
    from seqlab.cli._input import InputSequence
    from seqlab.cli._predictions import Prediction

HELP = """
Label a file or standard input.

The output is the input with the predicted label as an additional last column. The input may have a label
column or not. It is processed in small parts, so that it may be of any size.

In CoNLL-U files the label field is replaced instead, and --proba writes Proba= into MISC.

  [bold]seqlab tag address.seqlab new.txt > labelled.txt[/bold]
  [bold]cat *.txt | seqlab tag address.seqlab --proba[/bold]
  [bold]echo "10 Downing St, London" | seqlab tag address.seqlab -f text --pretty[/bold]
"""


def tag(
    model: Annotated[str, typer.Argument(help="Model file of seqlab train.")],
    file: Annotated[
        str, typer.Argument(help="File to label (also .gz, .xz, .bz2), or - for standard input.")
    ] = "-",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write.", show_default="standard output"),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", "-p", help="Add a column with the probability of the label.")
    ] = False,
    nbest: Annotated[
        int,
        typer.Option(
            "--nbest",
            "-n",
            min=0,
            help="The N best labelings of each sequence, each after a line '# rank probability' "
            "('# rank score' for a perceptron, which has no probabilities).",
        ),
    ] = 0,
    constraints: Annotated[
        str | None,
        typer.Option(
            "--constraints", help="Allow only labelings of this tag scheme, for example IOB2."
        ),
    ] = None,
    pretty: Annotated[
        bool,
        typer.Option(
            "--pretty", help="Show label strips instead of columns, to read in a terminal."
        ),
    ] = False,
    unlabeled: Annotated[
        bool,
        _read_options.option(
            "--unlabeled", help="The file has no labels; needed only for crfsuite files."
        ),
    ] = False,
    jobs: _labelers.JobsOption = -1,
    limit: _read_options.LimitOption = None,
    format: Annotated[
        str,
        _read_options.option(
            "--format",
            "-f",
            help="As in train, or text: one sequence of words per line, with , and ; split off; "
            "auto: the format of the training file.",
        ),
    ] = "auto",
    label_column: _read_options.LabelOption = None,
    separator: _read_options.SeparatorOption = "auto",
    comment: _read_options.CommentOption = None,
    encoding: _read_options.ModelEncodingOption = None,
) -> None:
    """Label a file; see `HELP`."""
    if output is not None:
        check_output(output)
    if pretty and (nbest or output is not None):
        raise CommandError("--pretty cannot be combined with --nbest or --output")

    from seqlab.cli._files import get_labeler, load_model
    from seqlab.cli._input import iter_chunks, open_sequences
    from seqlab.cli._predictions import Predictor, make_formatter
    from seqlab.data.io.streams import open_writer

    loaded = load_model(model, limit)
    labeler = get_labeler(loaded)
    _labelers.set_supported_params(labeler, n_jobs=jobs)
    # Strips show probabilities if the model has them.
    with_proba = proba or (pretty and hasattr(loaded, "predict_proba"))
    predictor = Predictor(loaded, proba=with_proba, nbest=nbest, constraints=constraints)
    if with_proba and type(labeler).__name__ == "StructuredPerceptron":
        print_message("note: probabilities of a StructuredPerceptron are not calibrated")
    options = _read_options.load_read_options(
        loaded, format, label_column, separator, comment, encoding
    )
    if file == "-" and sys.stdin is not None and sys.stdin.isatty():
        _console.stderr().print("reading standard input; end it with Ctrl-D", style="dim")
    labeled = False if unlabeled else None if label_column is None else True
    sequences, source = open_sequences(
        file, options, loaded, labeled=labeled, hint=format == "auto"
    )
    begin_work()
    if pretty:
        _print_strips(predictor, sequences, source)
        return
    format_sequence = make_formatter(options, predictor)
    with (
        naming_output(output),
        open_writer("-" if output is None else output, options.encoding) as write,
    ):
        for chunk in iter_chunks(sequences, source):
            write("".join(map(format_sequence, chunk, predictor.predict(chunk, source.name))))
            if output is None:
                sys.stdout.flush()


def _print_strips(predictor: Any, sequences: Any, source: Any) -> None:
    from seqlab.cli._input import iter_chunks
    from seqlab.inspection.terminal import LabelStrip, assign_colours

    console = _console.stdout()
    colours = assign_colours(map(str, predictor.classes))
    for chunk in iter_chunks(sequences, source):
        predictions: list[Prediction] = predictor.predict(chunk, source.name)
        sequence: InputSequence
        for sequence, prediction in zip(chunk, predictions, strict=True):
            if sequence.words:
                labels, _ = prediction.labelings[0]
                confidence = prediction.confidence(0)
                strip = LabelStrip(sequence.words, labels, confidence, colours=colours)
                console.print(strip)
                console.print()
