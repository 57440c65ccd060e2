"""Tagging the test set of CoNLL-2000 with one thread: labels and marginals, from strings and from columns.

The best of five runs each. Strings are created anew for every run, because a Python string caches its hash.
"""

from __future__ import annotations

from _common import clock, conll2000, keep, main, table

N_RUNS = 5


def best(record, name, function, data):
    """Store the shortest time of ``function(data())`` in ``record[name]``."""
    seconds = []
    for _ in range(N_RUNS):
        fresh = data()
        with clock(record, name):
            function(fresh)
        seconds.append(record[name])
    record[name] = min(seconds)


def test_strings():
    return conll2000("test")[0]


def crfsuite():
    import tempfile

    import pycrfsuite

    X, y = conll2000("train")
    trainer = pycrfsuite.Trainer(algorithm="ap", params={"max_iterations": 5}, verbose=False)
    for steps, labels in zip(X, y, strict=True):
        trainer.append(steps, labels)
    record = {}
    with tempfile.NamedTemporaryFile() as file:
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        labels = tagger.labels()

        def marginals(X):
            for steps in X:
                tagger.set(steps)
                _ = [[tagger.marginal(label, t) for label in labels] for t in range(len(steps))]

        best(record, "tag, strings", lambda X: [tagger.tag(steps) for steps in X], test_strings)
        best(record, "marginals, strings", marginals, test_strings)
    return record


def seqlab():
    from seqlab import StructuredPerceptron, Tagger, Templates
    from seqlab.datasets import fetch_conll2000

    X, y = conll2000("train")
    X_test, _ = conll2000("test")
    strings = StructuredPerceptron(max_iter=5, random_state=0).fit(X, y)
    columns = Tagger(
        Templates.chunking("crfsuite"), StructuredPerceptron(max_iter=5, random_state=0)
    )
    X_columns, _ = fetch_conll2000(subset="train", return_X_y=True)
    columns.fit(X_columns, y)
    X_columns, _ = fetch_conll2000(subset="test", return_X_y=True)
    strings.predict(X_test[:20])
    strings.predict_proba(X_test[:20])
    columns.predict(X_columns[:20])
    record = {}
    best(record, "tag, strings", strings.predict, test_strings)
    best(record, "tag, columns", columns.predict, lambda: X_columns)
    best(record, "marginals, strings", strings.predict_proba, test_strings)
    return record


if __name__ == "__main__":
    results = main({"CRFsuite": crfsuite, "seqlab": seqlab})
    if results:
        peer, ours = results["CRFsuite"], results["seqlab"]
        results["ratio"] = {
            "tag, strings": peer["tag, strings"] / ours["tag, strings"],
            "tag, columns": peer["tag, strings"] / ours["tag, columns"],
            "marginals, strings": peer["marginals, strings"] / ours["marginals, strings"],
        }
        table(results, ["tag, strings", "tag, columns", "marginals, strings"])
        keep("tagging", results)
