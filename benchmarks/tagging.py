"""Tagging the test set of CoNLL-2000: labels and marginals, from strings and from columns."""

from __future__ import annotations

from _common import clock, conll2000, keep, main, table


def crfsuite():
    import tempfile

    import pycrfsuite

    X, y = conll2000("train")
    trainer = pycrfsuite.Trainer(algorithm="ap", params={"max_iterations": 5}, verbose=False)
    for steps, labels in zip(X, y, strict=True):
        trainer.append(steps, labels)
    X_test, _ = conll2000("test")
    record = {}
    with tempfile.NamedTemporaryFile() as file:
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        with clock(record, "tag, strings"):
            for steps in X_test:
                tagger.tag(steps)
        labels = tagger.labels()
        with clock(record, "marginals, strings"):
            for steps in X_test:
                tagger.set(steps)
                _ = [[tagger.marginal(label, t) for label in labels] for t in range(len(steps))]
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
    with clock(record, "tag, strings"):
        strings.predict(X_test)
    with clock(record, "tag, columns"):
        columns.predict(X_columns)
    with clock(record, "marginals, strings"):
        strings.predict_proba(X_test)
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
