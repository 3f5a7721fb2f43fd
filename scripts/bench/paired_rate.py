#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs two commands in turn, several times, and compares the images/s that they print.

    scripts/bench/paired_rate.py --rounds 5 \\
        --a 'build/release/apps/train bench step --model resnet18 --img-size 160 --batch-size 16 --amp' \\
        --b 'build/release/apps/train bench step --model resnet18 --img-size 160 --batch-size 16 --no-channels-last'

Alternating them cancels slow drifts of a noisy machine; the ratio is the median of the ratios of neighbours.
"""
import argparse
import re
import shlex
import statistics
import subprocess
import sys
import tempfile


def rate_of(command, pick):
    """images/s from the command's output; {TMP} in the command is a fresh folder."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        words = [word.replace("{TMP}", folder) for word in shlex.split(command)]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    own = re.sub(r"^decode efficiency: .*", "", done.stdout, flags=re.MULTILINE)  # names libjpeg's rate
    rates = [float(text.replace(",", "")) for text in re.findall(r"([\d,.]+) images/s", own)]
    if done.returncode != 0 or not rates:
        sys.exit(f"paired_rate: {command}\nended with {done.returncode}:\n{done.stdout[-2000:]}")
    return max(rates) if pick == "best" else rates[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", required=True, metavar="COMMAND")
    parser.add_argument("--b", required=True, metavar="COMMAND")
    parser.add_argument("--pick-a", choices=["last", "best"], default="last", help="which of several rates printed")
    parser.add_argument("--pick-b", choices=["last", "best"], default="last")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rates_a, rates_b, ratios = [], [], []
    for number in range(args.rounds):
        rates_a.append(rate_of(args.a, args.pick_a))
        rates_b.append(rate_of(args.b, args.pick_b))
        ratios.append(rates_a[-1] / rates_b[-1])
        print(f"round {number + 1}: A {rates_a[-1]:.1f}, B {rates_b[-1]:.1f} images/s, A/B {ratios[-1]:.2f}", flush=True)
    print(f"median: A {statistics.median(rates_a):.1f}, B {statistics.median(rates_b):.1f} images/s, "
          f"A/B {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
