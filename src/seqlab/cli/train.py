"""``seqlab train``: a model from a labelled file."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqlab.cli import _console, _labelers, _reading
from seqlab.cli._errors import CommandError, Interrupted, check_output, say
from seqlab.cli._garbage import making_what_stays
from seqlab.cli._lazy_imports import import_scikit_learn

if TYPE_CHECKING:
    from seqlab.cli._files import TrainingFile

SWITCH_SECONDS = 1e-4  # while modules are imported beside training; Python's own default is 5e-3

_HELP = """
Learn a model from a labelled file.

The file has one token a line, its columns separated by spaces or tabs, the label last, a blank line
between sequences. Without a template the first column is taken as text; further columns as they are,
with their neighbours. Text is described by a good default (the word, its neighbours, its shape,
prefixes and suffixes). Files of ready features (crfsuite, jsonl, svmlight) need none.

  [bold]seqlab train addresses.conll -o address.seqlab[/bold]
  [bold]seqlab train train.txt -o chunk.seqlab --template chunk.tpl --min-count 3 --dev test.txt[/bold]
  [bold]seqlab train train.conllu -o pos.seqlab --label-column upos -m perceptron -p max_iter=5[/bold]

Too slow? [bold]-p tol=0.01[/bold] is usually as good.

Ctrl-C ends training: the model as it stands goes to OUTPUT.interrupted, OUTPUT is left alone.
"""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("train", help=_console.teach(_HELP), rich_help_panel="Commands")(train)


def train(
    file: Annotated[str, typer.Argument(help="Labelled file (also .gz, .xz, .bz2), or - .")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="crf, perceptron, hmm, independent, or any labeler."),
    ] = "crf",
    template: Annotated[
        Path | None,
        typer.Option("--template", "-t", help="Template file of CRF++ or Wapiti."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="Parameter of the labeler, for example c2=0.1; may be repeated.",
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, help="Drop features seen fewer times.")
    ] = 1,
    dev: Annotated[
        str | None, typer.Option("--dev", help="Labelled file to evaluate on afterwards.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of what is random.")] = 0,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="No progress, no summary; only the score on --dev."),
    ] = False,
    format: _reading.FormatOption = "auto",
    label_column: _reading.LabelOption = None,
    columns: _reading.ColumnsOption = None,
    separator: _reading.SeparatorOption = "auto",
    comment: _reading.CommentOption = None,
    encoding: _reading.EncodingOption = "utf-8",
) -> None:
    """Learn a model; see `_HELP`."""
    check_output(output)
    reading = _reading.make_reading(
        file, format, label_column, columns, separator, comment, encoding
    )
    with making_what_stays():
        import_scikit_learn()
        labeler = _labelers.make_labeler(model, param or [])
        if jobs == 0:
            raise CommandError("--jobs: 0 has no meaning; use 1 for serial, -1 for all cores")
        _labelers.set_if_known(labeler, n_jobs=jobs, verbose=not quiet)
        if not any(pair.split("=")[0].strip() == "random_state" for pair in param or []):
            _labelers.set_if_known(labeler, random_state=seed)

        from seqlab.cli._files import read_training
        from seqlab.data.errors import InputError
        from seqlab.features.templates import Templates

        templates = None if template is None else Templates.from_file(template, min_count=min_count)
        data = read_training(file, reading)
        tagger = _make_tagger(data, templates, labeler, min_count)
    began = time.perf_counter()
    try:
        _fit(tagger, data, output)
    except InputError as error:
        _explain_no_features(error, file, template, min_count)
        raise
    elapsed = time.perf_counter() - began
    _note_bigrams(tagger)
    _save(tagger, data.reading, output)
    if not quiet:
        _show(tagger, data, output, elapsed)
    if dev is not None:
        from seqlab.cli.evaluate import evaluate_file, headline

        line = headline(evaluate_file(tagger, dev, data.reading))
        _console.stdout().print(f"[dim]{'dev':>8}[/dim]  {line}", soft_wrap=True)


def _import_in_background() -> None:
    """Import what saving needs, half a second, while compiled code trains."""

    def run() -> None:
        before = sys.getswitchinterval()
        # Training returns to Python every few milliseconds, and would wait for its turn as long again.
        sys.setswitchinterval(SWITCH_SECONDS)
        with suppress(Exception):  # saving will meet it again, in the thread that answers errors
            import_module("skops.io")
        sys.setswitchinterval(before)

    threading.Thread(target=run, daemon=True).start()


def _and_then(items: Iterable[Any], action: Callable[[], None]) -> Iterator[Any]:
    """The items; when they are read to the end, the action."""
    yield from items
    action()


def _make_tagger(data: TrainingFile, templates: Any, labeler: Any, min_count: int) -> Any:
    from seqlab import SequenceVectorizer, Tagger, Templates

    features: Any = None
    if data.tokens:
        features = templates or Templates.default(min_count=min_count)
    elif templates is not None:
        raise CommandError(
            f"--template: {data.reading.format} files hold features already; templates make them "
            "from columns of text"
        )
    elif data.symbolic:
        features = SequenceVectorizer(min_count=min_count)
    return Tagger(features, labeler)


def _fit(tagger: Any, data: TrainingFile, output: Path) -> None:
    # Sequences with features of their own go straight to compiled code. Else features come first, in Python.
    X: Any = data.X
    if tagger.features is None:
        _import_in_background()
    else:
        X = _and_then(X, _import_in_background)
    try:
        tagger.fit(X, data.y)
    except KeyboardInterrupt:
        fitted = getattr(tagger, "labeler_", None)
        n_iter = getattr(fitted, "n_iter_", 0)
        if not n_iter:
            raise Interrupted(f"interrupted; {output} was not written") from None
        kept = output.with_name(f"{output.name}.interrupted")
        _save(tagger, data.reading, kept)
        raise Interrupted(
            f"interrupted after iteration {n_iter}; {output} was not written, "
            f"the model as it stood is in {kept}"
        ) from None


def _explain_no_features(
    error: Exception, file: str, template: Path | None, min_count: int
) -> None:
    """Say why no feature is left, where that is what the labeler complains about."""
    if "0 feature(s)" not in str(error):
        return
    if template is not None:
        lines = template.read_text(encoding="utf-8").splitlines()
        if not any(line.lstrip().startswith(("U", "u", "*")) for line in lines):
            raise CommandError(f"{template}: no U line, so no features") from error
    if min_count > 1:
        raise CommandError(f"--min-count {min_count} leaves no feature") from error
    raise CommandError(f"{file}: no features in it") from error


def _save(tagger: Any, reading: _reading.Reading, output: Path) -> None:
    from seqlab.persistence import save

    tagger.source_ = reading.as_attribute()
    # How it was trained here is no property of the model.
    for labeler in (tagger.labeler, tagger.labeler_):
        _labelers.set_if_known(labeler, n_jobs=None, verbose=False)
    save(tagger, output)


def _note_bigrams(tagger: Any) -> None:
    """Say what the template asks for and a tagger does not do."""
    features = tagger.features_
    if not hasattr(features, "bigram_templates_"):
        return
    source = f"{features.source}: " if features.source else ""
    if not features.has_label_bigrams and hasattr(tagger.labeler_, "transitions_"):
        say(
            f"note: {source}there is no B line; transitions between labels are learned all the same"
        )


def _show(tagger: Any, data: TrainingFile, output: Path, elapsed: float) -> None:
    from rich.markup import escape

    console = _console.stdout()
    labeler = tagger.labeler_
    n_steps = sum(x.shape[0] if hasattr(x, "shape") else len(x) for x in data.X)
    features = getattr(labeler, "n_features_in_", None)
    rows = {
        "read": f"{_console.count(len(data.X), 'sequence')}, {_console.count(n_steps, 'token')}, "
        f"{_console.count(len(tagger.classes_), 'label')}"
    }
    if features is not None:
        rows["model"] = f"{type(labeler).__name__}, {_console.count(int(features), 'feature')}"
    trained = _console.seconds(elapsed)
    if getattr(labeler, "n_iter_", None) is not None:
        ended = "" if getattr(labeler, "converged_", True) else ", not converged"
        if type(labeler).__name__ == "StructuredPerceptron":  # it has no optimum to converge to
            ended = ""
        trained += f", {_console.count(labeler.n_iter_, 'iteration')}{ended}"
        history = getattr(labeler, "history_", {}).get("objective")
        if history:
            trained += f", objective {history[-1]:,.6g}"
    rows["trained"] = trained
    size = output.stat().st_size
    rows["saved"] = f"{output} ({_size(size)})"
    for name, value in rows.items():
        console.print(f"[dim]{name:>8}[/dim]  {escape(value)}", soft_wrap=True)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{max(1, n_bytes // 1000)} kB"
