#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What instrumentation of a run costs, as a share of an update of a few milliseconds.

    scripts/bench/overhead.py --rounds 5

Instrumented: the clocks of updates and samples, resources, diagnosis, TensorBoard, summary.csv, metrics.jsonl and status.json, and
a report as often as once a second. Uninstrumented: no observer is called and no clock is read.

Two processes differ by more than that: one run is instrumented in one turn and not in the next (STOKER_TEST_UNINSTRUMENTED_TURNS), and
neighbouring turns of a fifth of a second are compared. Of their differences the fifth at either end is left out: the host
serves others, too, and now and then a turn takes half as long again. The data is loaded on the training thread, so that a
turn's CPU time has all of it in; the thread that reads resources once a second works in all turns, and its CPU time is
added. CPU time counts, as the clock is disturbed more; the clock's figure is printed too. Exit 1 at 1 % or more.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

FLAGS = ["--model", "small_cnn", "--width", "8", "--batch-size", "64", "--threads", "1", "-j", "0", "--no-amp", "--epochs", "1000",
         "--val-every", "1000e", "--save-every", "never", "--no-save-best", "--tensorboard", "--log-level", "debug"]
REPORT_UPDATES = 100  # about a second; one of five watched turns has a report
TURN = re.compile(r"turn (instrumented|uninstrumented): ([\d.]+) s of CPU, ([\d.]+) s")


def share_of_thread(process, thread):
    """CPU seconds per second of a thread of a process, until that ends; a zombie has no threads left."""
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
        sys.exit(f"overhead: the thread {thread} was not seen for 3 s; raise --turns")
    return (last[1] - first[1]) / 1e9 / (last[0] - first[0])


def middle_mean(values):
    """Mean without the fifth at either end."""
    ordered, cut = sorted(values), len(values) // 5
    return statistics.mean(ordered[cut:len(ordered) - cut])


def run_in_turns(train, turns, updates):
    """[(CPU seconds, seconds)] of the watched turns and of the others, each with the neighbour that came after it; the share
    of a CPU that reading resources takes."""
    with tempfile.TemporaryDirectory(prefix="stoker-overhead-") as folder:
        command = [train, *FLAGS, "--run-dir", folder + "/run", "--report-every", f"{REPORT_UPDATES}u",
                   "--max-updates", str((turns + 10) * updates)]  # the first ten are a warm-up
        with open(folder + "/log", "w+", encoding="utf-8") as log:  # a pipe that nobody empties would make it wait
            process = subprocess.Popen(command, env={**os.environ, "STOKER_TEST_UNINSTRUMENTED_TURNS": str(updates)}, stdout=log, stderr=log)
            share = share_of_thread(process, "resources")
            process.wait()
            log.seek(0)
            output = log.read()
    found = [(kind, float(cpu), float(clock)) for kind, cpu, clock in TURN.findall(output)][10:]
    if process.returncode != 0 or len(found) < 2:
        sys.exit(f"overhead: {' '.join(command)}\nended with {process.returncode}:\n{output[-2000:]}")
    watched = [(cpu, clock) for kind, cpu, clock in found if kind == "instrumented"]
    unwatched = [(cpu, clock) for kind, cpu, clock in found if kind == "uninstrumented"]
    return list(zip(watched, unwatched)), share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/tests/hooks/train_with_hooks",
                        help="train, with the hook that switches instrumentation off and on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=290, help="of each round, half of them instrumented")
    parser.add_argument("--updates", type=int, default=20, help="of a turn")
    args = parser.parse_args()
    if args.rounds < 2:
        parser.error("--rounds: 2 or more, as their spread is printed")
    shares = []
    for number in range(args.rounds):
        pairs, resources = run_in_turns(args.train, args.turns, args.updates)
        usual = [statistics.mean(unwatched[k] for _, unwatched in pairs) for k in (0, 1)]
        added = [[100 * (watched[k] - unwatched[k]) / usual[k] for watched, unwatched in pairs] for k in (0, 1)]
        shares.append([middle_mean(added[k]) + 100 * resources for k in (0, 1)])
        print(f"round {number + 1}: {shares[-1][0]:+.2f} % of CPU, {shares[-1][1]:+.2f} % by the clock, of an update of "
              f"{1e3 * usual[1] / args.updates:.2f} ms ({len(pairs)} pairs; resources {100 * resources:.3f} %)", flush=True)
    cpu, clock = zip(*shares)
    median = statistics.median(cpu)
    print(f"observation costs {median:+.2f} % of an update (median of {len(cpu)} rounds, {min(cpu):+.2f} to {max(cpu):+.2f}; mean "
          f"{statistics.mean(cpu):+.2f}, standard error {statistics.stdev(cpu) / len(cpu) ** 0.5:.2f}); by the clock "
          f"{statistics.median(clock):+.2f} % ({min(clock):+.2f} to {max(clock):+.2f})")
    return 0 if median < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
