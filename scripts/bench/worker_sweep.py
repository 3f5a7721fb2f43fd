#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with every number of workers in turn, several times, and shows the rates next to what --num-workers auto
chose: it passes when no count is more than 5 % faster than the chosen one.

    scripts/bench/worker_sweep.py --images FOLDER_OF_JPEGS
    scripts/bench/worker_sweep.py --data-dir CLASS_FOLDERS --workers 1,2,4,8,16 -- --device cuda --model resnet50

Without options after -- a very small network sees 32 x 32 pixels, so that decoding is the limit. The first epoch of
a run warms up, the last one is measured. Nothing is cached.
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

SMALL_NETWORK = ["--model", "small_cnn", "--width", "8", "--img-size", "32", "--threads", "1", "--batch-size", "64"]


def link_classes(images, folder):
    """Class folders of links to loose images: every tenth one is for validation."""
    paths = sorted(path for path in pathlib.Path(images).iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    for number, path in enumerate(paths):
        place = folder / ("val" if number % 10 == 0 else "train") / "ab"[number // 10 % 2] / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(path.resolve(), place)


def train(args, data_dir, workers):
    """(images/s of the last epoch, what was chosen, the banner's reason)"""
    with tempfile.TemporaryDirectory(prefix="stoker-sweep-") as folder:
        command = [args.train, "--data-dir", str(data_dir), "--run-dir", folder + "/run", "--num-workers", workers,
                   "--train-crop", "random-resized", "--epochs", str(args.epochs), "--val-every", "never",
                   "--save-every", "never", "--cache", "none"] + (args.options or SMALL_NETWORK)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"worker_sweep: {' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-2000:]}")
        events = [json.loads(line) for line in open(folder + "/run/metrics.jsonl")]
    rates = [event["images_per_second"] for event in events if event["event"] == "epoch"]
    chosen = re.search(r"chosen +--num-workers (\d+): (.*)", done.stdout)
    return rates[-1], chosen.group(1) if chosen else workers, chosen.group(2) if chosen else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data-dir", help="class folders, as for train")
    source.add_argument("--images", help="a folder of loose images")
    parser.add_argument("--workers", default="1,2,3,4", help="counts to try")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("options", nargs="*", help="of train, after --")
    args = parser.parse_args()
    counts = args.workers.split(",")
    rates = {count: [] for count in counts}
    choices = []
    with tempfile.TemporaryDirectory(prefix="stoker-images-") as name:
        data_dir = pathlib.Path(args.data_dir or name)
        if args.images:
            link_classes(args.images, data_dir)
        for number in range(args.rounds):
            for count in counts + ["auto"]:
                rate, chosen, reason = train(args, data_dir, count)
                if count == "auto":
                    choices.append(chosen)
                    print(f"round {number + 1}: auto chose {chosen}: {reason}", flush=True)
                rates.setdefault(chosen, []).append(rate)
    medians = {count: statistics.median(values) for count, values in rates.items()}
    best = max(medians.values())
    for count in sorted(medians, key=int):
        print(f"{count:>4} workers: {medians[count]:8.0f} images/s ({min(rates[count]):.0f} to {max(rates[count]):.0f}, "
              f"{len(rates[count])} runs){'   chosen by auto' if count in choices else ''}")
    behind = max(1 - medians[choice] / best for choice in choices)
    print(f"auto is {100 * behind:.1f} % behind the best count (limit 5)")
    return 0 if behind <= 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
