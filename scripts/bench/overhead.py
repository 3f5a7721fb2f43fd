#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What watching a run costs: the same training with all observation and with none, in turn.

    scripts/bench/overhead.py --rounds 7

With: resources once a second, account of every update, diagnosis, TensorBoard, summary.csv, metrics.jsonl and status.json,
a report every second. Without: STOKER_TEST_UNWATCHED=1, in which no listener is added and no account is kept. Both train
--max-updates on Fashion-MNIST with a network of a few milliseconds per update, the worst case for a cost per update. What
is compared is the time of training itself, as the program says it at its end, start-up left out. Neighbours in time are
compared; the figure is the median of their ratios.
"""
import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile


def seconds_of(train, flags, watched):
    with tempfile.TemporaryDirectory(prefix="stoker-overhead-") as folder:
        command = [train, *flags, "--run-dir", folder + "/run"] + (["--tensorboard"] if watched else [])
        environment = dict(os.environ)
        if not watched:
            environment["STOKER_TEST_UNWATCHED"] = "1"
        done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        rows = []
        if watched and done.returncode == 0:
            with open(folder + "/run/summary.csv", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
    found = re.search(r"trained for ([\d.]+) s", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit(f"overhead: {' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-2000:]}")
    return float(found.group(1)), sum(float(row["eval_seconds"]) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=8)
    args = parser.parse_args()
    flags = ["--model", "small_cnn", "--width", str(args.width), "--batch-size", str(args.batch_size), "--threads", "1",
             "-j", "1", "--no-amp", "--epochs", "1000", "--max-updates", str(args.updates), "--val-every", "1000e",
             "--save-every", "never", "--no-save-best", "--report-every", "1s", "--log-level", "debug"]
    ratios = []
    for number in range(args.rounds):
        order = (True, False) if number % 2 == 0 else (False, True)  # whoever is first has no advantage
        both = {watched: seconds_of(args.train, flags, watched) for watched in order}
        validation = both[True][1]  # the end of a run always validates; the same in both
        seconds = {watched: both[watched][0] - validation for watched in order}
        ratios.append(100 * (seconds[True] / seconds[False] - 1))
        print(f"round {number + 1}: with {seconds[True]:.3f} s, without {seconds[False]:.3f} s: {ratios[-1]:+.2f}% "
              f"({1e3 * seconds[False] / args.updates:.2f} ms per update)", flush=True)
    median = statistics.median(ratios)
    print(f"observation costs {median:+.2f}% (median of {len(ratios)}, {min(ratios):+.2f} to {max(ratios):+.2f}%)")
    return 0 if median < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
