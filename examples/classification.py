"""Classify short multichannel recordings of unequal length.

Three kinds of movement differ in rhythm and in the way their channels move together. The script
trains a classifier, prints its accuracy and its confusion matrix on new cases.

Run: python examples/classification.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import confusion_matrix

import sacm

NAMES = np.array(["circle", "shake", "swipe"])


def make_cases(count: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Recordings `[3, L]` with L from 40 to 60, and their labels `[N]`."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    cases = []
    for label in labels:
        time = np.arange(random.integers(40, 61)) / 50
        phase = 2 * np.pi * random.random()
        cycles = (2, 7, 1)[label]
        angle = 2 * np.pi * cycles * time + phase
        moves = {
            0: (np.sin(angle), np.cos(angle), 0.2 * np.sin(angle)),
            1: (np.sin(angle), np.sin(angle), np.sin(angle)),
            2: (np.sin(angle), 0.1 * np.cos(angle), -np.sin(angle)),
        }[int(label)]
        cases.append(np.stack(moves) + random.normal(scale=1.2, size=(3, len(time))))
    return cases, NAMES[labels]


def main(arguments: list[str] | None = None) -> None:
    """Run the example; the arguments are those of the command line."""
    parser = argparse.ArgumentParser(description="Classify short recordings.")
    parser.add_argument("--quick", action="store_true", help="few cases, one epoch")
    options = parser.parse_args(arguments)

    cases, labels = make_cases(36 if options.quick else 180, seed=0)
    classifier = sacm.Classifier(
        "InceptionTime", size="small", epochs=1 if options.quick else 10, learning_rate=1e-3
    )
    classifier.fit(cases, labels)

    fresh, truth = make_cases(60, seed=1)
    found = classifier.predict(fresh)
    scores = classifier.evaluate(fresh, truth)
    print(f"accuracy {scores['accuracy']:.2f}, macro F1 {scores['macro_f1']:.2f} on 60 new cases")
    print("probabilities of the first case:", np.round(classifier.predict_proba(fresh[:1]), 2)[0])
    print("rows: truth, columns: prediction;", ", ".join(NAMES))
    print(confusion_matrix(truth, found, labels=NAMES))


if __name__ == "__main__":
    main()
