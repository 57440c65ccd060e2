"""``seqlab train``: train a model on a labelled file."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqlab.cli import _console, _labelers, _read_options
from seqlab.cli._errors import CommandError, Interrupted, check_output, print_message
from seqlab.cli._gc import gc_frozen
from seqlab.cli._interrupts import begin_work
from seqlab.cli._reading_ahead import reading_ahead
from seqlab.cli._saving import (
    MODEL_NAME,
    finish_training,
    import_modules,
    save_elsewhere,
    save_model,
)
from seqlab.utils.files import is_special
from seqlab.utils.signals import hold_interrupts

if TYPE_CHECKING:
    from seqlab.cli._files import TrainingFile

HELP = """
Train a model on a labelled file.

The file has one token per line, with columns separated by spaces or tabs, the label in the last column,
and a blank line between sequences. Without a template, the features are the word in the first column,
its neighbours, shape, prefixes and suffixes, and the other columns with their neighbours. Files that
already contain features (crfsuite, jsonl, svmlight) need no template.

  [bold]seqlab train addresses.conll -o address.seqlab[/bold]
  [bold]seqlab train train.txt -o chunk.seqlab -t chunk.tpl --dev dev.txt[/bold]
  [bold]seqlab train train.conllu -o pos.seqlab -l upos -m perceptron -p max_iter=5[/bold]

Too slow? [bold]-p tol=0.01[/bold] is often nearly as accurate; [bold]-p max_seconds=60[/bold] is a limit.
With [bold]--dev[/bold], training stops when the model no longer improves on that file.

Ctrl-C stops training: the current model is saved as OUTPUT.interrupted, and OUTPUT is not changed.
"""


# Imported before the work begins, while an interrupt ends the program at once.
_MODULES = (
    "seqlab.cli._files",
    "seqlab.data._kernels",
    "seqlab.data.io",
    "seqlab.features.templates.templates",
    "seqlab.features._kernels.template_rows",
    "seqlab.inference.chain",
    "seqlab.meta.tagger",
    "seqlab.models.crf",
    "seqlab.structures.chain.bound",
)


def train(
    file: Annotated[
        str, typer.Argument(help="Labelled file (also .gz, .xz, .bz2), or - for standard input.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="crf, perceptron, hmm, independent, or the class name of a labeler.",
        ),
    ] = "crf",
    template: Annotated[
        Path | None,
        typer.Option("--template", "-t", help="Template file in the syntax of CRF++ or Wapiti."),
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
        int, typer.Option("--min-count", min=1, help="Drop features that occur fewer times.")
    ] = 1,
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev",
            help="Labelled file for early stopping (crf, perceptron) and for the score at the end. "
            "A crf benefits from early stopping only if its penalty is weak.",
        ),
    ] = None,
    jobs: _labelers.JobsOption = -1,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed.")] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No progress and no summary; print only the score on --dev."
        ),
    ] = False,
    format: _read_options.FormatOption = "auto",
    label_column: _read_options.LabelOption = None,
    columns: _read_options.ColumnsOption = None,
    separator: _read_options.SeparatorOption = "auto",
    comment: _read_options.CommentOption = None,
    encoding: _read_options.EncodingOption = "utf-8",
) -> None:
    """Train a model; see `HELP`."""
    check_output(output)
    with gc_frozen():
        options = _read_options.make_read_options(
            file, format, label_column, columns, separator, comment, encoding
        )
        with reading_ahead(file, options, template, min_count, jobs) as ahead:
            import_modules(*_MODULES)
            labeler = _labelers.make_labeler(model, param or [])  # imports it
        begin_work()
        from sklearn.utils.validation import has_fit_parameter

        from seqlab.cli._files import read_training
        from seqlab.data.errors import InputError
        from seqlab.features.templates import Templates

        if jobs == 0:
            raise CommandError("--jobs: 0 is not allowed; use 1 for one thread or -1 for all cores")
        _labelers.set_supported_params(labeler, n_jobs=jobs, verbose=not quiet)
        if not any(pair.split("=")[0].strip() == "random_state" for pair in param or []):
            _labelers.set_supported_params(labeler, random_state=seed)

        templates = None if template is None else Templates.from_file(template, min_count=min_count)
        data = (ahead and ahead.result) or read_training(file, options)
        tagger = _make_tagger(data, templates, labeler, min_count)
        held_out = None
        if dev is not None and has_fit_parameter(labeler, "X_val"):
            held_out = _read_held_out(dev, data)
    start = time.perf_counter()
    try:
        _fit(tagger, data, held_out, output)
    except InputError as error:
        _check_no_features(error, file, template, min_count)
        raise
    elapsed = time.perf_counter() - start
    # If the model goes to standard output, the summary must not.
    console = _console.stderr() if _is_standard_output(output) else _console.stdout()
    finish_training(tagger, data.options, output, lambda: _print_bigram_note(tagger))
    if not quiet:
        _print_summary(console, tagger, data, output, elapsed)
    if dev is not None:
        from seqlab.cli.evaluate import evaluate_file, evaluate_sequences, format_headline

        if held_out is None:
            evaluation = evaluate_file(tagger, dev, data.options)
        else:
            evaluation = evaluate_sequences(tagger, held_out.X, held_out.y)
        line = format_headline(evaluation)
        console.print(f"[dim]{'dev':>8}[/dim]  {line}", soft_wrap=True)


def _make_tagger(data: TrainingFile, templates: Any, labeler: Any, min_count: int) -> Any:
    from seqlab import SequenceVectorizer, Tagger, Templates

    features: Any = None
    if data.has_columns:
        features = templates or Templates.default(min_count=min_count)
    elif templates is not None:
        raise CommandError(
            f"--template: {data.options.format} files already contain features; templates make "
            "features from columns of text"
        )
    elif data.has_names:
        features = SequenceVectorizer(min_count=min_count)
    return Tagger(features, labeler)


def _read_held_out(dev: str, data: TrainingFile) -> TrainingFile:
    """Read the file for early stopping, in the format of the training file."""
    from seqlab.cli._files import read_training

    found = read_training(dev, data.options)
    if found.options.width != data.options.width:
        raise CommandError(
            f"{dev}: the lines have {found.options.width} columns, but those of the training file have "
            f"{data.options.width}"
        )
    if not (found.has_columns or found.has_names):  # matrices, as wide as the features of the file
        for matrix in found.X:
            matrix.resize(matrix.shape[0], data.X[0].shape[1])
    return found


def _fit(tagger: Any, data: TrainingFile, held_out: TrainingFile | None, output: Path) -> None:
    options = {} if held_out is None else {"X_val": held_out.X, "y_val": held_out.y}
    try:
        tagger.fit(data.X, data.y, **options)
    except KeyboardInterrupt:
        fitted = getattr(tagger, "labeler_", None)
        n_iter = getattr(fitted, "n_iter_", 0)
        if not n_iter:
            raise Interrupted(f"interrupted; {output} was not written") from None
        partial: Path | None
        with hold_interrupts(raise_after=False):
            if is_special(output):  # its folder, such as /dev, is not for files
                partial = save_elsewhere(tagger, data.options, f"{MODEL_NAME}.interrupted")
            else:
                partial = output.with_name(f"{output.name}.interrupted")
                save_model(tagger, data.options, partial)
        where = "no other folder can hold the model"
        if partial is not None:
            where = f"the model at that point is in {partial}"
        raise Interrupted(
            f"interrupted after iteration {n_iter}; {output} was not written, {where}"
        ) from None


def _check_no_features(error: Exception, file: str, template: Path | None, min_count: int) -> None:
    """Raise an error that says why there are no features, if that is the reason for ``error``."""
    if "0 feature(s)" not in str(error):
        return
    if template is not None:
        lines = template.read_text(encoding="utf-8").splitlines()
        if not any(line.lstrip().startswith(("U", "u", "*")) for line in lines):
            raise CommandError(f"{template}: no features, because there is no U line") from error
    if min_count > 1:
        raise CommandError(f"--min-count {min_count}: no feature occurs that often") from error
    raise CommandError(f"{file}: the file contains no features") from error


def _print_bigram_note(tagger: Any) -> None:
    """Print a note if the template has no B line, because transitions are learned anyway."""
    features = tagger.features_
    if not hasattr(features, "bigram_templates_"):
        return
    source = f"{features.source}: " if features.source else ""
    if not features.has_label_bigrams and hasattr(tagger.labeler_, "transitions_"):
        print_message(
            f"note: {source}there is no B line; transitions between labels are learned anyway"
        )


def _is_standard_output(output: Path) -> bool:
    """Whether a path is the pipe or the file that standard output leads to, such as /dev/stdout."""
    try:
        stream = os.fstat(sys.stdout.fileno())
        return not stat.S_ISCHR(stream.st_mode) and os.path.samestat(stream, os.stat(output))
    except (OSError, ValueError, AttributeError):  # a stream without a file, a path that is new
        return False


def _print_summary(
    console: Any, tagger: Any, data: TrainingFile, output: Path, elapsed: float
) -> None:
    labeler = tagger.labeler_
    n_steps = getattr(data.X, "n_tokens", None)  # of a TokenTable
    if n_steps is None:
        n_steps = sum(x.shape[0] if hasattr(x, "shape") else len(x) for x in data.X)
    features = getattr(labeler, "n_features_in_", None)
    rows = {
        "read": f"{_console.format_size(len(data.X), n_steps)}, "
        f"{_console.format_count(len(tagger.classes_), 'label')}"
    }
    if features is not None:
        rows["model"] = (
            f"{type(labeler).__name__}, {_console.format_count(int(features), 'feature')}"
        )
    training = _console.format_seconds(elapsed)
    if getattr(labeler, "n_iter_", None) is not None:
        ended = "" if getattr(labeler, "converged_", True) else ", not converged"
        if type(labeler).__name__ == "StructuredPerceptron":  # has no optimum to converge to
            ended = ""
        best = getattr(labeler, "best_iteration_", None)
        if best is not None:
            ended = f" (the best is {best})"
        training += f", {_console.format_count(labeler.n_iter_, 'iteration')}{ended}"
        history = getattr(labeler, "history_", {})
        if history.get("objective"):
            at = -1 if best is None else history["iteration"].index(best)
            training += f", objective {history['objective'][at]:,.6g}"
    rows["trained"] = training
    rows["saved"] = str(output)
    size = output.stat().st_size
    if size:  # a pipe or a device has none
        shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, size // 1000)} kB"
        rows["saved"] += f" ({shown})"
    _console.print_facts(console, rows)
