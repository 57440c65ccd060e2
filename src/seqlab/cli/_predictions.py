"""Predict labels for a chunk of sequences, and format them as lines of output."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from seqlab.cli._errors import CommandError
from seqlab.cli._files import get_labeler
from seqlab.cli._input import InputSequence, is_word_line
from seqlab.cli._read_options import ReadOptions
from seqlab.data.errors import PlacedError
from seqlab.data.io import CONLLU_FIELDS
from seqlab.utils.signals import signals_at_safe_points


class Prediction(NamedTuple):
    """Predicted labels of one sequence.

    Attributes
    ----------
    labelings : list of (list of labels, float)
        Best first, with their scores (0 if only the best was requested).
    proba : array of shape (n_steps, n_labels) or None
    codes : dict of label to column of ``proba``
    """

    labelings: list[tuple[list[Any], float]]
    proba: Any
    codes: dict[Any, int]

    def confidence(self, rank: int) -> list[float] | None:
        """Probability of each label of a labeling."""
        if self.proba is None:
            return None
        labels, _ = self.labelings[rank]
        return [float(self.proba[t, self.codes[label]]) for t, label in enumerate(labels)]


class Predictor:
    """Calls the methods of a model that the options of a command need.

    Parameters
    ----------
    model : fitted model
    proba : bool
        Whether to predict the probability of each label.
    nbest : int
        Number of labelings per sequence; 0 for the best one without a score.
    constraints : str or None
        Tag scheme.
    """

    def __init__(self, model: Any, *, proba: bool, nbest: int, constraints: str | None) -> None:
        self.model = model
        self.proba, self.nbest = proba, nbest
        self.options = {} if constraints is None else {"constraints": constraints}
        self.classes = model.classes_.tolist()
        self.codes = {label: code for code, label in enumerate(self.classes)}
        labeler = get_labeler(model)
        self.is_distribution = hasattr(labeler, "sequence_log_proba")
        for option, wanted, method in (
            ("--proba", proba, "predict_proba"),
            ("--nbest", nbest, "predict_nbest"),
        ):
            if wanted and not hasattr(model, method):
                raise CommandError(f"{option}: {type(labeler).__name__} has no {method}")

    def predict(self, sequences: list[InputSequence], file: str) -> list[Prediction]:
        """Predict a chunk, in order; a sequence without tokens gets an empty prediction."""
        empty = Prediction([([], 0.0)], None, self.codes)
        filled = [sequence for sequence in sequences if sequence.words]
        if not filled:
            return [empty] * len(sequences)
        X = [sequence.tokens for sequence in filled]
        try:
            with signals_at_safe_points():
                proba = (
                    self.model.predict_proba(X, **self.options) if self.proba else [None] * len(X)
                )
                if self.nbest:
                    found = [
                        [(labels.tolist(), score) for labels, score in best]
                        for best in self.model.predict_nbest(X, self.nbest, **self.options)
                    ]
                else:
                    predicted = self.model.predict(X, **self.options)
                    found = [[(labels.tolist(), 0.0)] for labels in predicted]
        except PlacedError as error:
            line = filled[error.sequence or 0].line
            raise CommandError(f"{file}:{line}: {error.message.format(sequence='here')}") from error
        predictions = iter(map(Prediction, found, proba, [self.codes] * len(X)))
        return [next(predictions) if sequence.words else empty for sequence in sequences]

    def format_score(self, score: float) -> str:
        """Format the score of a labeling: its probability if the model is a distribution."""
        return f"{math.exp(score):.6f}" if self.is_distribution else f"{score:.6f}"


_Proba = list[float] | None
_Body = Callable[[InputSequence, list[Any], _Proba], list[str]]


def make_formatter(
    options: ReadOptions, predictor: Predictor
) -> Callable[[InputSequence, Prediction], str]:
    """Return the function that formats a sequence with its labels as in the input file."""
    if options.format == "jsonl":
        return lambda sequence, prediction: _json_line(sequence, prediction, predictor)
    body: _Body = _column_lines
    if options.format == "conllu":
        field = CONLLU_FIELDS.index(str(options.label))
        body = lambda sequence, labels, proba: _conllu_lines(sequence, labels, proba, field)  # noqa: E731
    elif options.format in ("crfsuite", "svmlight"):
        body = _label_lines
    return lambda sequence, prediction: _text(sequence, prediction, predictor, body)


def _text(
    sequence: InputSequence, prediction: Prediction, predictor: Predictor, body: _Body
) -> str:
    lines = list(sequence.before)
    for rank, (labels, score) in enumerate(prediction.labelings):
        if predictor.nbest and labels:
            lines += [""] * (rank > 0)
            lines.append(f"# {rank} {predictor.format_score(score)}")
        lines += body(sequence, labels, prediction.confidence(rank))
    lines += sequence.after
    if not sequence.lines and not sequence.after and sequence.words:
        lines.append("")
    return "".join([line + "\n" for line in lines])


def _column_lines(sequence: InputSequence, labels: list[Any], proba: _Proba) -> list[str]:
    lines = []
    for t, label in enumerate(labels):
        line = sequence.lines[t]
        sep = "\t" if "\t" in line else " "
        line = f"{line.rstrip(' ') if sep == ' ' else line}{sep}{label}"
        lines.append(line if proba is None else f"{line}{sep}{proba[t]:.6f}")
    return lines


def _label_lines(sequence: InputSequence, labels: list[Any], proba: _Proba) -> list[str]:
    """Label in the file, if there is one, and predicted label; the features are not repeated."""
    lines = []
    for t, label in enumerate(labels):
        parts = [] if sequence.gold is None else [str(sequence.gold[t])]
        parts.append(str(label))
        if proba is not None:
            parts.append(f"{proba[t]:.6f}")
        lines.append("\t".join(parts))
    return lines


def _conllu_lines(
    sequence: InputSequence, labels: list[Any], proba: _Proba, field: int
) -> list[str]:
    """The lines with the label in its field and its probability in MISC."""
    lines, t = [], 0
    for line in sequence.lines:
        if is_word_line(line) and labels:
            columns = line.split("\t")
            columns[field] = str(labels[t])
            if proba is not None:
                note = f"Proba={proba[t]:.6f}"
                columns[9] = note if columns[9] == "_" else f"{columns[9]}|{note}"
            line = "\t".join(columns)
            t += 1
        lines.append(line)
    return lines


def _json_line(sequence: InputSequence, prediction: Prediction, predictor: Predictor) -> str:
    if not sequence.words:
        return ""
    record = json.loads(sequence.lines[0])
    record["predicted"] = prediction.labelings[0][0]
    proba = prediction.confidence(0)
    if proba is not None:
        record["probability"] = [round(p, 6) for p in proba]
    if predictor.nbest:
        record["nbest"] = [
            {"labels": labels, "score": float(predictor.format_score(score))}
            for labels, score in prediction.labelings
        ]
    return json.dumps(record, ensure_ascii=False) + "\n"
