#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What watching a run costs: the same training with all observation and with none, at the same time.

    scripts/bench/overhead.py --rounds 7

With: resources once a second, account of every update, diagnosis, TensorBoard, summary.csv, metrics.jsonl and status.json,
a report every second. Without: STOKER_TEST_UNWATCHED=1, in which no listener is added and no account is kept. Both train
--max-updates on Fashion-MNIST with a network of a few milliseconds per update, the worst case for a cost per update. What
is compared is the time of training itself, as the program says it at its end, start-up left out. Both run at the same time,
each on a CPU of its own, and then once more with the CPUs exchanged: what disturbs the machine disturbs both. The figure is
the median of the rounds' ratios. Wants two CPUs on which nothing else runs.
"""
import argparse
import csv
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile


def start(train, flags, watched, cpu, run_dir):
    command = ["taskset", "-c", str(cpu), train, *flags, "--run-dir", run_dir] + (["--tensorboard"] if watched else [])
    environment = dict(os.environ)
    if not watched:
        environment["STOKER_TEST_UNWATCHED"] = "1"
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def seconds_of(process):
    output, _ = process.communicate()
    found = re.search(r"trained for ([\d.]+) s", output)
    if process.returncode != 0 or not found:
        sys.exit(f"overhead: {' '.join(process.args)}\nended with {process.returncode}:\n{output[-2000:]}")
    return float(found.group(1))


def validation_seconds(run_dir):
    with open(run_dir + "/summary.csv", encoding="utf-8") as file:
        return sum(float(row["eval_seconds"]) for row in csv.DictReader(file))


def together(train, flags, cpus):
    """Seconds of training, watched and not, while both run; cpus[0] is for the one that is watched."""
    with tempfile.TemporaryDirectory(prefix="stoker-overhead-") as folder:
        both = [start(train, flags, watched, cpu, f"{folder}/{watched}") for watched, cpu in zip((True, False), cpus)]
        seconds = [seconds_of(process) for process in both]
        validation = validation_seconds(folder + "/True")  # the end of a run always validates; the same in both
        return [one - validation for one in seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=8)
    args = parser.parse_args()
    flags = ["--model", "small_cnn", "--width", str(args.width), "--batch-size", str(args.batch_size), "--threads", "1",
             "-j", "1", "--no-amp", "--epochs", "1000", "--max-updates", str(args.updates), "--val-every", "1000e",
             "--save-every", "never", "--no-save-best", "--report-every", "1s", "--log-level", "debug"]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("overhead: two CPUs are needed, one for each run")
    ratios = []
    for number in range(args.rounds):
        pairs = [together(args.train, flags, order) for order in (cpus, cpus[::-1])]
        ratio = math.prod(watched / unwatched for watched, unwatched in pairs) ** (1 / len(pairs))
        ratios.append(100 * (ratio - 1))
        print(f"round {number + 1}: with {pairs[0][0]:.3f} and {pairs[1][0]:.3f} s, without {pairs[0][1]:.3f} and "
              f"{pairs[1][1]:.3f} s: {ratios[-1]:+.2f}% ({1e3 * pairs[0][1] / args.updates:.2f} ms per update)", flush=True)
    median = statistics.median(ratios)
    print(f"observation costs {median:+.2f}% (median of {len(ratios)}, {min(ratios):+.2f} to {max(ratios):+.2f}%)")
    return 0 if median < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
