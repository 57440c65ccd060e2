"""``seqlab evaluate``: scores of a model on a labelled file, with confidence intervals."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqlab.cli import _console, _labelers, _read_options
from seqlab.cli._errors import CommandError, print_message
from seqlab.cli._interrupts import begin_work
from seqlab.cli._suggestions import suggest

if TYPE_CHECKING:
    from seqlab.cli._input import InputSequence

CONFIDENCE = 0.95
_BAR = 22  # width of the F1 scale in characters
_SCHEMES = ("IO", "IOB1", "IOB2", "IOBES", "BILOU")
_PRED_COLUMNS = (-2, -1)
_CONLLU_ID = re.compile(r"1|0\.1|1-\d+")
_CONLLU_HEAD = re.compile(r"_|\d+")
HELP = """
Compare the labels predicted by a model with those in a file.

Tags of a scheme (B-NP, I-NP, O) are scored by phrase: precision, recall and F1, as in conlleval. Other
labels are scored by token. Intervals are 95 % bootstrap intervals over sequences.

  [bold]seqlab evaluate address.seqlab test.conll[/bold]
  [bold]seqlab tag address.seqlab test.conll | seqlab evaluate --pred -[/bold]
"""


@dataclass
class Evaluation:
    """Gold and predicted labels of a file, and the first place of each kind of error."""

    y_true: list[list[Any]]
    y_pred: list[list[Any]]
    places: dict[tuple[Any, Any], str]
    scheme: str | None


def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="Model file of seqlab train.", show_default=False)
    ] = None,
    file: Annotated[
        str | None,
        typer.Argument(help="Labelled file, or - for standard input.", show_default=False),
    ] = None,
    pred: Annotated[
        str | None,
        typer.Option(
            "--pred", help="Instead of MODEL and FILE: a file with gold and predicted columns."
        ),
    ] = None,
    gold_column: Annotated[
        int, typer.Option(help="Column of the gold label in the --pred file.")
    ] = _PRED_COLUMNS[0],
    pred_column: Annotated[
        int, typer.Option(help="Column of the predicted label in the --pred file.")
    ] = _PRED_COLUMNS[1],
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme", help="IOB1, IOB2, IOBES, BILOU or IO; none: score tokens; auto: detect."
        ),
    ] = "auto",
    constraints: Annotated[
        str | None,
        typer.Option("--constraints", help="Allow only labelings of this tag scheme, as in tag."),
    ] = None,
    worst: Annotated[int, typer.Option("--worst", min=0, help="Number of confusions to show.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    jobs: _labelers.JobsOption = -1,
    limit: _read_options.LimitOption = None,
    format: _read_options.ModelFormatOption = "auto",
    label_column: _read_options.LabelOption = None,
    separator: _read_options.SeparatorOption = "auto",
    comment: _read_options.CommentOption = None,
    encoding: _read_options.ModelEncodingOption = None,
) -> None:
    """Evaluate a model; see `HELP`."""
    if scheme not in ("auto", "none", *_SCHEMES):
        names = [*_SCHEMES, "none", "auto"]
        raise CommandError(f"--scheme: unknown scheme {scheme!r}{suggest(scheme, names)}")
    if pred is not None:
        if model is not None:
            raise CommandError("give either --pred FILE or MODEL and FILE, not both")
        if format not in ("auto", "columns"):
            raise CommandError("--pred: the file must be a column file")
        options = _read_options.make_read_options(
            pred, "columns", None, None, separator, comment, encoding or "utf-8"
        )
        options = replace(options, label=None)
        begin_work()
        result = _read_predictions(pred, options, gold_column, pred_column)
    else:
        if model is None or file is None:
            raise CommandError("give MODEL and FILE, or --pred FILE (see seqlab evaluate --help)")
        from seqlab.cli._files import get_labeler, load_model

        loaded = load_model(model, limit)
        _labelers.set_supported_params(get_labeler(loaded), n_jobs=jobs)
        options = _read_options.load_read_options(
            loaded, format, label_column, separator, comment, encoding
        )
        begin_work()
        result = evaluate_file(
            loaded, file, options, constraints=constraints, hint=format == "auto"
        )
    if scheme != "auto":
        result.scheme = None if scheme == "none" else scheme
    if as_json:
        print(json.dumps(_to_dict(result, worst), indent=2, ensure_ascii=False))
        return
    _print_report(result, worst)


def evaluate_file(
    model: Any,
    file: str,
    options: _read_options.ReadOptions,
    *,
    constraints: str | None = None,
    hint: bool = True,
) -> Evaluation:
    """Predict the labels of a file and collect gold and predicted labels."""
    from seqlab.cli._input import iter_chunks, open_sequences
    from seqlab.cli._predictions import Predictor
    from seqlab.cli._scheme import detect_scheme

    predictor = Predictor(model, proba=False, nbest=0, constraints=constraints)
    sequences, source = open_sequences(file, options, model, labeled=True, hint=hint)
    result = Evaluation([], [], {}, None)
    for chunk in iter_chunks(sequences, source):
        predictions = predictor.predict(chunk, source.name)
        for sequence, prediction in zip(chunk, predictions, strict=True):
            if sequence.words:
                _add(result, sequence, sequence.gold or [], prediction.labelings[0][0], source.name)
    seen = {label for labels in result.y_true for label in labels}
    result.scheme = detect_scheme(seen | set(map(str, predictor.classes)))
    return result


def evaluate_sequences(model: Any, X: Any, y: Any) -> Evaluation:
    """Predict the labels of sequences in memory and collect gold and predicted labels."""
    from seqlab.cli._scheme import detect_scheme

    gold = [list(labels) for labels in y]
    for index, labels in enumerate(gold):
        _check_known(labels, f"--dev: sequence {index}")
    predicted = [labels.tolist() for labels in model.predict(X)]
    seen = {str(label) for labels in gold for label in labels}
    return Evaluation(gold, predicted, {}, detect_scheme(seen | set(map(str, model.classes_))))


def _read_predictions(
    file: str, options: _read_options.ReadOptions, gold_column: int, pred_column: int
) -> Evaluation:
    from seqlab.cli._input import open_sequences
    from seqlab.cli._scheme import detect_scheme
    from seqlab.data.io import ReadError

    result = Evaluation([], [], {}, None)
    width = 0
    sequences, source = open_sequences(file, options, None, labeled=False)
    columns = {"--gold-column": gold_column, "--pred-column": pred_column}
    is_default = (gold_column, pred_column) == _PRED_COLUMNS
    try:
        for sequence in sequences:
            if is_default and not width:
                _reject_conllu([*sequence.before, *sequence.lines[:1]], source.name)
            if not sequence.words:
                continue
            width = len(sequence.tokens[0])
            for option, column in columns.items():
                if not -width <= column < width:
                    found = _console.format_count(width, "column")
                    raise CommandError(
                        f"{source.name}:{sequence.line}: {found}, but {option} is {column}"
                    )
            gold, predicted = (
                [token[column] for token in sequence.tokens] for column in columns.values()
            )
            _add(result, sequence, gold, predicted, source.name)
    except ReadError:
        if is_default and not width:
            _reject_conllu(source.pending, source.name)
        raise
    _reject_probabilities(result, source.name, gold_column, pred_column, width)
    labels = {label for part in (result.y_true, result.y_pred) for row in part for label in row}
    result.scheme = detect_scheme(labels)
    return result


def _reject_conllu(lines: list[str], file: str) -> None:
    """Raise an error if the first word is on a line of CoNLL-U."""
    first = next((line for line in lines if line.strip() and not line.startswith("# ")), "")
    fields = first.split("\t")
    if len(fields) == 10 and _CONLLU_ID.fullmatch(fields[0]) and _CONLLU_HEAD.fullmatch(fields[6]):
        raise CommandError(
            f"{file} looks like CoNLL-U, but --pred needs a column file; "
            "use seqlab evaluate MODEL gold.conllu"
        )


def _reject_probabilities(
    result: Evaluation, file: str, gold_column: int, pred_column: int, width: int
) -> None:
    """Raise an error if the predicted labels are numbers between 0 and 1 that are not gold labels."""
    predicted = [label for row in result.y_pred for label in row]
    if {label for row in result.y_true for label in row} & set(predicted):
        return
    numbers = [label for label in predicted if _is_probability(label)]
    if not numbers or len(numbers) < 0.95 * len(predicted):
        return
    message = (
        f"{file}: column {pred_column} seems to contain probabilities ({numbers[0]}), not labels"
    )
    label = pred_column - 1
    gold = gold_column - 1 if gold_column % width == label % width else gold_column
    if width > 2 and pred_column % width and gold_column % width:
        message += f"; tagged with --proba? use --gold-column {gold} --pred-column {label}"
    raise CommandError(message)


def _is_probability(text: str) -> bool:
    try:
        return "." in text and 0 <= float(text) <= 1
    except ValueError:
        return False


def _add(
    result: Evaluation, sequence: InputSequence, gold: list[Any], predicted: list[Any], file: str
) -> None:
    place = f"{file}:{sequence.line}" if sequence.line else file
    _check_known(gold, place)
    result.y_true.append(gold)
    result.y_pred.append(predicted)
    for t, pair in enumerate(zip(gold, predicted, strict=True)):
        if pair[0] != pair[1] and pair not in result.places:
            place = f"{file}:{sequence.line + t}" if sequence.line else file
            result.places[pair] = f"{sequence.words[t]} ({place})"


def _check_known(labels: list[Any], place: str) -> None:
    """Raise an error if a label is unknown (None) or a set of possible labels."""
    for t, label in enumerate(labels):
        if label is None or isinstance(label, set):
            raise CommandError(
                f"{place}: the label of step {t} is not known; scores need one label for each step"
            )


def _scores(result: Evaluation) -> tuple[Any, Any, float]:
    """Report with intervals, token accuracy with its interval, and sequence accuracy."""
    import numpy as np

    from seqlab.metrics import (
        Interval,
        bootstrap_interval,
        sequence_accuracy,
        span_report,
        token_accuracy,
        token_report,
    )

    y_true, y_pred = result.y_true, result.y_pred
    single = len(y_true) == 1  # nothing to resample: show the score as both ends of the interval
    options: dict[str, Any] = {"confidence": None if single else CONFIDENCE, "random_state": 0}
    if result.scheme is None:
        report = token_report(y_true, y_pred, **options)
    else:
        report = span_report(y_true, y_pred, result.scheme, **options)
    if single:
        print_message("note: the intervals have no meaning, because there is only one sequence")
        report = replace(report, intervals=np.stack([report.scores, report.scores]))
        score = token_accuracy(y_true, y_pred)
        accuracy = Interval(score, score, score)
    else:
        accuracy = bootstrap_interval(y_true, y_pred, "token_accuracy", **options)
    return report, accuracy, sequence_accuracy(y_true, y_pred)


def _to_dict(result: Evaluation, worst: int) -> dict[str, Any]:
    from seqlab.metrics import confusion

    report, accuracy, sequences = _scores(result)
    table = confusion(result.y_true, result.y_pred)
    return {
        "scheme": result.scheme,
        "sequences": len(result.y_true),
        "tokens": sum(map(len, result.y_true)),
        "confidence": CONFIDENCE,
        "token_accuracy": accuracy.score,
        "token_accuracy_interval": [accuracy.low, accuracy.high],
        "sequence_accuracy": sequences,
        "report": {str(name): row for name, row in report.to_dict().items()},
        "confusions": [
            {"gold": gold, "predicted": predicted, "count": n}
            for gold, predicted, n in table.worst(worst)
        ],
    }


def format_headline(result: Evaluation) -> str:
    """One line: F1 of phrases and token accuracy with their intervals, and sequence accuracy."""
    return _headline(result, *_scores(result))


def _headline(result: Evaluation, report: Any, accuracy: Any, sequences: float) -> str:
    tokens = (
        f"token accuracy [bold]{100 * accuracy.score:.2f}[/bold] "
        f"[dim]({100 * accuracy.low:.2f} to {100 * accuracy.high:.2f})[/dim]"
    )
    parts = [tokens, f"sequence accuracy [bold]{100 * sequences:.2f}[/bold]"]
    if result.scheme is not None:
        row = report.to_dict()["micro avg"]
        low, high = (100 * bound for bound in row["f1_interval"])
        f1 = f"F1 [bold]{100 * row['f1']:.2f}[/bold] [dim]({low:.2f} to {high:.2f})[/dim]"
        parts.insert(0, f1)
    return ", ".join(parts)


def _print_report(result: Evaluation, worst: int) -> None:
    from seqlab.metrics import confusion

    console = _console.stdout()
    report, accuracy, sequences = _scores(result)
    unit = "phrases" if result.scheme else "tokens"
    console.print()
    console.print(_headline(result, report, accuracy, sequences), soft_wrap=True)
    n_steps = sum(map(len, result.y_true))
    size = _console.format_size(len(result.y_true), n_steps)
    scored = f"scored by {unit[:-1]}" + (f" ({result.scheme})" if result.scheme else "")
    console.print(f"[dim]{size}, {scored}; 95 % bootstrap intervals over sequences[/dim]")
    console.print(_report_table(report, unit))
    errors = confusion(result.y_true, result.y_pred).worst(worst)
    if not errors:
        return
    table = _console.plain_table(
        title="Most frequent confusions", title_justify="left", title_style="bold"
    )
    table.add_column("tokens", justify="right")
    table.add_column("gold", style="green3")
    table.add_column("predicted", style="indian_red")
    table.add_column("first occurrence", style="dim", overflow="fold")
    for gold, predicted, n in errors:
        place = result.places.get((gold, predicted), "")
        table.add_row(f"{n:,}", *map(_console.escape_text, (gold, predicted, place)))
    console.print(table)


def _report_table(report: Any, unit: str) -> Any:
    table = _console.plain_table()
    table.add_column("")
    for name in ("precision", "recall", "F1"):
        table.add_column(name, justify="right")
    table.add_column("95 % interval", justify="center", style="dim")
    lowest = _scale_start(report)
    table.add_column(f"{lowest}{'100':>{_BAR - len(str(lowest))}}", width=_BAR, header_style="dim")
    table.add_column(unit, justify="right")
    for i, name in enumerate(report.names):
        precision, recall, f1 = (100 * report.scores[i]).tolist()
        low, high = (100 * report.intervals[:, i, 2]).tolist()
        table.add_row(
            _console.escape_text(name),
            f"{precision:.2f}",
            f"{recall:.2f}",
            f"[bold]{f1:.2f}[/bold]",
            f"{low:6.2f} to {high:6.2f}",
            _interval_bar(low, f1, high, lowest),
            f"{report.support[i]:,}",
            end_section=i == len(report.classes) - 1,
        )
    return table


def _scale_start(report: Any) -> int:
    """Start of the F1 scale: 0, 50, 80 or 90, so that most intervals fit."""
    low = 100 * sorted(report.intervals[0, :, 2].tolist())[len(report.names) // 4]
    return next((start for start in (90, 80, 50) if low >= start), 0)


def _interval_bar(low: float, value: float, high: float, start: int) -> Any:
    """An interval drawn on a scale from ``start`` to 100."""
    from rich.text import Text

    def cell(percent: float) -> int:
        return min(_BAR - 1, max(0, int((percent - start) / (100 - start) * _BAR)))

    first, at, last = cell(low), cell(value), cell(high)
    bar = Text()
    for k in range(_BAR):
        if k == at:
            bar.append("●" if value >= start else "◂", "dodger_blue1")
        elif first <= k <= last:
            bar.append("─", "dodger_blue1")
        else:
            bar.append("·", "bright_black")
    return bar
