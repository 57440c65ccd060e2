"""Random damage to text files and templates, and the check that only typed errors come out."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from seqlab.data.errors import SeqlabError
from seqlab.data.io import (
    read_conll,
    read_conllu,
    read_crfsuite,
    read_jsonl,
    read_logical,
    read_svmlight,
)
from seqlab.features import SequenceVectorizer, Templates

TOKENS = [[("He", "PRP"), ("left", "-1")], [("1998", "9" * 5000)]]
# Pieces that have broken a reader somewhere, or might.
FRAGMENTS = [
    "",
    " ",
    "\t",
    "\n",
    "\r",
    "\n\n",
    "\0",
    "\ufeff",
    "\u2028",
    "\x85",
    "\ud7ff",
    "\U0010ffff",
    "٣",
    "²",
    "#",
    ":",
    "\\",
    "'",
    '"',
    "%",
    "[",
    "]",
    "{",
    "}",
    ",",
    "*",
    "?",
    "@",
    "^",
    "$",
    ".",
    "-",
    "+",
    "_",
    "1-2",
    "1.1",
    "0",
    "-1",
    "1e999",
    "nan",
    "-inf",
    "Infinity",
    "NaN",
    "null",
    "true",
    "[]",
    "{}",
    '""',
    "9" * 20,
    "9" * 400,
    "9" * 4400,
    "[" * 3000,
    '{"a":' * 500,
    "(" * 2000,
    " " * 3000,
    "a?" * 30,
    ".*" * 30,
    "%x[0,0]",
    "%x[-1,0]/",
    "%x[1001,0]",
    "%x[@1,1]",
    "%x[*1,0]",
    '%t[0,0,"^a*$"]',
    '%M[0,1,".?.?$"]',
    "-DOCSTART-",
    "qid:1",
    "qid:",
    "labels",
    "features",
    "tokens",
]
_TEMPLATES = [
    "U00:%x[-1,0]/%x[0,1]\nB\n# comment\nU:%x[0,0]\nU:%x[1,0]\n",
    'u:%m[0,0,"^.?.?"]%X[-2,1]\n*:%t[0,0,"\\d"]\nb\nu:%x[@-1,0] # end\nu:%x[*1,0]\n__BOS__\n',
]


class Target(NamedTuple):
    """Something that reads text, and valid texts to begin with."""

    read: Callable[[bytes, random.Random], Any]
    texts: list[str]


def _reader(function: Callable[..., Any], *choices: dict[str, Any]) -> Callable[..., Any]:
    def read(content: bytes, draw: random.Random) -> Any:
        encoding = draw.choice(["utf-8"] * 20 + ["latin-1", "utf-16", "utf-8-sig", "hex", "utf-32"])
        return function(io.BytesIO(content), encoding=encoding, **draw.choice(choices))

    return read


def _read_jsonl(content: bytes, draw: random.Random) -> Any:
    X, _ = read_jsonl(io.BytesIO(content), label=draw.choice(["labels", None]))
    steps = [step for sequence in X for step in sequence]
    if steps and isinstance(steps[0], dict | list):
        SequenceVectorizer().fit(X)


def _read_templates(content: bytes, draw: random.Random) -> Any:
    lines = content.decode("utf-8", "replace").splitlines()
    syntax = draw.choice(["auto", "crfpp", "wapiti"])
    templates = Templates(lines, syntax=syntax, boundary=draw.choice(["mark", "skip"]))
    templates.fit(TOKENS).get_feature_names_out()
    templates.transform_edges(TOKENS)


_WORD = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"
TARGETS = {
    "conll": Target(
        _reader(read_conll, {}, {"label": None}, {"label": 0, "sep": "\t"}, {"sep": "whitespace"}),
        ["the DT B-NP\ndog NN I-NP\n\nbarks VBZ B-VP\n", "a\tX\n\n-DOCSTART- -X-\nb\tY\n"],
    ),
    "conllu": Target(
        _reader(read_conllu, {}, {"label": "feats"}, {"columns": ["form", "misc"]}),
        [f"# text = Go\n{_WORD}\n1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_\n{_WORD}"],
    ),
    "crfsuite": Target(
        _reader(read_crfsuite, {}, {"labeled": False}),
        ["B\tw=the\tcap:0.5\nI\tw\\:dog\n\nO\ta:1\n"],
    ),
    "jsonl": Target(
        _read_jsonl,
        [
            '{"tokens": ["a", "b"], "labels": ["X", null]}\n',
            '{"features": [{"a": 1.5, "b": ["c"]}, {"d": {"e": true}}], "labels": [1, [1, 2]]}\n',
            '{"features": [[1, 2], [3, 4]], "labels": [0, 1]}\n',
        ],
    ),
    "logical": Target(
        _reader(read_logical, {}, {"labeled": False}),
        ["tea\tuse(kettle), use('a b')\n% comment\nrest\ttrue\n\nx\tat(person, kitchen)\n"],
    ),
    "svmlight": Target(
        _reader(read_svmlight, {}, {"n_features": 5}, {"zero_based": True}),
        ["1 qid:1 1:0.5 3:1\n2 qid:1 2:1 # note\n-1 qid:2 1:1\n"],
    ),
    "templates": Target(_read_templates, _TEMPLATES),
}


def damage(text: str, draw: random.Random) -> bytes:
    """Return a text after some random edits, perhaps compressed, cut off or with random bytes."""
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(text) + 1)
        end = min(len(text), at + draw.choice([0, 0, 1, 2, 10]))
        piece = draw.choice(FRAGMENTS) if draw.random() < 0.7 else text[: draw.randrange(40)]
        text = text[:at] + piece + text[end:]
    content = text.encode(draw.choice(["utf-8"] * 30 + ["utf-16", "utf-32"]), "surrogatepass")
    kind = draw.random()
    if kind < 0.05:
        content = draw.choice([gzip.compress, bz2.compress, lzma.compress])(content)
    if kind < 0.03 or 0.1 < kind < 0.15:
        content = content[: draw.randrange(len(content) + 1)]
    if 0.15 < kind < 0.25:
        at = draw.randrange(len(content) + 1)
        content = content[:at] + draw.randbytes(3) + content[at:]
    return content


def check_case(name: str, seed: int) -> str:
    """Read one damaged text; return the outcome. Raises whatever is not a typed error."""
    draw = random.Random(f"{name} {seed}")
    target = TARGETS[name]
    content = damage(draw.choice(target.texts), draw)
    try:
        target.read(content, draw)
    except SeqlabError:
        return "typed error"
    return "read"
