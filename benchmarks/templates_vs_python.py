"""`Templates` compared with the same string features built in Python.

The 19 unigram lines of the CRF++ chunking template on the training part of CoNLL-2000 (read from
$SEQLAB_DATA), or on the same amount of generated text if it is not available. In Python there are two
ways to build the strings; both are also timed up to the CSR matrix that `Templates.fit_transform` returns:

* by hand: one f-string per feature, written for this template;
* templates: a general function expands the template lines, as `Templates` does.

Run: python benchmarks/templates_vs_python.py [--json PATH]
"""

import argparse
import gc
import gzip
import json
import os
import re
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from seqlab.features import Templates

HOLE = re.compile(r"%x\[(-?\d+),(\d+)\]")


def read_sentences():
    path = Path(os.environ.get("SEQLAB_DATA", ".")) / "conll2000" / "train.txt.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            parts = file.read().strip().split("\n\n")
        return "CoNLL-2000 train", [[tuple(t.split()[:2]) for t in p.split("\n")] for p in parts]
    random = np.random.default_rng(0)
    words = [f"word{n}" for n in random.zipf(1.3, 211_727) % 20_000]
    tags = [f"T{n}" for n in random.integers(44, size=211_727)]
    tokens = list(zip(words, tags, strict=True))
    return "generated", [tokens[a : a + 24] for a in range(0, len(tokens), 24)]


def python_strings(sentences):
    rows = []
    for sentence in sentences:
        words = ["_B-2", "_B-1", *(token[0] for token in sentence), "_B+1", "_B+2"]
        tags = ["_B-2", "_B-1", *(token[1] for token in sentence), "_B+1", "_B+2"]
        for t in range(len(sentence)):
            a, b, c, d, e = words[t : t + 5]
            p, q, r, s, u = tags[t : t + 5]
            rows.append(
                [
                    f"U00:{a}",
                    f"U01:{b}",
                    f"U02:{c}",
                    f"U03:{d}",
                    f"U04:{e}",
                    f"U05:{b}/{c}",
                    f"U06:{c}/{d}",
                    f"U10:{p}",
                    f"U11:{q}",
                    f"U12:{r}",
                    f"U13:{s}",
                    f"U14:{u}",
                    f"U15:{p}/{q}",
                    f"U16:{q}/{r}",
                    f"U17:{r}/{s}",
                    f"U18:{s}/{u}",
                    f"U20:{p}/{q}/{r}",
                    f"U21:{q}/{r}/{s}",
                    f"U22:{r}/{s}/{u}",
                ]
            )
    return rows


def python_templates(sentences):
    compiled = []
    for line in Templates.chunking("crfpp").templates[:-1]:
        holes = [(int(hole[1]), int(hole[2])) for hole in HOLE.finditer(line)]
        compiled.append((HOLE.sub("%s", line), holes))
    rows = []
    for sentence in sentences:
        n = len(sentence)

        def value(position, column, sentence=sentence, n=n):
            if position < 0:
                return f"_B{position}"
            if position >= n:
                return f"_B+{position - n + 1}"
            return sentence[position][column]

        for t in range(n):
            rows.append(
                [text % tuple(value(t + r, c) for r, c in holes) for text, holes in compiled]
            )
    return rows


def to_csr(rows):
    index: dict[str, int] = {}
    indices = [index.setdefault(name, len(index)) for row in rows for name in row]
    indptr = np.arange(0, len(indices) + 1, 19)
    return sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(index)))


def best_seconds(contenders, rounds=5):
    """Shortest time of each, measured in turn so that other load on the machine affects all of them."""
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(rounds):
        for name, work in contenders.items():
            gc.collect()
            begin = time.perf_counter()
            result = work()
            best[name] = min(best[name], time.perf_counter() - begin)
            del result
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    json_path = parser.parse_args().json
    source, sentences = read_sentences()
    begin = time.perf_counter()
    model = Templates.chunking("crfpp")
    model.fit_transform(sentences)
    first = time.perf_counter() - begin
    model.transform(sentences[:1])
    expected = (sum(map(len, sentences)), model.n_features_out_)
    assert to_csr(python_strings(sentences)).shape == expected
    assert to_csr(python_templates(sentences)).shape == expected
    times = best_seconds(
        {
            "Python, by hand": lambda: python_strings(sentences),
            "Python, by hand, to CSR": lambda: to_csr(python_strings(sentences)),
            "Python, templates": lambda: python_templates(sentences),
            "Python, templates, to CSR": lambda: to_csr(python_templates(sentences)),
            "Templates.fit": lambda: Templates.chunking("crfpp").fit(sentences),
            "Templates.fit_transform": lambda: Templates.chunking("crfpp").fit_transform(sentences),
            "Templates.transform": lambda: model.transform(sentences),
        }
    )
    ours = times["Templates.fit_transform"]
    print(
        f"{source}: {len(sentences)} sequences, {sum(map(len, sentences))} tokens, 19 templates, "
    )
    print(
        f"{model.n_features_out_} features; first call, with compiling or loading: {first:.2f} s\n"
    )
    print(f"{'':28}{'seconds':>9}{'/ fit_transform':>17}")
    for name, value in times.items():
        print(f"{name:28}{value:9.3f}{value / ours:17.1f}")
    if json_path:
        json_path.write_text(json.dumps({"data": source, "seconds": times, "first_call": first}))


if __name__ == "__main__":
    main()
