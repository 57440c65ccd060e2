"""Words of handwritten digits: a sequence model with a kernel makes the fewest errors.

scikit-learn's 8 x 8 digits are put into words by a Markov chain: every digit is usually followed by one of
three others. Compared are two classifiers that see one digit at a time (logistic regression, multiclass SVM
with a cubic kernel) and three models of whole words (CRF, max-margin Markov network, linear and with the same
cubic kernel). The images are noisy, so that neighbours help.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from seqlab import M3N, IndependentLabeler, LinearChainCRF

NOISE = 5.0  # standard deviation; pixels are between 0 and 16
LENGTH = 8


def make_words(images, labels, n_words, random):
    """Draw words of digits; the images of each digit are drawn from those with its label."""
    follows = np.full((10, 10), 0.02)
    for digit in range(10):
        follows[digit, [(digit + 1) % 10, (3 * digit + 2) % 10, (7 * digit + 5) % 10]] += 0.27
    follows /= follows.sum(axis=1, keepdims=True)
    by_label = [np.flatnonzero(labels == digit) for digit in range(10)]
    X, y = [], []
    for _ in range(n_words):
        word = [random.integers(10)]
        while len(word) < LENGTH:
            word.append(random.choice(10, p=follows[word[-1]]))
        pixels = images[[random.choice(by_label[digit]) for digit in word]]
        pixels = pixels + random.normal(0.0, NOISE, pixels.shape) > 8.0
        X.append(np.hstack([pixels, np.ones((LENGTH, 1))]))
        y.append(np.array(word))
    return X, y


def main():
    random = np.random.default_rng(0)
    digits = load_digits()
    half = len(digits.target) // 2  # no image is in both parts
    X_train, y_train = make_words(digits.data[:half], digits.target[:half], 120, random)
    X_test, y_test = make_words(digits.data[half:], digits.target[half:], 200, random)
    models = {
        "logistic regression": IndependentLabeler(LogisticRegression(C=0.1, max_iter=1000)),
        "SVM, cubic kernel": IndependentLabeler(SVC(kernel="poly", degree=3, coef0=1.0, C=3.0)),
        "CRF": LinearChainCRF(c2=1.0),
        "M3N, linear": M3N(C=0.1, random_state=0),
        "M3N, cubic kernel": M3N(kernel="poly", degree=3, C=1.0, random_state=0),
    }
    print("wrong digits in 200 words, in percent")
    for name, model in models.items():
        model.fit(X_train, y_train)
        print(f"  {name:20} {100 * (1 - model.score(X_test, y_test)):5.1f}")


if __name__ == "__main__":
    main()
