#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the metrics of every task with scikit-learn's on random cases, ties and absent classes included.

    scripts/parity/metrics_parity.py [--tool build/release/tests/engine/metrics_tool] [--cases 1000]

Needs NumPy and scikit-learn. Prints one line per task with the largest difference; exits 1 when one is above 1e-12
(relative to the larger of 1 and the value).
"""
import argparse
import math
import subprocess
import sys
import warnings

import numpy as np
from sklearn import metrics as sk

TOLERANCE = 1e-12
warnings.filterwarnings("ignore")


def scores(rng, rows, columns):
    """float32 scores; half of the cases have few distinct values, so that many tie."""
    values = rng.normal(size=(rows, columns)).astype(np.float32)
    return np.round(values * 2) / 2 if rng.random() < 0.5 else values


def probability_logit(threshold):
    return math.log(threshold / (1 - threshold))


def label_figures(prefix, truth, logits, threshold):
    predicted = (logits.astype(np.float64) >= probability_logit(threshold)).astype(int)
    precision, recall, f1, _ = sk.precision_recall_fscore_support(truth, predicted, average="binary", zero_division=0)
    both = 0 < truth.sum() < len(truth)
    return {prefix + "precision": precision, prefix + "recall": recall, prefix + "f1": f1,
            prefix + "images": truth.sum(), prefix + "predicted": predicted.sum(),
            prefix + "roc_auc": sk.roc_auc_score(truth, logits) if both else math.nan,
            prefix + "pr_auc": sk.average_precision_score(truth, logits) if truth.any() else math.nan}, predicted


def agreement(truth, predicted, every):
    return {"f1_weighted": sk.f1_score(truth, predicted, labels=every, average="weighted", zero_division=0),
            "balanced_accuracy": sk.balanced_accuracy_score(truth, predicted),
            "mcc": sk.matthews_corrcoef(truth, predicted), "kappa": sk.cohen_kappa_score(truth, predicted)}


def multiclass(rng):
    classes, rows = int(rng.integers(2, 12)), int(rng.integers(1, 120))
    logits = scores(rng, rows, classes)
    if rng.random() < 0.5:  # a best class that is unique, as top-k is only defined then
        logits += rng.permutation(classes).astype(np.float32) * 1e-3
    used = rng.choice(classes, size=int(rng.integers(1, classes + 1)), replace=False)  # others are absent
    truth = rng.choice(used, size=rows)
    every = list(range(classes))
    predicted = logits.argmax(1)
    precision, recall, f1, support = sk.precision_recall_fscore_support(truth, predicted, labels=every, zero_division=0)
    macro = sk.precision_recall_fscore_support(truth, predicted, labels=every, zero_division=0, average="macro")
    wanted = {"top1": 100 * sk.accuracy_score(truth, predicted), "precision": macro[0], "recall": macro[1], "f1": macro[2],
              "per_class/macro average/f1": macro[2]}
    wanted.update(agreement(truth, predicted, every))
    ranks_tie = any(len(set(row)) < classes for row in logits)
    if not ranks_tie:
        hits = sk.top_k_accuracy_score(truth, logits, k=min(5, classes), labels=every) if classes > 2 else 1.0
        wanted["top5"] = 100 * hits
    confusion = sk.confusion_matrix(truth, predicted, labels=every)
    for k in every:
        wanted.update({f"per_class/c{k}/precision": precision[k], f"per_class/c{k}/recall": recall[k],
                       f"per_class/c{k}/f1": f1[k], f"per_class/c{k}/images": support[k]})
        wanted.update({f"confusion/c{k}/c{j}": confusion[k, j] for j in every})
    return f"multiclass {classes} 0.5 {rows}", np.column_stack([logits, truth]), wanted


def binary(rng):
    rows, threshold = int(rng.integers(1, 150)), float(rng.choice([0.5, 0.3, 0.9]))
    logits = scores(rng, rows, 1)
    truth = (rng.random(rows) < rng.choice([0.0, 0.1, 0.5, 1.0])).astype(int)
    wanted, predicted = label_figures("", truth, logits[:, 0], threshold)
    del wanted["images"], wanted["predicted"]
    wanted["accuracy"] = 100 * sk.accuracy_score(truth, predicted)
    wanted.update(agreement(truth, predicted, [0, 1]))
    each = sk.precision_recall_fscore_support(truth, predicted, labels=[0, 1], zero_division=0)
    confusion = sk.confusion_matrix(truth, predicted, labels=[0, 1])
    for k in (0, 1):
        wanted.update({f"per_class/c{k}/precision": each[0][k], f"per_class/c{k}/recall": each[1][k],
                       f"per_class/c{k}/f1": each[2][k], f"per_class/c{k}/images": each[3][k]})
        wanted.update({f"confusion/c{k}/c{j}": confusion[k, j] for j in (0, 1)})
    return f"binary 2 {threshold} {rows}", np.column_stack([logits, truth]), wanted


def multilabel(rng):
    labels, rows, threshold = int(rng.integers(1, 6)), int(rng.integers(1, 100)), float(rng.choice([0.5, 0.2]))
    logits = scores(rng, rows, labels)
    truth = (rng.random((rows, labels)) < rng.choice([0.0, 0.1, 0.5, 1.0], size=labels)).astype(int)
    wanted, predicted, areas = {}, np.zeros_like(truth), []
    for i in range(labels):
        figures, predicted[:, i] = label_figures(f"per_label/c{i}/", truth[:, i], logits[:, i], threshold)
        wanted.update(figures)
        areas.append((figures[f"per_label/c{i}/roc_auc"], figures[f"per_label/c{i}/pr_auc"]))
    if labels > 1:
        for name, average in (("", "macro"), ("_micro", "micro")):
            figures = sk.precision_recall_fscore_support(truth, predicted, average=average, zero_division=0)
            wanted["f1" + name] = figures[2]
            wanted.update({"precision": figures[0], "recall": figures[1]} if not name else {})
    wanted["exact_match"] = 100 * sk.accuracy_score(truth, predicted)
    wanted["accuracy"] = 100 * (1 - sk.hamming_loss(truth, predicted))
    defined = [roc for roc, _ in areas if not math.isnan(roc)]
    wanted["roc_auc"] = np.mean(defined) if defined else math.nan
    with_positives = [area for _, area in areas if not math.isnan(area)]
    wanted["pr_auc"] = np.mean(with_positives) if with_positives else math.nan
    return f"multilabel {labels} {threshold} {rows}", np.column_stack([logits, truth]), wanted


def regression(rng):
    targets, rows = int(rng.integers(1, 5)), int(rng.integers(2, 100))
    truth = rng.normal(size=(rows, targets)).astype(np.float32) * 10 + rng.normal() * 100
    truth = np.round(truth * 4).astype(np.float32) / 4
    predicted = (truth + rng.normal(size=truth.shape)).astype(np.float32)
    if rng.random() < 0.2:
        truth[:, 0] = 3  # a constant target
    if rng.random() < 0.2:
        predicted[:, -1] = truth[:, -1]  # met exactly
    a, b = truth.astype(np.float64), predicted.astype(np.float64)
    wanted = {"mae": sk.mean_absolute_error(a, b), "r2": sk.r2_score(a, b)}
    root = np.sqrt(sk.mean_squared_error(a, b, multioutput="raw_values"))
    wanted["rmse"] = root.mean()
    mae, r2 = sk.mean_absolute_error(a, b, multioutput="raw_values"), sk.r2_score(a, b, multioutput="raw_values")
    for i in range(targets):
        wanted.update({f"per_target/c{i}/mae": mae[i], f"per_target/c{i}/rmse": root[i], f"per_target/c{i}/r2": r2[i]})
    return f"regression {targets} 0.5 {rows}", np.column_stack([predicted, truth]), wanted


def head_pose(rng):
    """scikit-learn has no angles: its errors of differences that NumPy has wrapped."""
    rows = int(rng.integers(1, 100))
    truth = rng.uniform(-180, 180, size=(rows, 3)).astype(np.float32)
    predicted = rng.uniform(-360, 360, size=(rows, 3)).astype(np.float32)
    apart = np.abs((predicted.astype(np.float64) - truth + 180) % 360 - 180)
    zeros = np.zeros_like(apart)
    mae = sk.mean_absolute_error(zeros, apart, multioutput="raw_values")
    rmse = np.sqrt(sk.mean_squared_error(zeros, apart, multioutput="raw_values"))
    wanted = {"mae": mae.mean(), "rmse": rmse.mean()}
    wanted.update({f"mae_{name}": mae[i] for i, name in enumerate(("yaw", "pitch", "roll"))})
    wanted.update({f"per_target/c{i}/rmse": rmse[i] for i in range(3)})
    return "head-pose 3 0.5 %d" % rows, np.column_stack([predicted, truth]), wanted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="build/release/tests/engine/metrics_tool")
    parser.add_argument("--cases", type=int, default=1000)
    arguments = parser.parse_args()
    worst_of_all = 0.0
    for make in (multiclass, binary, multilabel, regression, head_pose):
        rng = np.random.default_rng(7)
        cases = [make(rng) for _ in range(arguments.cases)]
        text = "".join(head + "\n" + "\n".join(" ".join("%.9g" % value for value in row) for row in rows) + "\n"
                       for head, rows, _ in cases)
        answer = subprocess.run([arguments.tool], input=text, text=True, capture_output=True, check=True).stdout
        blocks = answer.split("end\n")[:-1]
        assert len(blocks) == len(cases), "the tool answered %d of %d cases" % (len(blocks), len(cases))
        worst, compared = 0.0, 0
        for (head, _, wanted), block in zip(cases, blocks):
            got = dict(line.rsplit(" ", 1) for line in block.splitlines())
            for name, value in wanted.items():
                found, value = float(got[name]), float(value)
                if math.isnan(value) and math.isnan(found):
                    difference = 0.0
                else:
                    difference = abs(found - value) / max(1.0, abs(value))
                compared += 1
                if not difference <= TOLERANCE:
                    print(f"{head}: {name} is {found!r}, scikit-learn has {value!r}")
                    difference = math.inf
                worst = max(worst, difference)
        print(f"{make.__name__:10s} {len(cases)} cases, {compared} figures, largest difference {worst:.2g}")
        worst_of_all = max(worst_of_all, worst)
    sys.exit(0 if worst_of_all <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
