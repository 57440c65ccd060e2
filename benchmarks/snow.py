"""SNoW on the noun phrases of CoNLL-2000: five passes over 423,454 decisions of 30 features, one core."""

from __future__ import annotations

from _common import clock, keep, main, peak_memory, table

N_PASSES = 5


def task(subset):
    """Tokens of a subset, and the open and close decisions of its noun phrases."""
    from seqlab.data import phrases_to_open_close, tags_to_phrases
    from seqlab.datasets import fetch_conll2000

    X, y = fetch_conll2000(subset=subset, return_X_y=True)
    phrases = [[p for p in tags_to_phrases(tags) if p.type == "NP"] for tags in y]
    return X, [d for p, x in zip(phrases, X, strict=True) for d in phrases_to_open_close(p, len(x))]


def measure(make):
    from seqlab.features import BracketFeatures

    X, y = task("train")
    brackets = BracketFeatures()
    record = {}
    with clock(record, "features"):
        matrix = brackets.fit_transform(X).matrix
    make().fit(matrix[:2000], y[:2000])  # load the kernels
    model = make()
    with clock(record, "train"):
        model.fit(matrix, y)
    X_test, y_test = task("test")
    test = brackets.transform(X_test).matrix
    with clock(record, "predict"):
        found = model.predict(test)
    record["accuracy"] = float((found == y_test).mean())
    record["memory"] = peak_memory()
    return record


def snow():
    from seqlab import SNoW

    return measure(lambda: SNoW(max_iter=N_PASSES, random_state=0))


def perceptron():
    from sklearn.linear_model import Perceptron

    return measure(lambda: Perceptron(max_iter=N_PASSES, tol=None, random_state=0))


if __name__ == "__main__":
    results = main({"scikit-learn Perceptron": perceptron, "seqlab SNoW": snow})
    if results:
        table(results, ["features", "train", "predict", "accuracy", "memory"])
        keep("snow", results)
