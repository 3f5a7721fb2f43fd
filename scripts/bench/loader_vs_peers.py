#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our loader against a PyTorch DataLoader script on the same files, in turn, several times.

    scripts/bench/loader_vs_peers.py --data DIR --peer loader.py --train build/release/apps/train --rounds 5

The peer script is called as `python3 PEER FOLDER_OF_CLASSES --workers N --batch-size B --size S --epochs E --backend
pil|opencv --output uint8|float` and prints `epoch K: R images/s`. DIR may be a flat folder of images: the peer then
gets a folder of links. With --results FILE rounds are kept there, so that several short calls add up; the table is of
all rounds in it. Workers, batch and image size are equal; the first epoch of each run warms up and does not count.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PEERS = {"DataLoader, OpenCV, uint8": ["--backend", "opencv", "--output", "uint8"],
         "DataLoader, PIL, uint8": ["--backend", "pil", "--output", "uint8"],
         "DataLoader, PIL, float (default)": ["--backend", "pil", "--output", "float"]}
OURS = "train bench loader"


def output_of(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"loader_vs_peers: {' '.join(words)}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def our_figures(args):
    return json.loads(output_of([args.train, "bench", "loader", "--json", "--data-dir", str(args.data), "--img-size",
                                 str(args.size), "--train-crop", "random-resized", "--num-workers", str(args.workers),
                                 "--batch-size", str(args.batch_size)]))


def peer_rate(args, folder, settings):
    text = output_of([args.python, str(args.peer), folder, "--workers", str(args.workers), "--batch-size",
                      str(args.batch_size), "--size", str(args.size), "--epochs", str(args.epochs)] + settings)
    rates = [float(rate) for rate in re.findall(r"([\d.]+) images/s", text)][1:]
    if not rates:
        sys.exit(f"loader_vs_peers: no rates in what {args.peer} printed:\n{text[-2000:]}")
    return statistics.median(rates)


def class_folders(data, scratch):
    """`data` itself, or one class of links to its files."""
    if any(entry.is_dir() for entry in data.iterdir()):
        return str(data)
    folder = pathlib.Path(scratch) / "all"
    folder.mkdir()
    for entry in data.iterdir():
        os.symlink(entry.resolve(), folder / entry.name)
    return scratch


def print_table(rounds):
    ours = [one[OURS]["images_per_second"]["median"] for one in rounds]
    efficiency = [one[OURS]["decode_efficiency_percent"]["median"] for one in rounds]
    print("| loader | images/s, median (range) | ours / it, median of pairs (range) |\n|---|---|---|")
    print(f"| {OURS} | {statistics.median(ours):.0f} ({min(ours):.0f} to {max(ours):.0f}) | |")
    for name in PEERS:
        rates = [one[name] for one in rounds]
        ratios = [mine / rate for mine, rate in zip(ours, rates)]
        print(f"| {name} | {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")
    print(f"{len(rounds)} rounds; decode efficiency {statistics.median(efficiency):.1f} % "
          f"({min(efficiency):.1f} to {max(efficiency):.1f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--peer", required=True, type=pathlib.Path, metavar="SCRIPT")
    parser.add_argument("--train", default="build/release/apps/train", metavar="PROGRAM")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=7, help="of a peer, the first included")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="JSON lines, one per round; added to")
    args = parser.parse_args()
    rounds = []
    if args.results and args.results.exists():
        rounds = [json.loads(line) for line in args.results.read_text().splitlines()]
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
        folder = class_folders(args.data, scratch)
        for _ in range(args.rounds):
            one = {OURS: our_figures(args)}
            for name, settings in PEERS.items():
                one[name] = peer_rate(args, folder, settings)
            rounds.append(one)
            if args.results:
                with args.results.open("a") as stream:
                    stream.write(json.dumps(one) + "\n")
    print_table(rounds)


if __name__ == "__main__":
    main()
