"""Parse addresses: from lines of text to the fields of a table.

Trains on generated addresses, parses new ones with the IOB2 constraint, and prints the fields with
the probability of the least certain token, so that a person can check the uncertain addresses first.
"""

import re

from seqlab import LinearChainCRF, Tagger, Templates
from seqlab.data import tags_to_phrases
from seqlab.datasets import make_addresses
from seqlab.metrics import span_report

NEW = [
    "1600 Pennsylvania Ave NW, Washington, DC 20500",
    "Flat 3, 221B Baker Street, London NW1 6XE",
    "Frau Ada Lovelace, Lindenstr. 12, 10969 Berlin",
    "14 bis rue de la Paix 75002 paris",
    "apt 9 742 evergreen terrace springfield",
]


def tokens(line):
    """Words and commas, split in the same way as the training data."""
    return [(token,) for token in re.findall(r"[^\s,]+|,", line)]


def parse(tagger, line):
    """Fields of an address, and the probability of its least certain token."""
    words = tokens(line)
    tags = tagger.predict([words], constraints="IOB2")[0]
    confidence = tagger.predict_proba([words], constraints="IOB2")[0].max(axis=1).min()
    fields = {
        phrase.type: " ".join(word for (word,) in words[phrase.start : phrase.stop])
        for phrase in tags_to_phrases(tags.tolist())
    }
    return fields, confidence


def main():
    X, y = make_addresses(1000, random_state=0, return_X_y=True)
    tagger = Tagger(Templates.default(), LinearChainCRF(c2=0.05)).fit(X[:800], y[:800])

    predicted = tagger.predict(X[800:], constraints="IOB2")
    row = span_report(y[800:], predicted, confidence=0.95, random_state=0).to_dict()["micro avg"]
    low, high = row["f1_interval"]
    print(f"200 test addresses: F1 {row['f1']:.3f} (95 % interval {low:.3f} to {high:.3f})")

    found = [(line, *parse(tagger, line)) for line in NEW]
    for line, fields, confidence in sorted(found, key=lambda one: one[2]):
        print(f"\n{line}\n  least certain token: {confidence:.2f}")
        for name, text in fields.items():
            print(f"  {name:12} {text}")


if __name__ == "__main__":
    main()
