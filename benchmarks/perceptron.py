"""Averaged perceptron on CoNLL-2000: 20 passes of seqlab and CRFsuite, same attributes, one thread."""

from __future__ import annotations

from _common import clock, conll2000, keep, main, table

N_PASSES = 20


def crfsuite():
    import tempfile

    import pycrfsuite

    from seqlab.metrics import span_f1

    X, y = conll2000("train")
    trainer = pycrfsuite.Trainer(
        algorithm="ap", params={"max_iterations": N_PASSES, "epsilon": 0.0}, verbose=False
    )
    for steps, labels in zip(X, y, strict=True):
        trainer.append(steps, labels)
    record = {}
    with tempfile.NamedTemporaryFile() as file:
        with clock(record, "train"):
            trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        X_test, y_test = conll2000("test")
        record["f1"] = span_f1(y_test, [tagger.tag(steps) for steps in X_test])
    return record


def seqlab():
    from seqlab import SequenceVectorizer, StructuredPerceptron
    from seqlab.metrics import span_f1

    X, y = conll2000("train")
    vectorizer = SequenceVectorizer()
    sequences = vectorizer.fit_transform(X)
    model = StructuredPerceptron(max_iter=N_PASSES, random_state=0)
    model.fit(sequences[:100], y[:100])  # load the kernels
    record = {}
    with clock(record, "train"):
        model.fit(sequences, y)
    X_test, y_test = conll2000("test")
    record["f1"] = span_f1(y_test, model.predict(vectorizer.transform(X_test)))
    return record


if __name__ == "__main__":
    results = main({"CRFsuite": crfsuite, "seqlab": seqlab})
    if results:
        for record in results.values():
            record["ratio"] = results["CRFsuite"]["train"] / record["train"]
        table(results, ["train", "ratio", "f1"])
        keep("perceptron", results)
