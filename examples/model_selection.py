"""Choose c1 and c2 with GridSearchCV, then test whether the result is significant.

Searches both penalties with the F1 of phrases, and compares the best setting with the default on
held-out data by a paired bootstrap.
"""

from sklearn.model_selection import GridSearchCV, train_test_split

from seqlab import LinearChainCRF, Tagger, Templates
from seqlab.datasets import make_addresses
from seqlab.metrics import paired_bootstrap, span_f1_scorer

GRID = {"labeler__c1": [0.0, 0.1], "labeler__c2": [0.003, 0.03, 0.3, 3.0]}


def main():
    X, y = make_addresses(500, random_state=0, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=120, random_state=0)

    tagger = Tagger(Templates.default(), LinearChainCRF(tol=1e-3))
    search = GridSearchCV(tagger, GRID, scoring=span_f1_scorer("IOB2"), cv=3).fit(X_train, y_train)

    print("   c1      c2   F1 of three folds")
    results = search.cv_results_
    for i, params in enumerate(results["params"]):
        mean, std = results["mean_test_score"][i], results["std_test_score"][i]
        mark = " <" if i == search.best_index_ else ""
        c1, c2 = params["labeler__c1"], params["labeler__c2"]
        print(f"{c1:5.2f} {c2:7.3f}   {mean:.3f} ± {std:.3f}{mark}")

    default = tagger.fit(X_train, y_train)
    test = paired_bootstrap(
        y_test, search.predict(X_test), default.predict(X_test), "span_f1", random_state=0
    )
    print(f"\non 380 test addresses: chosen {test.score_a:.3f}, default {test.score_b:.3f}")
    print(f"difference {test.difference:+.3f}, 95 % interval {test.low:+.3f} to {test.high:+.3f}")


if __name__ == "__main__":
    main()
