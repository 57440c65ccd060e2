"""``seqlab evaluate``: how good a model is on a labelled file, and how sure that is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from seqlab.cli import _console, _labelers, _reading
from seqlab.cli._errors import CommandError, say
from seqlab.cli._nearest import nearest

CONFIDENCE = 0.95
_BAR = 22  # characters of the scale of F1
_SCHEMES = ("IO", "IOB1", "IOB2", "IOBES", "BILOU")
_PRED_COLUMNS = (-2, -1)
_CONLLU_ID = re.compile(r"1|0\.1|1-\d+")
_CONLLU_HEAD = re.compile(r"_|\d+")
_HELP = """
Compare a model's labels with those of a file.

Tags of a scheme (B-NP, I-NP, O) are scored by phrases: precision, recall and F1, as conlleval counts
them. Other labels are scored by tokens. Intervals are 95 % bootstrap intervals over sequences.

  [bold]seqlab evaluate address.seqlab test.conll[/bold]
  [bold]seqlab tag address.seqlab test.conll | seqlab evaluate --pred -[/bold]
"""


@dataclass
class Evaluation:
    """Gold and predicted labels of a file, and where the first of each error stands."""

    y_true: list[list[Any]]
    y_pred: list[list[Any]]
    places: dict[tuple[Any, Any], str]
    scheme: str | None


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("evaluate", help=_console.teach(_HELP), rich_help_panel="Commands")(evaluate)


def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="Model file, from seqlab train.", show_default=False)
    ] = None,
    file: Annotated[
        str | None, typer.Argument(help="Labelled file, or - .", show_default=False)
    ] = None,
    pred: Annotated[
        str | None,
        typer.Option(
            "--pred", help="Instead of model and file: a file with gold and predicted columns."
        ),
    ] = None,
    gold_column: Annotated[
        int, typer.Option(help="Column of the gold label in --pred.")
    ] = _PRED_COLUMNS[0],
    pred_column: Annotated[
        int, typer.Option(help="Column of the predicted label.")
    ] = _PRED_COLUMNS[1],
    scheme: Annotated[
        str,
        typer.Option("--scheme", help="IOB1, IOB2, IOBES, BILOU, IO; none for tokens; auto."),
    ] = "auto",
    constraints: Annotated[
        str | None,
        typer.Option("--constraints", help="Predict only what a tag scheme allows, as in tag."),
    ] = None,
    worst: Annotated[int, typer.Option("--worst", min=0, help="Confusions to show.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    format: _reading.LaterFormatOption = "auto",
    label_column: _reading.LabelOption = None,
    separator: _reading.SeparatorOption = "auto",
    comment: _reading.CommentOption = None,
    encoding: _reading.EncodingOption = "utf-8",
) -> None:
    """Compare labels; see `_HELP`."""
    if scheme not in ("auto", "none", *_SCHEMES):
        raise CommandError(f"--scheme: no {scheme!r}{nearest(scheme, [*_SCHEMES, 'none', 'auto'])}")
    if pred is not None:
        if model is not None:
            raise CommandError("give either --pred FILE, or MODEL and FILE")
        if format not in ("auto", "columns"):
            raise CommandError("--pred: reads columns only")
        made = _reading.make_reading(
            pred, "columns", separator=separator, comment=comment, encoding=encoding
        )
        reading = replace(made, label=None)
        result = _read_predictions(pred, reading, gold_column, pred_column)
    else:
        if model is None or file is None:
            raise CommandError("give MODEL and FILE, or --pred FILE (see seqlab evaluate --help)")
        from seqlab.cli._files import labeler_of, load_model

        loaded = load_model(model)
        _labelers.set_if_known(labeler_of(loaded), n_jobs=jobs)
        reading = _reading.reading_of(loaded, format, label_column, separator, comment, encoding)
        remembered = format == "auto"
        result = evaluate_file(
            loaded, file, reading, constraints=constraints, remembered=remembered
        )
    if scheme != "auto":
        result.scheme = None if scheme == "none" else scheme
    if as_json:
        print(json.dumps(_summary(result, worst), indent=2, ensure_ascii=False))
        return
    _show(result, worst)


def evaluate_file(
    model: Any,
    file: str,
    reading: _reading.Reading,
    *,
    constraints: str | None = None,
    remembered: bool = True,
) -> Evaluation:
    """Label a file with a model and keep gold and predicted labels."""
    from seqlab.cli._answers import Answerer
    from seqlab.cli._scheme import detect_scheme
    from seqlab.cli._stream import chunks, open_items

    answerer = Answerer(model, proba=False, nbest=0, constraints=constraints)
    items, source = open_items(file, reading, model, labeled=True, remembered=remembered)
    result = Evaluation([], [], {}, None)
    for chunk in chunks(items, source):
        for item, answer in zip(chunk, answerer.answer(chunk, source.name), strict=True):
            if not item.words:
                continue
            gold, predicted = item.gold or [], answer.labelings[0][0]
            _keep(result, gold, predicted, item.words, source.name, item.line)
    seen = {label for labels in result.y_true for label in labels}
    result.scheme = detect_scheme(seen | set(map(str, answerer.classes)))
    return result


def _read_predictions(
    file: str, reading: _reading.Reading, gold_column: int, pred_column: int
) -> Evaluation:
    from seqlab.cli._scheme import detect_scheme
    from seqlab.cli._stream import chunks, open_items
    from seqlab.data.io import ReadError

    result = Evaluation([], [], {}, None)
    width = 0
    items, source = open_items(file, reading, None, labeled=False)
    gathered = chunks(items, source)
    by_default = (gold_column, pred_column) == _PRED_COLUMNS
    while True:
        try:
            chunk = next(gathered, None)
        except ReadError:
            if by_default and not width:
                _refuse_conllu(source.waiting, source.name)
            raise
        if chunk is None:
            break
        if by_default and not width:
            _refuse_conllu([*chunk[0].before, *chunk[0].lines[:1]], source.name)
        for item in chunk:
            if not item.words:
                continue
            width = len(item.tokens[0])
            for option, column in (("--gold-column", gold_column), ("--pred-column", pred_column)):
                if not -width <= column < width:
                    has = "1 column" if width == 1 else f"{width} columns"
                    raise CommandError(
                        f"{source.name}:{item.line}: {has}, but {option} is {column}"
                    )
            gold = [token[gold_column] for token in item.tokens]
            predicted = [token[pred_column] for token in item.tokens]
            _keep(result, gold, predicted, item.words, source.name, item.line)
    _refuse_probabilities(result, source.name, gold_column, pred_column, width)
    labels = {label for part in (result.y_true, result.y_pred) for row in part for label in row}
    result.scheme = detect_scheme(labels)
    return result


def _refuse_conllu(lines: list[str], file: str) -> None:
    """Stop at a file whose first word stands on a line of CoNLL-U."""
    first = next((line for line in lines if line.strip() and not line.startswith("# ")), "")
    fields = first.split("\t")
    if len(fields) == 10 and _CONLLU_ID.fullmatch(fields[0]) and _CONLLU_HEAD.fullmatch(fields[6]):
        raise CommandError(
            f"{file} looks like CoNLL-U; --pred reads column files. "
            "Use: seqlab evaluate MODEL gold.conllu"
        )


def _refuse_probabilities(
    result: Evaluation, file: str, gold_column: int, pred_column: int, width: int
) -> None:
    """Stop where the predicted labels are numbers between 0 and 1 and no labels."""
    predicted = [label for row in result.y_pred for label in row]
    if {label for row in result.y_true for label in row} & set(predicted):
        return
    numbers = [label for label in predicted if _is_probability(label)]
    if not numbers or len(numbers) < 0.95 * len(predicted):
        return
    message = f"{file}: column {pred_column} looks like probabilities ({numbers[0]}), not labels"
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


def _keep(
    result: Evaluation,
    gold: list[Any],
    predicted: list[Any],
    words: list[str],
    file: str,
    line: int,
) -> None:
    result.y_true.append(gold)
    result.y_pred.append(predicted)
    for t, pair in enumerate(zip(gold, predicted, strict=True)):
        if pair[0] != pair[1] and pair not in result.places:
            place = f"{file}:{line + t}" if line else file
            result.places[pair] = f"{words[t]} ({place})"


def _scores(result: Evaluation) -> tuple[Any, Any, float]:
    """Report with intervals, interval of the token accuracy, and sequence accuracy."""
    from dataclasses import replace

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
    single = len(y_true) == 1  # nothing to resample: the intervals shrink to the scores
    options: dict[str, Any] = {"confidence": None if single else CONFIDENCE, "random_state": 0}
    if result.scheme is None:
        report = token_report(y_true, y_pred, **options)
    else:
        report = span_report(y_true, y_pred, result.scheme, **options)
    if single:
        say("note: one sequence only, so the intervals say nothing")
        report = replace(report, intervals=np.stack([report.scores, report.scores]))
        score = token_accuracy(y_true, y_pred)
        accuracy = Interval(score, score, score)
    else:
        accuracy = bootstrap_interval(y_true, y_pred, "token_accuracy", **options)
    return report, accuracy, sequence_accuracy(y_true, y_pred)


def _summary(result: Evaluation, worst: int) -> dict[str, Any]:
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


def headline(result: Evaluation) -> str:
    """One line: F1 of phrases, token accuracy, with their intervals."""
    return _headline(result, *_scores(result))


def _headline(result: Evaluation, report: Any, accuracy: Any, sequences: float) -> str:
    tokens = (
        f"token accuracy [bold]{100 * accuracy.score:.2f}[/bold] "
        f"[dim]({100 * accuracy.low:.2f} to {100 * accuracy.high:.2f})[/dim]"
    )
    parts = [tokens, f"{100 * sequences:.1f} % of the sequences all right"]
    if result.scheme is not None:
        row = report.to_dict()["micro avg"]
        low, high = (100 * bound for bound in row["f1_interval"])
        f1 = f"F1 [bold]{100 * row['f1']:.2f}[/bold] [dim]({low:.2f} to {high:.2f})[/dim]"
        parts.insert(0, f1)
    return ", ".join(parts)


def _show(result: Evaluation, worst: int) -> None:
    from rich.markup import escape

    from seqlab.metrics import confusion

    console = _console.stdout()
    report, accuracy, sequences = _scores(result)
    unit = "phrases" if result.scheme else "tokens"
    console.print()
    console.print(_headline(result, report, accuracy, sequences), soft_wrap=True)
    n_steps = sum(map(len, result.y_true))
    read = f"{_console.count(len(result.y_true), 'sequence')}, {_console.count(n_steps, 'token')}"
    scored = f"scored by {unit}" + (f" ({result.scheme})" if result.scheme else "")
    console.print(f"[dim]{read}, {scored}; 95 % bootstrap intervals over sequences[/dim]")
    console.print(_report_table(report, unit))
    errors = confusion(result.y_true, result.y_pred).worst(worst)
    if not errors:
        return
    table = _console.plain_table(title="Worst confusions", title_justify="left", title_style="bold")
    table.add_column("tokens", justify="right")
    table.add_column("gold", style="green3")
    table.add_column("predicted", style="indian_red")
    table.add_column("first seen", style="dim", overflow="fold")
    for gold, predicted, n in errors:
        place = result.places.get((gold, predicted), "")
        table.add_row(f"{n:,}", escape(str(gold)), escape(str(predicted)), escape(place))
    console.print(table)


def _report_table(report: Any, unit: str) -> Any:
    from rich.markup import escape

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
            escape(str(name)),
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
    """Where the scale of the intervals begins: 0, 50, 80 or 90, so that most of them fit."""
    low = 100 * sorted(report.intervals[0, :, 2].tolist())[len(report.names) // 4]
    return next((start for start in (90, 80, 50) if low >= start), 0)


def _interval_bar(low: float, value: float, high: float, start: int) -> Any:
    """The interval on a scale from ``start`` to 100."""
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
