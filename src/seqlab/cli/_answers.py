"""Labels of a chunk of sequences, and the lines they are written as."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from seqlab.cli._errors import CommandError
from seqlab.cli._reading import Reading
from seqlab.cli._stream import Item, is_word_line
from seqlab.data.errors import PlacedError
from seqlab.data.io import CONLLU_FIELDS


class Answer(NamedTuple):
    """What a model says of one sequence.

    Attributes
    ----------
    labelings : list of (list of labels, float)
        Best first, with their scores (0 where only the best was asked for).
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


class Answerer:
    """Asks a model what the command line wants to know.

    Parameters
    ----------
    model : fitted model
    proba : bool
        Whether probabilities of the labels are wanted.
    nbest : int
        Labelings wanted of each sequence; 0 for the best only.
    constraints : str or None
        Tag scheme.
    """

    def __init__(self, model: Any, *, proba: bool, nbest: int, constraints: str | None) -> None:
        self.model = model
        self.proba, self.nbest = proba, nbest
        self.options = {} if constraints is None else {"constraints": constraints}
        self.classes = model.classes_.tolist()
        self.codes = {label: code for code, label in enumerate(self.classes)}
        labeler = getattr(model, "labeler_", model)
        self.is_distribution = hasattr(labeler, "sequence_log_proba")
        for option, wanted, method in (
            ("--proba", proba, "predict_proba"),
            ("--nbest", nbest, "predict_nbest"),
        ):
            if wanted and not hasattr(model, method):
                raise CommandError(f"{option}: a {type(labeler).__name__} cannot give that")

    def answer(self, items: list[Item], file: str) -> list[Answer]:
        """Answers for a chunk, in order; an item without tokens gets an empty one."""
        asked = [item for item in items if item.words]
        if not asked:
            return [Answer([([], 0.0)], None, self.codes) for _ in items]
        X = [item.tokens for item in asked]
        try:
            proba = self.model.predict_proba(X, **self.options) if self.proba else [None] * len(X)
            if self.nbest:
                found = [
                    [(labels.tolist(), score) for labels, score in best]
                    for best in self.model.predict_nbest(X, self.nbest, **self.options)
                ]
            else:
                predicted = self.model.predict(X, **self.options)
                found = [[(labels.tolist(), 0.0)] for labels in predicted]
        except PlacedError as error:
            line = asked[error.sequence or 0].line
            raise CommandError(f"{file}:{line}: {error.message.format(sequence='here')}") from error
        answers = iter(map(Answer, found, proba, [self.codes] * len(X)))
        nothing = Answer([([], 0.0)], None, self.codes)
        return [next(answers) if item.words else nothing for item in items]

    def shown_score(self, score: float) -> str:
        """Score of a labeling: its probability, where the model has one."""
        return f"{math.exp(score):.6f}" if self.is_distribution else f"{score:.6f}"


def renderer(reading: Reading, answerer: Answerer) -> Callable[[Item, Answer], str]:
    """Return the function that writes a sequence with its labels in the format it came in."""
    if reading.format == "jsonl":
        return lambda item, answer: _json_line(item, answer, answerer)
    body: Callable[[Item, list[Any], list[float] | None], list[str]] = _column_lines
    if reading.format == "conllu":
        field = CONLLU_FIELDS.index(str(reading.label))
        body = lambda item, labels, sure: _conllu_lines(item, labels, sure, field)  # noqa: E731
    elif reading.format in ("crfsuite", "svmlight"):
        body = _label_lines
    return lambda item, answer: _text(item, answer, answerer, body)


def _text(
    item: Item,
    answer: Answer,
    answerer: Answerer,
    body: Callable[[Item, list[Any], list[float] | None], list[str]],
) -> str:
    lines = list(item.before)
    for rank, (labels, score) in enumerate(answer.labelings):
        if answerer.nbest and labels:
            lines += [""] * (rank > 0)
            lines.append(f"# {rank} {answerer.shown_score(score)}")
        lines += body(item, labels, answer.confidence(rank))
    lines += item.after
    if not item.lines and not item.after and item.words:
        lines.append("")
    return "".join([line + "\n" for line in lines])


def _column_lines(item: Item, labels: list[Any], sure: list[float] | None) -> list[str]:
    lines = []
    for t, label in enumerate(labels):
        line = item.lines[t]
        sep = "\t" if "\t" in line else " "
        line = f"{line.rstrip(' ') if sep == ' ' else line}{sep}{label}"
        lines.append(line if sure is None else f"{line}{sep}{sure[t]:.6f}")
    return lines


def _label_lines(item: Item, labels: list[Any], sure: list[float] | None) -> list[str]:
    """Label of the file, where it has one, and predicted label: the features are not repeated."""
    lines = []
    for t, label in enumerate(labels):
        parts = [] if item.gold is None else [str(item.gold[t])]
        parts.append(str(label))
        if sure is not None:
            parts.append(f"{sure[t]:.6f}")
        lines.append("\t".join(parts))
    return lines


def _conllu_lines(item: Item, labels: list[Any], sure: list[float] | None, field: int) -> list[str]:
    """The lines with the label in its field, its probability in MISC."""
    lines, t = [], 0
    for line in item.lines:
        if is_word_line(line) and labels:
            columns = line.split("\t")
            columns[field] = str(labels[t])
            if sure is not None:
                note = f"Proba={sure[t]:.6f}"
                columns[9] = note if columns[9] == "_" else f"{columns[9]}|{note}"
            line = "\t".join(columns)
            t += 1
        lines.append(line)
    return lines


def _json_line(item: Item, answer: Answer, answerer: Answerer) -> str:
    if not item.words:
        return ""
    record = json.loads(item.lines[0])
    record["predicted"] = answer.labelings[0][0]
    sure = answer.confidence(0)
    if sure is not None:
        record["probability"] = [round(p, 6) for p in sure]
    if answerer.nbest:
        record["nbest"] = [
            {"labels": labels, "score": float(answerer.shown_score(score))}
            for labels, score in answer.labelings
        ]
    return json.dumps(record, ensure_ascii=False) + "\n"
