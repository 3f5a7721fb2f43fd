#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sets what a plan predicts against what a run does: memory, activations, time per epoch. Exit 1 out of bounds.

    scripts/bench/plan_vs_observed.py --train build/release/apps/train --images FOLDER_OF_JPEGS [--only memory]

memory:       the highest resident memory of a run (VmHWM) within 10 % of plan.json, for 8 configurations.
activations:  bytes of forward and backward at a batch, predicted from 2 and 4 images, within 10 % of what is counted.
time:         training time of an epoch, by `train plan`, within 15 % of summary.csv, for 5 configurations.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

FASHION = ["--data-dir", "/usr/share/datasets/fashion-mnist", "--model", "small_cnn"]
SMALL = ["--data-dir", "/usr/share/datasets/fashion-mnist", "--train-split", "t10k", "--val-split", "t10k"]

# Name and options; PHOTOS stands for the images in class folders, 8 times over.
MEMORY = [
    ("small_cnn, 1 worker, batch 64", FASHION + ["--num-workers", "1", "--batch-size", "64"]),
    ("small_cnn, 4 workers, batch 512, EMA",
     FASHION + ["--num-workers", "4", "--batch-size", "512", "--model-ema", "--opt", "adamw"]),
    ("small_cnn, accumulation 4 x 128", FASHION + ["--num-workers", "2", "--batch-size", "128", "--accumulation-steps", "4"]),
    ("resnet18, 1 worker, no cache",
     ["PHOTOS", "--model", "resnet18", "--num-workers", "1", "--batch-size", "16", "--cache", "none"]),
    ("resnet18, 8 workers, pixels cached",
     ["PHOTOS", "--model", "resnet18", "--img-size", "128", "--num-workers", "8", "--batch-size", "32", "--cache", "ram"]),
    ("resnet18, 16 workers, large slabs",
     ["PHOTOS", "--model", "resnet18", "--img-size", "128", "--num-workers", "16", "--batch-size", "64", "--prefetch-factor",
      "32", "--cache", "none"]),
    ("mobilenet, 16 workers, files cached",
     ["PHOTOS", "--model", "mobilenet_v3_small", "--num-workers", "16", "--batch-size", "32", "--cache", "compressed"]),
    ("mobilenet, 4 workers, AdamW, mixup",
     ["PHOTOS", "--model", "mobilenet_v3_small", "--num-workers", "4", "--batch-size", "16", "--opt", "adamw", "--mixup-alpha",
      "0.2", "--cache", "none"]),
]
ACTIVATIONS = [("small_cnn", 32, 128), ("resnet18", 128, 32), ("resnet50", 128, 16), ("mobilenet_v3_small", 128, 32)]
TIME = [
    ("small_cnn, batch 64", SMALL + ["--model", "small_cnn", "--batch-size", "64"]),
    ("small_cnn, bfloat16, batch 256", SMALL + ["--model", "small_cnn", "--batch-size", "256", "--amp"]),
    ("peer_cnn, batch 128", SMALL + ["--model", "peer_cnn", "--batch-size", "128"]),
    ("resnet18, 96 pixels", ["FEW", "--model", "resnet18", "--img-size", "96", "--batch-size", "16"]),
    ("mobilenet, 128 pixels", ["FEW", "--model", "mobilenet_v3_small", "--img-size", "128", "--batch-size", "32"]),
]


def lay_out(images, folder, copies):
    """Class folders of links, `copies` for each image; every sixth image is for validation."""
    files = sorted(path for path in pathlib.Path(images).iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"plan_vs_observed: no JPEGs in {images}")
    for i, path in enumerate(files):
        split = "val" if i % 6 == 5 else "train"
        for copy in range(copies if split == "train" else 1):
            place = folder / split / f"class{i // 6 % 8}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{copy}-{i}.jpg").symlink_to(path.resolve())
    return folder


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"plan_vs_observed: {' '.join(command)}\n{result.stderr}")
    return result.stdout


class Table:
    def __init__(self, title, limit_percent):
        self.limit = limit_percent
        self.good = True
        print(f"{title}: within {limit_percent} %")

    def add(self, name, predicted, observed, unit):
        off = 100 * (predicted / observed - 1)
        self.good = self.good and abs(off) <= self.limit
        print(f"  {name:<38} predicted {predicted:9.1f} {unit}, observed {observed:9.1f} {unit}, {off:+5.1f} %"
              f"{'' if abs(off) <= self.limit else '  OUT'}", flush=True)


def check_memory(args, places, folder):
    table = Table("memory of the process", 10)
    for i, (name, options) in enumerate(MEMORY):
        run_dir = folder / f"memory-{i}"
        options = [word for option in options for word in places.get(option, [option])]
        run([args.train, *options, "--run-dir", str(run_dir), "--threads", "1", "--epochs", "2", "--max-updates",
             str(args.updates), "--quiet"])
        plan = json.load(open(run_dir / "plan.json"))
        table.add(name, plan["predicted"]["host"]["bytes"] / 1e6, plan["observed"]["host_bytes"] / 1e6, "MB")
    return table.good


def check_activations(args):
    table = Table("activations and gradients", 10)
    tool = args.activation_tool or pathlib.Path(args.train).parent.parent / "tests/engine/activation_tool"
    for model, side, images in ACTIVATIONS:
        figures = json.loads(run([str(tool), model, str(side), str(images)]))
        table.add(f"{model}, {images} images of {side} ({figures['seconds']:.2f} s)", figures["predicted"] / 1e6,
                  figures["measured"] / 1e6, "MB")
    return table.good


def check_time(args, places, folder):
    table = Table("training time of an epoch", 15)
    for i, (name, options) in enumerate(TIME):
        run_dir = folder / f"time-{i}"
        options = [word for option in options for word in places.get(option, [option])]
        options += ["--threads", "1", "--num-workers", "1", "--cache", "none", "--epochs", "3"]
        plan = json.loads(run([args.train, "plan", *options, "--json"]))
        run([args.train, *options, "--run-dir", str(run_dir), "--quiet"])
        rows = list(csv.DictReader(open(run_dir / "summary.csv")))
        seconds = sorted(float(row["train_seconds"]) for row in rows)[len(rows) // 2]
        table.add(name, plan["epoch"]["epoch_seconds"], seconds, "s")
    return table.good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--activation-tool", help="default: tests/engine/activation_tool in the build of --train")
    parser.add_argument("--images", required=True, help="folder of JPEGs")
    parser.add_argument("--only", choices=["memory", "activations", "time"])
    parser.add_argument("--updates", type=int, default=90, help="of each run whose memory is looked at")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="stoker-plan-") as name:
        folder = pathlib.Path(name)
        places = {"PHOTOS": ["--data-dir", str(lay_out(args.images, folder / "photos", 8))],
                  "FEW": ["--data-dir", str(lay_out(args.images, folder / "few", 2))]}
        if args.only in (None, "activations"):
            good = check_activations(args) and good
        if args.only in (None, "memory"):
            good = check_memory(args, places, folder) and good
        if args.only in (None, "time"):
            good = check_time(args, places, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
