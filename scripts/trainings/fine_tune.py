#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes from imported weights and from nothing, on a small folder of real images, and prints both accuracies.

    scripts/trainings/fine_tune.py CIFAR10 [--train build/release/apps/train] [--work FOLDER]

CIFAR10 holds train/<class>/*.jpg and test/<class>/*.jpg. A ResNet-18 learns six of its classes; Python reads the
checkpoint into torchvision's network and saves that with torch.save(); `train --init-from` starts from the .pth file with
all but the classifier at rest and learns the other four classes from a few images each. The same network learns the same
images from scratch, for as many epochs, every weight of it. Needs torch and torchvision (Debian: python3-torchvision).
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision

KNOWN = ("airplane", "automobile", "deer", "dog", "frog", "truck")
NEW = ("bird", "cat", "horse", "ship")
DTYPES = {"F32": torch.float32, "I64": torch.int64}


def read_safetensors(path):
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[:8], "little")
    state = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            state[name] = torch.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"]).clone()
    return state


def link_images(source, target, classes, train, val):
    """The first images of each class, as hard links or copies."""
    for split, folder, count in (("train", "train", train), ("val", "test", val)):
        for name in classes:
            (target / split / name).mkdir(parents=True, exist_ok=True)
            for path in sorted((source / folder / name).iterdir())[:count]:
                place = target / split / name / path.name
                if not place.exists():
                    try:
                        os.link(path, place)
                    except OSError:
                        place.write_bytes(path.read_bytes())


def train(args, name, *options):
    command = [args.train, "--model", "resnet18", "--img-size", "32", "--threads", str(args.threads), "--num-workers", "1",
               "--amp", "--run-dir", str(args.work / name), "--no-report", *options]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        sys.exit(f"fine_tune: {' '.join(command)} ended with {result.returncode}:\n{result.stdout[-3000:]}")
    for line in result.stdout.splitlines():
        if line.startswith(("starting weights", "frozen")):
            print(f"  {line}")
    rows = list(csv.DictReader(open(args.work / name / "summary.csv", encoding="utf-8")))
    top1 = [float(row["eval_top1"]) for row in rows if row["eval_top1"]]
    print(f"{name}: best top-1 {max(top1):.2f}%, last {top1[-1]:.2f}% after {len(rows)} epochs", flush=True)
    return max(top1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cifar10", type=pathlib.Path)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the runs (default: a temporary one)")
    parser.add_argument("--source-images", type=int, default=5000, help="per class, for the network that is imported")
    parser.add_argument("--source-epochs", type=int, default=6)
    parser.add_argument("--images", type=int, default=25, help="per new class, to learn from")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    args.work = args.work or pathlib.Path(tempfile.mkdtemp(prefix="stoker-fine-tune-"))
    link_images(args.cifar10, args.work / "known", KNOWN, args.source_images, 1000)
    link_images(args.cifar10, args.work / "new", NEW, args.images, 1000)

    train(args, "source", "--data-dir", str(args.work / "known"), "--epochs", str(args.source_epochs), "--batch-size", "128",
          "--sched", "one-cycle", "--lr", "0.1")
    network = torchvision.models.resnet18(num_classes=len(KNOWN))
    network.load_state_dict(read_safetensors(args.work / "source/checkpoints/best/model.safetensors"), strict=True)
    torch.save(network.state_dict(), args.work / "source.pth")

    target = ("--data-dir", str(args.work / "new"), "--epochs", str(args.epochs), "--batch-size", "20", "--val-every", "5e")
    tuned = train(args, "fine-tuned", *target, "--init-from", str(args.work / "source.pth"), "--freeze", "*,!fc")
    scratch = train(args, "from-scratch", *target)
    print(f"{len(NEW)} classes of {args.images} images each: {tuned:.2f}% from imported weights, {scratch:.2f}% from scratch")
    return 0 if tuned > scratch else 1


if __name__ == "__main__":
    sys.exit(main())
