"""The data sets of `datasets.py`: bags of attributes that CRFsuite and seqlab read alike.

A problem is ``(X, y)``: each step a list of strings, or a dict of strings to numbers. The sizes are such that
python-crfsuite's 100 iterations take seconds to a minute.
"""

from __future__ import annotations

import re


def word_attributes(sentence, *, columns=1):
    """Return about 25 attributes per token, such as those of named entity recognisers.

    The token and its two neighbours on both sides: lower case, suffixes, prefix, shape; word pairs.
    """
    words = [token[0] for token in sentence]
    steps = []
    for t, word in enumerate(words):
        lower = word.lower()
        step = ["bias", f"w={lower}", f"shape={shape(word)}", f"brief={shape(word, brief=True)}"]
        step += [f"p{n}={lower[:n]}" for n in (1, 2, 3) if len(lower) >= n]
        step += [f"s{n}={lower[-n:]}" for n in (1, 2, 3) if len(lower) >= n]
        step += [f"title={word.istitle()}", f"upper={word.isupper()}", f"digit={word.isdigit()}"]
        for shift in (-2, -1, 1, 2):
            if 0 <= t + shift < len(words):
                other = words[t + shift]
                step += [f"{shift}:w={other.lower()}", f"{shift}:shape={shape(other, brief=True)}"]
        step.append(f"w|+1={lower}|{words[t + 1].lower()}" if t + 1 < len(words) else "EOS")
        step.append(f"-1|w={words[t - 1].lower()}|{lower}" if t > 0 else "BOS")
        if columns > 1:
            step += [f"pos={sentence[t][1]}"]
        steps.append(step)
    return steps


def shape(word, *, brief=False):
    """Return ``Xxxx-dd`` for ``Word-19``; runs of one class count once if ``brief``."""
    found = re.sub("[a-z]", "x", re.sub("[A-Z]", "X", re.sub("[0-9]", "d", word)))
    return re.sub(r"(.)\1+", r"\1", found) if brief else found


def window_attributes(letters, width=3):
    """Return the letters within ``width`` of each position, and pairs and triples around it."""
    padded = ["_"] * width + list(letters) + ["_"] * width
    steps = []
    for t in range(len(letters)):
        near = padded[t : t + 2 * width + 1]
        step = [f"{k - width}={letter}" for k, letter in enumerate(near)]
        step += [f"{k - width}&={near[k]}{near[k + 1]}" for k in range(2 * width)]
        step.append("mid=" + "".join(near[width - 1 : width + 2]))
        steps.append(step)
    return steps


def line_attributes(lines):
    """Return attributes of the lines of a mail: character classes, first word, position from the end."""
    steps = []
    for t, (line,) in enumerate(lines):
        words = line.split()
        step = [
            f"first={words[0].lower() if words else ''}",
            f"brief={shape(line[:30], brief=True)}",
        ]
        step += [f"n_words={min(len(words), 12)}", f"from_end={min(len(lines) - 1 - t, 12)}"]
        step += [name for name, rule in LINE_RULES.items() if rule.search(line)]
        step += [f"w={word.lower()}" for word in words[:12]]
        steps.append(step)
    for t in range(len(steps)):
        for shift in (-1, 1):
            if 0 <= t + shift < len(steps):
                near = steps[t + shift]
                steps[t] = [*steps[t], *(f"{shift}:{a}" for a in near[:4] if ":" not in a)]
    return steps


LINE_RULES = {
    "blank": re.compile(r"^\s*$"),
    "mail": re.compile(r"\S@\S"),
    "phone": re.compile(r"\d{3}.?\d{4}"),
    "dashes": re.compile(r"--|__|\*\*|=="),
    "quote": re.compile(r"^\s*[>|:]"),
    "indent": re.compile(r"^\s{4}"),
    "header": re.compile(r"^[A-Z][\w-]*:"),
    "name": re.compile(r"^\s*[A-Z][a-z]+ [A-Z]"),
}


def chunks(n):
    from _common import conll2000

    X, y = conll2000("train")
    return X[:n], y[:n]


def universal(n, tagset):
    from seqlab.datasets import fetch_ud_english_ewt

    X, y = fetch_ud_english_ewt(subset="train", tagset=tagset, return_X_y=True)
    return [word_attributes(s) for s in X[:n]], [list(map(str, s)) for s in y[:n]]


def names(n):
    """Runs of proper nouns as IOB2 spans, typed by whether a digit or an abbreviation is among them."""
    from seqlab.datasets import fetch_ud_english_ewt

    X, y = fetch_ud_english_ewt(subset="train", tagset="xpos", return_X_y=True)
    labels = []
    for sentence, tags in zip(X[:n], y[:n], strict=True):
        found, t = ["O"] * len(tags), 0
        while t < len(tags):
            stop = t
            while stop < len(tags) and tags[stop].startswith("NNP"):
                stop += 1
            if stop > t:
                words = [token[0] for token in sentence[t:stop]]
                short = any(word.isupper() for word in words)
                kind = "ABBR" if short else "PLURAL" if tags[stop - 1] == "NNPS" else "NAME"
                kind = "LONG" if stop - t > 2 else kind
                found[t:stop] = ["B-" + kind] + ["I-" + kind] * (stop - t - 1)
            t = max(stop, t + 1)
        labels.append(found)
    return [word_attributes(s) for s in X[:n]], labels


def noun_phrases(n):
    from seqlab.datasets import fetch_ptb_sample

    X, y = fetch_ptb_sample(return_X_y=True)
    return [word_attributes(s, columns=2) for s in X[:n]], [list(map(str, s)) for s in y[:n]]


def sounds(n, task):
    from seqlab.datasets import fetch_nettalk

    X, y = fetch_nettalk(task=task, return_X_y=True)
    words = [[letter for (letter,) in word] for word in X[::7][:n]]
    return [window_attributes(word) for word in words], [list(map(str, s)) for s in y[::7][:n]]


def letters(n):
    from seqlab.datasets import fetch_ocr_letters

    X, y = fetch_ocr_letters(return_X_y=True)
    pixels = [[[f"{k}" for k in row.nonzero()[0]] for row in word] for word in X[:n]]
    return pixels, [list(map(str, s)) for s in y[:n]]


def mails(n):
    from seqlab.datasets import fetch_email_signatures

    X, y = fetch_email_signatures(return_X_y=True)
    return [line_attributes(mail) for mail in X[:n]], [list(map(str, s)) for s in y[:n]]


def activities():
    from seqlab.datasets import fetch_kasteren

    X, y = fetch_kasteren(return_X_y=True)
    steps = [[[f"{k}" for k in row.nonzero()[0]] + ["bias"] for row in day] for day in X]
    return steps, [list(map(str, s)) for s in y]


def addresses(n):
    from seqlab.datasets import make_addresses

    X, y = make_addresses(n, random_state=0, return_X_y=True)
    return [word_attributes(s) for s in X], [list(map(str, s)) for s in y]


def states(n):
    from seqlab.datasets import make_hmm_sequences

    X, y = make_hmm_sequences(n, random_state=0, return_X_y=True)
    return [[[f"{k}" for k in row.nonzero()[0]] for row in s] for s in X], [
        list(map(str, s)) for s in y
    ]


def measurements(n):
    """Gaussian columns of different scale: numbers, not indicators."""
    import numpy as np

    random = np.random.default_rng(0)
    n_labels, n_columns = 6, 30
    means = 0.5 * random.normal(size=(n_labels, n_columns))
    scales = 10.0 ** random.uniform(-1, 1, n_columns)
    transitions = random.dirichlet(np.full(n_labels, 0.5), size=n_labels)
    X, y = [], []
    for n_steps in random.integers(10, 40, n):
        labels = [int(random.integers(n_labels))]
        while len(labels) < n_steps:
            labels.append(int(random.choice(n_labels, p=transitions[labels[-1]])))
        values = (means[labels] + random.normal(size=(n_steps, n_columns))) * scales
        X.append([{f"x{k}": float(v) for k, v in enumerate(row)} for row in values])
        y.append([str(label) for label in labels])
    return X, y


PROBLEMS = {
    "chunks, 2000 sentences": lambda: chunks(2000),
    "chunks, 150 sentences": lambda: chunks(150),
    "noun phrases, 1500 sentences": lambda: noun_phrases(1500),
    "names, 4000 sentences": lambda: names(4000),
    "parts of speech, 1500 sentences": lambda: universal(1500, "upos"),
    "fine parts of speech, 400 sentences": lambda: universal(400, "xpos"),
    "phonemes, 1500 words": lambda: sounds(1500, "phoneme"),
    "stress, 3000 words": lambda: sounds(3000, "stress"),
    "letters, 1200 words": lambda: letters(1200),
    "mails, 600": lambda: mails(600),
    "activities, 28 days": activities,
    "addresses, 5000": lambda: addresses(5000),
    "addresses, 300": lambda: addresses(300),
    "hidden Markov model, 300": lambda: states(300),
    "measurements, 300": lambda: measurements(300),
}
# Data sets of the same source are left out together.
SOURCES = {
    "chunks, 2000 sentences": "CoNLL-2000",
    "chunks, 150 sentences": "CoNLL-2000",
    "noun phrases, 1500 sentences": "Penn Treebank",
    "names, 4000 sentences": "UD English EWT",
    "parts of speech, 1500 sentences": "UD English EWT",
    "fine parts of speech, 400 sentences": "UD English EWT",
    "phonemes, 1500 words": "NETtalk",
    "stress, 3000 words": "NETtalk",
    "letters, 1200 words": "OCR letters",
    "mails, 600": "mails",
    "activities, 28 days": "activities",
    "addresses, 5000": "addresses",
    "addresses, 300": "addresses",
    "hidden Markov model, 300": "hidden Markov model",
    "measurements, 300": "measurements",
}
