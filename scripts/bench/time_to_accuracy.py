#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Wall seconds from the start of a command, start-up included, until it reports a validation accuracy, for `train`
and for another trainer, run in turn.

    scripts/bench/time_to_accuracy.py --target 0.92 --rounds 3 --peer 'python3 peer.py --seconds-to 0.92'

The peer must print `accuracy 0.9203` after each epoch; `train` prints `top1 92.03%`.
"""
import argparse
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


def seconds_until(command, pattern, scale, target):
    """Seconds until a line shows `target` or more; the command is stopped then. None when it ends before."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in process.stdout:
        match = re.search(pattern, line)
        if match and float(match.group(1)) * scale >= target:
            seconds = time.monotonic() - begin
            process.kill()
            process.wait()
            return seconds
    process.wait()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train --preset fashion_mnist")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--target", type=float, default=0.92, help="accuracy, 0 to 1")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ours, peers = [], []
    for number in range(args.rounds):
        with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
            command = shlex.split(args.train) + ["--run-dir", folder + "/run"]
            ours.append(seconds_until(command, r"done .*top1 ([\d.]+)%", 0.01, args.target))
        peers.append(seconds_until(shlex.split(args.peer), r"accuracy ([\d.]+)", 1, args.target))
        if ours[-1] is None or peers[-1] is None:
            sys.exit(f"time_to_accuracy: round {number + 1} ended below {args.target}: ours {ours[-1]}, peer {peers[-1]}")
        print(f"round {number + 1}: train {ours[-1]:.1f} s, peer {peers[-1]:.1f} s, "
              f"{peers[-1] / ours[-1]:.2f} times sooner", flush=True)
    ratios = [peer / own for own, peer in zip(ours, peers)]
    print(f"median: train {statistics.median(ours):.1f} s, peer {statistics.median(peers):.1f} s, "
          f"{statistics.median(ratios):.2f} times sooner ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
