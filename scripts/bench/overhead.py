#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What watching a run costs, as a share of an update of a few milliseconds.

    scripts/bench/overhead.py --rounds 9

With: resources once a second, account of every update, diagnosis, TensorBoard, summary.csv, metrics.jsonl and status.json,
a report every second. Without: STOKER_TEST_UNWATCHED=1, in which no listener is added and no account is kept.

One per cent of a few milliseconds is less than this kind of machine fluctuates by. Therefore what watching adds to an update
is measured where an update itself takes next to nothing (images of 8 x 8 pixels), in microseconds, and is then set against
an update of small_cnn at batch 64 that is timed beforehand; a report comes after as many updates as that one does in a
second. Watched and unwatched run at the same time, each on a CPU of its own, and once more with the CPUs exchanged; what
counts is CPU time, start-up and validation of both included, as the clock is disturbed by whoever else uses the host. What
is done by the clock, on a thread of its own, is read from that thread's CPU time and added. Exit 1 at 1 % or more. Wants two
CPUs on which nothing else runs.
"""
import argparse
import csv
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

COMMON = ["--model", "small_cnn", "--threads", "1", "--no-amp", "--epochs", "1000", "--val-every", "1000e",
          "--save-every", "never", "--no-save-best", "--log-level", "debug", "--train-split", "t10k", "--val-split", "t10k"]
USUAL = ["-j", "1", "--width", "8", "--batch-size", "64"]
TINY = ["-j", "0", "--width", "1", "--batch-size", "4", "--img-size", "8"]


def start(train, flags, watched, cpu, run_dir):
    command = ["taskset", "-c", str(cpu), train, *COMMON, *flags, "--run-dir", run_dir]
    environment = dict(os.environ)
    if watched:
        command.append("--tensorboard")
    else:
        environment["STOKER_TEST_UNWATCHED"] = "1"
    with open(run_dir + ".log", "w", encoding="utf-8") as log:  # a pipe that nobody empties would make it wait
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    process.log = run_dir + ".log"
    return process


def seconds_of(process):
    _, status, process.used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with open(process.log, encoding="utf-8") as log:
        output = log.read()
    found = re.search(r"trained for ([\d.]+) s", output)
    if process.returncode != 0 or not found:
        sys.exit(f"overhead: {' '.join(process.args)}\nended with {process.returncode}:\n{output[-2000:]}")
    return float(found.group(1))


def validation_seconds(run_dir):
    with open(run_dir + "/summary.csv", encoding="utf-8") as file:
        return sum(float(row["eval_seconds"]) for row in csv.DictReader(file))


def usual_run(train, updates, cpu):
    """Seconds of an update as people have them, watched; CPU seconds per second of the thread that reads resources."""
    with tempfile.TemporaryDirectory(prefix="stoker-overhead-") as folder:
        flags = [*USUAL, "--max-updates", str(updates), "--report-every", "1s"]
        process = start(train, flags, True, cpu, folder + "/usual")
        share = share_of_thread(process, "resources")
        return (seconds_of(process) - validation_seconds(folder + "/usual")) / updates, share


def cpu_seconds(process):
    return process.used.ru_utime + process.used.ru_stime


def added_seconds(train, updates, report_updates, cpus):
    """CPU and clock seconds that watching adds to an update, and the clock's of a tiny one; cpus[0] is for the watched."""
    with tempfile.TemporaryDirectory(prefix="stoker-overhead-") as folder:
        flags = [*TINY, "--max-updates", str(updates), "--report-every", f"{report_updates}u"]
        both = [start(train, flags, watched, cpu, f"{folder}/{watched}") for watched, cpu in zip((True, False), cpus)]
        watched, unwatched = [seconds_of(process) for process in both]
        cpu = cpu_seconds(both[0]) - cpu_seconds(both[1])
        tiny = unwatched - validation_seconds(folder + "/True")
        return [seconds / updates for seconds in (cpu, watched - unwatched, tiny)]


def share_of_thread(process, thread):
    """Polls while the process lives; a zombie has no threads left."""
    first, last = None, None
    while pathlib.Path(f"/proc/{process.pid}/exe").exists():
        for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*"):
            try:
                if (task / "comm").read_text().strip() == thread:
                    used = int((task / "schedstat").read_text().split()[0])  # nanoseconds
                    last = (time.monotonic(), used)
                    first = first or last
            except OSError:
                pass  # the thread or the process has just ended
        time.sleep(0.5)
    if first is None or last[0] - first[0] < 3:
        sys.exit(f"overhead: the thread {thread} was not seen for 3 s; raise --updates")
    return (last[1] - first[1]) / 1e9 / (last[0] - first[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--updates", type=int, default=2000, help="of small_cnn at batch 64")
    parser.add_argument("--tiny-updates", type=int, default=8000, help="of each tiny run")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("overhead: two CPUs are needed, one for each run")
    usual, clocked = usual_run(args.train, args.updates, cpus[0])
    print(f"an update of small_cnn: {1e3 * usual:.2f} ms; resources, by the clock: {100 * clocked:.3f} % of a CPU", flush=True)
    shares, by_clock = [], []
    for number in range(args.rounds):
        pairs = [added_seconds(args.train, args.tiny_updates, round(1 / usual), order) for order in (cpus, cpus[::-1])]
        cpu, clock, tiny = [statistics.mean(column) for column in zip(*pairs)]
        shares.append(100 * (cpu / usual + clocked))
        by_clock.append(100 * (clock / usual + clocked))
        print(f"round {number + 1}: {1e6 * cpu:+.1f} us of CPU, {1e6 * clock:+.1f} us by the clock, beside tiny updates of "
              f"{1e6 * tiny:.0f} us: {shares[-1]:+.2f} %", flush=True)
    median = statistics.median(shares)
    print(f"observation costs {median:+.2f} % of an update (median of {len(shares)}, {min(shares):+.2f} to {max(shares):+.2f}); "
          f"by the clock {statistics.median(by_clock):+.2f} % ({min(by_clock):+.2f} to {max(by_clock):+.2f})")
    return 0 if median < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
