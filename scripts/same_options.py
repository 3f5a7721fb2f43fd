#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with each option that bears on what is computed, once with one process and once with several, and compares what
they leave: weights, their average, the optimizer's state, the best checkpoint, and summary.csv less its clock columns, with
the metrics of every task, must be the same bytes.

    scripts/same_options.py --train build/release/apps/train
    scripts/same_options.py --train build/release/apps/train --only cache --only binary --devices 2,4

Ends with 1 when a run differs. scripts/same_replicas.py does it for networks instead.
"""
import argparse
import hashlib
import pathlib
import random
import subprocess
import sys
import tempfile

import kill_anywhere
import made_images

SIDE = 16
COMMON = ["--img-size", str(SIDE), "--replicas", "4", "--num-workers", "1", "--resume", "none", "--no-report",
          "--no-plan-check", "--no-amp", "--lr", "0.05"]
SMALL = ["--model", "small_cnn", "--width", "8", "--batch-size", "5", "--epochs", "3"]
RESNET = ["--model", "resnet18", "--batch-size", "5", "--epochs", "1", "--img-size", "32", "--lr", "0.01"]
# Name -> data, options
RUNS = {
    "plain": ("images", SMALL),
    "accumulation": ("images", [*SMALL, "--accumulation-steps", "3"]),
    "total-batch-size": ("images", [*SMALL, "--total-batch-size", "40"]),
    "class-balanced": ("images", [*SMALL, "--class-balanced"]),
    "class-weights": ("images", [*SMALL, "--class-weights", "auto", "--label-smoothing", "0.1"]),
    "drop-last": ("images", [*SMALL, "--drop-last"]),
    "no drop-last": ("images", [*SMALL, "--no-drop-last"]),
    "max-updates": ("images", [*SMALL, "--max-updates", "7"]),
    "max-time": ("images", [*SMALL, "--max-time", "1000h"]),
    "patience": ("images", [*SMALL, "--epochs", "30", "--patience", "1,50"]),
    "val-every": ("images", [*SMALL, "--val-every", "2e"]),
    "val-every inside epochs": ("images", [*SMALL, "--val-every", "2u", "--patience", "5"]),
    "plateau": ("images", [*SMALL, "--epochs", "6", "--sched", "plateau", "--plateau", "0", "--val-every", "2u"]),
    "average-last": ("images", [*SMALL, "--average-last", "2", "--val-every", "0.5e"]),
    "eval-metric": ("images", [*SMALL, "--eval-metric", "f1", "--tta", "hflip"]),
    "save-every": ("images", [*SMALL, "--save-every", "2u", "--report-every", "3u"]),
    "cutmix": ("images", [*SMALL, "--mixup", "0.3", "--cutmix", "1", "--mixup-prob", "0.7"]),
    "augmentation": ("images", [*SMALL, "--aa", "ra", "--random-erasing", "0.3", "--gaussian-noise", "0.1",
                                "--gaussian-blur", "0.3,5"]),
    "cache ram": ("images", [*SMALL, "--cache", "ram"]),
    "cache compressed": ("images", [*SMALL, "--cache", "compressed"]),
    "no workers": ("images", [*SMALL, "--num-workers", "0"]),
    "workers": ("images", [*SMALL, "--num-workers", "3", "--prefetch-factor", "2"]),
    "three replicas": ("images", [*SMALL, "--replicas", "6"]),
    "adamw": ("images", [*SMALL, "--opt", "adamw", "--lr", "0.002", "--clip-grad", "0.1", "--clip-mode", "value"]),
    "one-cycle": ("images", [*SMALL, "--sched", "one-cycle", "--clip-grad", "0.5"]),
    "model-ema": ("images", [*SMALL, "--model-ema", "--model-ema-decay", "0.9", "--warmup-epochs", "1"]),
    "no channels-last": ("images", [*SMALL, "--no-channels-last"]),
    "auto-micro-batch": ("images", [*SMALL, "--auto-micro-batch"]),
    "bad images": ("torn", [*SMALL, "--on-bad-image", "skip,20"]),
    "freeze": ("images", [*RESNET, "--freeze", "*,!fc,!layer4.*"]),
    "layer-decay": ("images", [*RESNET, "--layer-decay", "0.7", "--decay-norm-and-bias"]),
    "grad-checkpointing": ("images", [*RESNET, "--grad-checkpointing"]),
    "zero-init-residual": ("images", [*RESNET, "--zero-init-residual", "--amp"]),
    "dropout": ("images", [*RESNET, "--model", "mobilenet_v3_small", "--drop-rate", "0.3"]),
    "grad-checkpointing and dropout": ("images", [*RESNET, "--model", "efficientnet_b0", "--drop-path-rate", "0.3",
                                                  "--drop-rate", "0.3", "--grad-checkpointing"]),
    "attention": ("images", [*RESNET, "--model", "vit_s_16", "--drop-path-rate", "0.1"]),
    "binary": ("binary", [*SMALL, "--task", "binary", "--pos-weight", "auto", "--eval-metric", "roc-auc"]),
    "multilabel": ("multilabel", [*SMALL, "--task", "multilabel", "--pos-weight", "auto", "--mixup", "0.2"]),
    "regression": ("regression", [*SMALL, "--task", "regression"]),
    "head-pose": ("head-pose", [*SMALL, "--task", "head-pose", "--hflip", "0.5"]),
    "head-pose binned": ("head-pose", [*SMALL, "--task", "head-pose", "--pose-head", "binned,9"]),
}
COLUMNS = {
    "binary": ("label", lambda rng, i: "yes" if rng.random() < 0.1 * (i % 7) else "no"),
    "multilabel": ("a,b,c", lambda rng, i: ",".join("1" if rng.random() < 0.15 * (i % 6) else "0" for _ in range(3))),
    "regression": ("size,age", lambda rng, i: f"{i % 3 + rng.random():.3f},{rng.random():.3f}"),
    "head-pose": ("yaw,pitch,roll", lambda rng, i: ",".join(f"{rng.uniform(-90, 90):.2f}" for _ in range(3))),
}


def make_data(folder):
    """One folder for each kind of data; classes of different sizes, and numbers of images that divide nowhere."""
    for split, images in (("train", 107), ("val", 59)):
        made_images.write_images(folder / "images" / split, images, SIDE, seed=len(split), shares=(5, 2, 1))
        made_images.write_images(folder / "torn" / split, images, SIDE, seed=len(split), torn={3, 40, 41, 55})
        for name, (columns, values) in COLUMNS.items():
            rng = random.Random(f"{name} {split}")
            pictures = folder / name / split
            made_images.write_images(pictures, images, SIDE, seed=len(split), shares=(1,))
            rows = [f"{split}/class0/{i:04}.png,{values(rng, i)}" for i in range(images)]
            (folder / name / f"{split}.csv").write_text("\n".join([f"path,{columns}", *rows]) + "\n")


def left_by(train, options, run_dir, devices):
    """Name -> SHA-256 of what a run leaves."""
    command = [str(train), *options, "--devices", str(devices), "--run-dir", str(run_dir)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"same_options: {' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    left = kill_anywhere.digest(run_dir)
    for name in ("checkpoints/best/model.safetensors", "worst.json"):
        path = run_dir / name
        left[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", choices=list(RUNS), metavar="NAME", help=", ".join(RUNS))
    parser.add_argument("--devices", default="2", help="numbers of processes that are compared with one, as in 2,4")
    args = parser.parse_args()
    differ = 0
    with tempfile.TemporaryDirectory(prefix="stoker-options-") as folder:
        folder = pathlib.Path(folder)
        make_data(folder / "data")
        for name in args.only or RUNS:
            data, options = RUNS[name]
            options = [*COMMON, *options, "--data-dir", str(folder / "data" / data)]
            wanted = left_by(args.train, options, folder / f"{name}-1", 1)
            for devices in args.devices.split(","):
                got = left_by(args.train, options, folder / f"{name}-{devices}", devices)
                different = [key for key in wanted if got.get(key) != wanted[key]]
                differ += bool(different)
                what = "DIFFERENT: " + ", ".join(different) if different else "the same bytes"
                print(f"{name}, {devices} processes: {what} ({wanted['model.safetensors'][:16]})", flush=True)
    print(f"same_options: {differ} differ" if differ else "same_options: all are the same bytes")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
