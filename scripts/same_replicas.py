#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one run with several numbers of processes and of OpenMP threads, and compares what they leave: weights, their
average, the optimizer's state and summary.csv less its clock columns must be the same bytes.

    scripts/same_replicas.py --train build/release/apps/train
    scripts/same_replicas.py --train build/release/apps/train --only resnet18 --updates 60

The data are small PNG files in class folders, made here, some of which are torn and skipped; their number divides
nowhere, so that the last batch and the last update of each epoch are short. With --resume each run is stopped halfway and
goes on with another number of processes. Ends with 1 when a run differs.
"""
import argparse
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import kill_anywhere

REPLICAS = 4
WAYS = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2)]  # processes, OMP_NUM_THREADS
COMMON = ["--train-crop", "random-resized", "--mixup", "0.2", "--model-ema", "--clip-grad", "1", "--lr", "0.05", "--epochs",
          "1000", "--val-every", "1000e", "--save-every", "never", "--resume", "auto", "--num-workers", "1",
          "--no-plan-check", "--on-bad-image", "skip", "--max-bad", "20", "--replicas", str(REPLICAS)]
RUNS = {
    "small_cnn": ["--model", "small_cnn", "--width", "8", "--batch-size", "6", "--accumulation-steps", "2"],
    "small_cnn bf16": ["--model", "small_cnn", "--width", "8", "--batch-size", "6", "--accumulation-steps", "2", "--amp"],
    "resnet18": ["--model", "resnet18", "--batch-size", "6"],
    "resnet18 bf16": ["--model", "resnet18", "--batch-size", "6", "--amp"],
    "efficientnet_b0": ["--model", "efficientnet_b0", "--batch-size", "6", "--drop-rate", "0.2", "--drop-path-rate", "0.2"],
    "efficientnet_b0 bf16": ["--model", "efficientnet_b0", "--batch-size", "6", "--drop-rate", "0.2", "--drop-path-rate",
                             "0.2", "--amp"],
}


def png(side, rows):
    """A gray PNG of `side` x `side` pixels."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    lines = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b""))


def write_images(folder, count, side, seed, torn):
    rng = random.Random(seed)
    for i in range(count):
        label = i % 3
        rows = [bytes(rng.randrange(120) + 40 * label for _ in range(side)) for _ in range(side)]
        content = png(side, rows)
        path = folder / f"class{label}" / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[:60] if i in torn else content)


def trained(program, options, run_dir, processes, threads, expected=0):
    command = [str(program), *options, "--devices", str(processes), "--run-dir", str(run_dir)]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    if ended.returncode != expected:
        sys.exit(f"same_replicas: {' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", help="runs of this name; more than once for several")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--images", type=int, default=203)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--ways", help="as in 1x1,2x1: processes x OMP_NUM_THREADS")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    ways = [tuple(map(int, way.split("x"))) for way in args.ways.split(",")] if args.ways else WAYS
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_images(folder / "data" / "train", args.images, args.side, seed=1, torn={5, 17, 58, 59, 60})
        write_images(folder / "data" / "val", 24, args.side, seed=2, torn=set())
        for name, options in RUNS.items():
            if args.only and name not in args.only:
                continue
            options = [*options, *COMMON, "--data-dir", str(folder / "data"), "--img-size", str(args.side)]
            first = None
            for number, (processes, threads) in enumerate(ways):
                run_dir = folder / f"{name.replace(' ', '-')}-{processes}-{threads}"
                if args.resume and number > 0:  # begun with the number of processes of the way before
                    half = [*options, "--max-updates", str(args.updates // 2)]
                    trained(args.train, half, run_dir, ways[number - 1][0], threads)
                trained(args.train, [*options, "--max-updates", str(args.updates)], run_dir, processes, threads)
                digest = kill_anywhere.digest(run_dir)
                if args.resume:
                    del digest["summary.csv"]  # has a row for where the run was stopped
                first = first or digest
                different = [key for key in first if first[key] != digest.get(key)]
                differ += bool(different)
                what = "DIFFERENT: " + ", ".join(different) if different else "the same bytes"
                print(f"{name}, {processes} processes, OMP_NUM_THREADS={threads}: model {digest['model.safetensors'][:16]} "
                      f"optimizer {digest['optimizer.safetensors'][:16]}: {what}", flush=True)
    print(f"same_replicas: {differ} differ" if differ else "same_replicas: all are the same bytes")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
