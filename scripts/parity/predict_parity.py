#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the probabilities of `train predict` with torchvision's for the same weights and the same PNG files.

    scripts/parity/predict_parity.py --train build/release/apps/train

Needs torch, torchvision, numpy and Pillow (Debian: python3-torchvision). For each network: torchvision's weights go
to a safetensors file written here by hand, `train --init-from` starts from it and does one update with a learning
rate so small that no weight changes, only batch norm's running statistics do; the checkpoint's model.safetensors goes
back into torchvision (strict), and both classify PNG files of the network's size, which need no resizing. torchvision in
float64 shows how far each is from the exact result. Ends with 1 when a probability differs by more than the limit or
a weight did not arrive.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image

from torchvision_golden import NAMED, make

CLASSES = ("ant", "bee", "cow", "doe", "eel")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}


def write_safetensors(path, state):
    header, offset, blobs = {}, 0, []
    for name, tensor in state.items():
        blob = tensor.detach().contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def read_safetensors(path):
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    state = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            state[name] = torch.frombuffer(data[8 + size + begin:8 + size + end],
                                           dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return state


def random_image(rng, size):
    """Smooth colours under noise: neither flat nor white noise alone."""
    coarse = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((size, size), Image.BICUBIC)
    noise = rng.integers(-40, 41, (size, size, 3))
    return Image.fromarray(np.clip(np.asarray(coarse, np.int64) + noise, 0, 255).astype(np.uint8))


def write_images(folder, per_class, size, seed):
    rng = np.random.default_rng(seed)
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
        for i in range(per_class):
            random_image(rng, size).save(folder / name / f"{i}.png")


def write_photos(folder, per_class, size, photos, skip=0):
    """The middles of the files below `photos`, in the order of their names, after the first `skip`."""
    found = sorted(path for path in photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    needed = per_class * len(CLASSES)
    if len(found) < skip + needed:
        sys.exit(f"{photos} holds {len(found)} images, {skip + needed} are needed")
    for i, path in enumerate(found[skip:skip + needed]):
        photo = Image.open(path).convert("RGB")
        side = min(photo.size)
        left, top = (photo.width - side) // 2, (photo.height - side) // 2
        target = folder / CLASSES[i % len(CLASSES)] / f"{i}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        photo.resize((size, size), Image.BICUBIC, (left, top, left + side, top + side)).save(target)


def load_pixels(paths):
    """Bytes [images, height, width, 3]."""
    return np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths])


def load_images(paths):
    images = torch.from_numpy(load_pixels(paths)).permute(0, 3, 1, 2).float() / 255
    return (images - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


def made_model(name, images, seed):
    """A network with random weights whose batch norm has the statistics of `images`, and whose scores are far from equal."""
    torch.manual_seed(seed)
    return with_statistics(make(name, len(CLASSES), images.shape[-1]), images)


def with_statistics(model, images):
    """Lets the batch norms of a fresh network see `images`, and spreads its scores."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    with torch.no_grad():
        for norm in norms:
            norm.weight.uniform_(0.5, 1)
            norm.bias.uniform_(-0.2, 0.2)
        for key, module in model.named_modules():
            if re.search(r"bn3$|block\.[23]\.1$", key):  # else rounding grows from block to block of a deep
                module.weight.uniform_(0.1, 0.3)  # network: torchvision is then 1e-3 from float64, too
        for key, parameter in model.named_parameters():
            if key.endswith(("layer_scale", "gamma")):  # 1e-6 would hide what a block computes
                parameter.uniform_(0.1, 0.5)
        head = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
        head.weight.normal_(0, 3 / head.in_features ** 0.5)
        usual = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = None  # the mean of all that was seen
        model.train()
        for _ in range(2 if norms else 0):
            model(images)
        for norm, momentum in zip(norms, usual):
            norm.momentum = momentum
        scores = model.eval()(images)
        head.weight *= 1 / scores.std(0).mean()  # scores differ between images
    return model.eval()


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"predict_parity: {' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def compare(name, args, folder, paths):
    images = load_images(paths)
    before = made_model(name, images, args.seed).state_dict()
    write_safetensors(folder / f"{name}.safetensors", before)
    run_dir = folder / f"run-{name}"
    run([args.train, "--no-amp", "--data-dir", str(folder / "data"), "--model", name, "--img-size", str(args.size), "--in-chans", "3",
         "--init-from", str(folder / f"{name}.safetensors"), "--lr", "1e-30", "--weight-decay", "0", "--sched", "constant",
         "--epochs", "1", "--max-updates", "1", "--batch-size", "10", "--train-crop", "none", "--crop-pct", "1",
         "--threads", str(args.threads), "--run-dir", str(run_dir)])
    after = read_safetensors(run_dir / "checkpoints" / "last" / "model.safetensors")
    lost = [key for key in before if "running_" not in key and "num_batches" not in key
            and not (before[key] - after[key]).abs().max() < 1e-20]  # exact zeros do move, by lr x gradient
    model = make(name, len(CLASSES), args.size)
    model.load_state_dict(after, strict=True)
    with torch.no_grad():
        wanted = model.eval()(images)
        exact = model.double()(images.double())

    text = run([args.train, "predict", str(run_dir), str(folder / "data" / "val"), "--which", "last", "--logits",
                "--threads", str(args.threads)])
    rows = {row["path"]: row for row in csv.DictReader(text.splitlines())}
    got = torch.tensor([[float(rows[str(path)][label]) for label in CLASSES] for path in paths])
    reported = torch.tensor([float(rows[str(path)]["probability"]) for path in paths])
    logits = (got - wanted).abs().max().item()
    largest = wanted.softmax(1).max(1).values
    probabilities = max((got.softmax(1) - wanted.softmax(1)).abs().max().item(), (reported - largest).abs().max().item())
    ours, theirs = ((scores.double() - exact).abs().max().item() for scores in (got, wanted))
    print(f"{name}: {len(paths)} images, largest difference of probabilities {probabilities:.2e}, of logits {logits:.2e}; "
          f"from float64 ours {ours:.2e}, torchvision's {theirs:.2e} (logits from {wanted.min():.2f} to {wanted.max():.2f}, top probability {largest.min():.2f} to "
          f"{largest.max():.2f}); {len(before)} tensors, {len(lost)} changed on the way", flush=True)
    return probabilities <= args.limit and not lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--models", nargs="+", default=["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", *NAMED])
    parser.add_argument("--size", type=int, default=224, help="side of the images, pixels")
    parser.add_argument("--per-class", type=int, default=4, help="images per class")
    parser.add_argument("--limit", type=float, default=1e-4, help="largest difference of a probability")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory(prefix="stoker-parity-") as name:
        folder = pathlib.Path(name)
        write_images(folder / "data" / "train", 2, args.size, args.seed)
        write_images(folder / "data" / "val", args.per_class, args.size, args.seed + 1)
        paths = sorted((folder / "data" / "val").rglob("*.png"))
        results = [compare(model, args, folder, paths) for model in args.models]
    print("predict_parity: " + ("all within" if all(results) else "NOT within") + f" {args.limit:g}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
