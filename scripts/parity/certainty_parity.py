#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the certainty that `train eval` reports with SciPy and scikit-learn: metrics, BCa intervals (scipy.stats.bootstrap),
shares (Wilson's interval), reliability (sklearn.calibration) and best thresholds, on random cases.

    scripts/parity/certainty_parity.py [--tool build/release/tests/statistics/certainty_tool] [--cases 5]

Needs NumPy, SciPy and scikit-learn. Metrics, Wilson's intervals, reliability and thresholds must agree to 1e-6, since cases
are float32; both ends of an interval, which are drawn, to a tenth of its width. Prints one line per comparison; exits 1
when one is worse."""
import argparse
import math
import subprocess
import sys
import warnings

import numpy as np
import scipy.stats
from sklearn import calibration, metrics as sk

warnings.filterwarnings("ignore")
RESAMPLES = 20000
worst = {}


def note(what, difference):
    worst[what] = max(worst.get(what, 0.0), float(difference))


def ask(tool, text):
    lines = subprocess.run([tool], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    answer = {"threshold": [], "bin": []}
    for line in lines:
        name, *values = line.split()
        values = [float(value) for value in values]
        if name in answer:
            answer[name].append(values)
        elif name != "end":
            answer[name] = values
    return answer


def compare_interval(name, ours, rows, statistic):
    """`statistic` takes the indices of a resample; the tool draws 20,000, SciPy 2,000, which is slow."""
    with np.errstate(all="ignore"):
        theirs = scipy.stats.bootstrap((np.arange(rows),), statistic, vectorized=False, n_resamples=2000,
                                       method="BCa", random_state=1, batch=100).confidence_interval
    width = theirs.high - theirs.low
    if not width > 0 or math.isnan(width):
        return
    note("interval of " + name, max(abs(ours[1] - theirs.low), abs(ours[2] - theirs.high)) / width)


def multiclass(rng, tool):
    rows, classes = int(rng.integers(150, 400)), 5
    truth = rng.integers(0, classes, rows)
    logits = rng.normal(size=(rows, classes))
    logits[np.arange(rows), truth] += 1.5
    probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    predicted = probability.argmax(1)
    confidence = probability.max(1).astype(np.float32)
    loss = -np.log(probability[np.arange(rows), truth]).astype(np.float32)
    text = f"multiclass {classes} 0.5 {rows} {RESAMPLES}\n" + "\n".join(
        f"{l:.9g} {t} {s} 1 {c:.9g}" for l, t, s, c in zip(loss, truth, predicted, confidence))
    ours = ask(tool, text)
    every = list(range(classes))
    figures = {"loss": lambda i: loss[i].astype(float).mean(), "top1": lambda i: 100 * (truth[i] == predicted[i]).mean(),
               "f1": lambda i: sk.f1_score(truth[i], predicted[i], labels=every, average="macro", zero_division=0)}
    for name, figure in figures.items():
        note("metric " + name, abs(ours[name][0] - figure(np.arange(rows))))
        compare_interval(name, ours[name], rows, figure)
    right = (truth == predicted).astype(float)
    compare_reliability(ours, right, confidence)


def compare_reliability(ours, right, confidence):
    share, mean = calibration.calibration_curve(right, confidence.astype(float), n_bins=15, strategy="uniform")
    filled = [row for row in ours["bin"] if row[0] > 0]
    assert len(filled) == len(share)
    for row, theirs_right, theirs_mean in zip(filled, share, mean):
        note("reliability", max(abs(row[1] - theirs_mean), abs(row[2] - theirs_right)))
    ece = sum(row[0] * abs(row[1] - row[2]) for row in filled) / len(right)
    note("ece", abs(ours["ece"][0] - ece))


def binary(rng, tool):
    rows, threshold = int(rng.integers(150, 400)), float(rng.choice([0.5, 0.3]))
    truth = (rng.random(rows) < 0.4).astype(int)
    logits = (rng.normal(size=rows) + 1.5 * truth - 0.7).astype(np.float32)
    loss = np.log1p(np.exp(np.where(truth == 1, -logits, logits))).astype(np.float32)
    text = f"binary 1 {threshold} {rows} {RESAMPLES}\n" + "\n".join(
        f"{l:.9g} {s:.9g} {t}" for l, s, t in zip(loss, logits, truth))
    ours = ask(tool, text)
    predicted = (logits >= np.float32(math.log(threshold / (1 - threshold)))).astype(int)
    figures = {"accuracy": lambda i: 100 * (truth[i] == predicted[i]).mean(),
               "roc_auc": lambda i: sk.roc_auc_score(truth[i], logits[i]),
               "pr_auc": lambda i: sk.average_precision_score(truth[i], logits[i]),
               "f1": lambda i: sk.f1_score(truth[i], predicted[i], zero_division=0)}
    for name, figure in figures.items():
        note("metric " + name, abs(ours[name][0] - figure(np.arange(rows))))
        compare_interval(name, ours[name], rows, figure)
    precision, recall, _ = sk.precision_recall_curve(truth, logits)
    with np.errstate(all="ignore"):
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    false_alarms, hits, _ = sk.roc_curve(truth, logits, drop_intermediate=False)
    positives = truth.sum()
    accuracy = (hits * positives + (1 - false_alarms) * (rows - positives)) / rows
    best = ours["threshold"][0]
    note("best f1", abs(best[0] - f1.max()))
    note("best accuracy", abs(best[1] - accuracy.max()))
    note("best balanced accuracy", abs(best[2] - ((hits + 1 - false_alarms) / 2).max()))
    at_best = (1 / (1 + np.exp(-logits.astype(float))) >= best[3]).astype(int)
    note("f1 at its threshold", abs(sk.f1_score(truth, at_best) - best[0]))
    compare_reliability(ours, truth.astype(float), (1 / (1 + np.exp(-logits.astype(float)))).astype(np.float32))


def regression(rng, tool):
    rows = int(rng.integers(150, 400))
    truth = rng.normal(size=(rows, 2)).astype(np.float32) * np.float32(3)
    predicted = (truth + rng.normal(size=(rows, 2))).astype(np.float32)
    text = f"regression 2 0.5 {rows} {RESAMPLES}\n" + "\n".join(
        "0 " + " ".join(f"{v:.9g}" for v in (*s, *t)) for s, t in zip(predicted, truth))
    ours = ask(tool, text)
    a, b = truth.astype(float), predicted.astype(float)
    figures = {"mae": lambda i: sk.mean_absolute_error(a[i], b[i]),
               "rmse": lambda i: np.sqrt(((a[i] - b[i]) ** 2).mean(0)).mean(),
               "r2": lambda i: sk.r2_score(a[i], b[i])}
    for name, figure in figures.items():
        note("metric " + name, abs(ours[name][0] - figure(np.arange(rows))))
        compare_interval(name, ours[name], rows, figure)


def shares(rng, tool):
    samples = int(rng.integers(1, 500))
    for hits in {0, samples, int(rng.integers(0, samples + 1))}:
        ours = ask(tool, f"wilson {hits} {samples}")["wilson"]
        theirs = scipy.stats.binomtest(hits, samples).proportion_ci(method="wilson")
        note("wilson", max(abs(ours[0] - theirs.low), abs(ours[1] - theirs.high)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/release/tests/statistics/certainty_tool")
    parser.add_argument("--cases", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    for _ in range(arguments.cases):
        for case in (multiclass, binary, regression, shares):
            case(rng, arguments.tool)
    bad = False
    for what, difference in sorted(worst.items()):
        allowed = 0.1 if what.startswith("interval") else 1e-6
        bad = bad or difference > allowed
        of = " of its width" if what.startswith("interval") else ""
        print(f"{what:28} largest difference {difference:.3g}{of}{'   TOO LARGE' if difference > allowed else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
