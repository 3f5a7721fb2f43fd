#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares gradients of `train` and probabilities of `train predict` with torchvision's for the same weights and PNG files.

    scripts/parity/predict_parity.py --train build/release/apps/train

Needs torch, torchvision, numpy and Pillow (Debian: python3-torchvision). For each network: torchvision's weights go
to a safetensors file written here by hand, `train --init-from` starts from it and does one update of SGD, without random
omissions, with a learning rate so small that no weight changes, only batch norm's running statistics do: the momentum in the
checkpoint is the gradient. Its model.safetensors goes back into torchvision (strict), and both classify PNG files of the
network's size, which need no resizing. torchvision in float64 shows how far each is from the exact result. Ends with 1 when
a probability or a gradient differs by more than its limit or a weight did not arrive. --onnx exports each network with --check.
"""
import argparse
import csv
import json
import pathlib
import re
import shutil
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
            if re.search(r"bn3$|block\.[23]\.1$|f\.c\.1$|conv\.3$", key):  # else rounding grows from block to block of a deep
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


def gradients_of(model, folder):
    """Of the mean cross entropy of the training images in one batch, in evaluation mode afterwards."""
    paths = sorted((folder / "data" / "train").rglob("*.png"))
    labels = torch.tensor([CLASSES.index(path.parent.name) for path in paths])
    scores = model.train()(load_images(paths).to(next(model.parameters()).dtype))
    torch.nn.functional.cross_entropy(scores, labels).backward()
    model.eval()
    return {key: parameter.grad for key, parameter in model.named_parameters()}


def difference(got, wanted):
    """Of two sets of tensors as vectors, as a share of their length."""
    squares = [((got[key].double() - wanted[key]).norm().item() ** 2, wanted[key].norm().item() ** 2) for key in wanted]
    return (sum(a for a, _ in squares) / sum(b for _, b in squares)) ** 0.5


def compare(name, args, folder, paths):
    images = load_images(paths)
    model = made_model(name, images, args.seed)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    write_safetensors(folder / f"{name}.safetensors", before)
    run_dir = folder / f"run-{name}"
    run([args.train, "--no-amp", "--data-dir", str(folder / "data"), "--model", name, "--img-size", str(args.size), "--in-chans", "3",
         "--init-from", str(folder / f"{name}.safetensors"), "--opt", "sgd", "--momentum", "0.9", "--no-channels-last", "--lr", "1e-30", "--weight-decay",
         "0", "--sched", "constant", "--drop-rate", "0", "--drop-path-rate", "0", "--hflip", "0", "--epochs", "1", "--max-updates",
         "1", "--batch-size", "10", "--train-crop", "none", "--crop-pct", "1", "--threads", str(args.threads), "--run-dir",
         str(run_dir)])
    checkpoint = run_dir / "checkpoints" / "last"
    after = read_safetensors(checkpoint / "model.safetensors")
    lost = [key for key in before if "running_" not in key and "num_batches" not in key
            and not (before[key] - after[key]).abs().max() < 1e-20]  # exact zeros do move, by lr x gradient
    seen = {key[9:]: tensor for key, tensor in read_safetensors(checkpoint / "optimizer.safetensors").items()
            if key.startswith("momentum.")}
    exact = make(name, len(CLASSES), args.size).double()
    exact.load_state_dict(before)
    exact_gradients, gradients = gradients_of(exact, folder), gradients_of(model, folder)
    learned = [difference(*pair) for pair in ((seen, gradients), (seen, exact_gradients), (gradients, exact_gradients))]
    received = make(name, len(CLASSES), args.size).eval()
    received.load_state_dict(after, strict=True)
    with torch.no_grad():
        wanted, exact_scores, again = model(images), exact(images.double()), received(images)

    text = run([args.train, "predict", str(run_dir), str(folder / "data" / "val"), "--which", "last", "--logits",
                "--threads", str(args.threads)])
    rows = {row["path"]: row for row in csv.DictReader(text.splitlines())}
    got = torch.tensor([[float(rows[str(path)][label]) for label in CLASSES] for path in paths])
    reported = torch.tensor([float(rows[str(path)]["probability"]) for path in paths])
    largest = wanted.softmax(1).max(1).values
    probabilities = max((got.softmax(1) - wanted.softmax(1)).abs().max().item(), (reported - largest).abs().max().item(),
                        (again.softmax(1) - wanted.softmax(1)).abs().max().item())
    scale = wanted.abs().max().item()
    logits, ours, theirs = ((a.double() - b).abs().max().item() / scale
                            for a, b in ((got, wanted), (got, exact_scores), (wanted, exact_scores)))
    print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, {len(paths)} images, largest difference of "
          f"probabilities {probabilities:.1e}, of logits, relative to {scale:.2f}, {logits:.1e} (from float64 ours {ours:.1e}, theirs "
          f"{theirs:.1e}), of gradients {learned[0]:.1e} ({learned[1]:.1e}, {learned[2]:.1e}); {len(before)} tensors, {len(lost)} "
          f"changed on the way", flush=True)
    if args.onnx:
        result = subprocess.run([args.train, "export", str(run_dir), "--which", "last", "--check"], capture_output=True, text=True)
        print("  " + next((line for line in result.stderr.splitlines()[::-1] if line.startswith(("check", "error"))), "?"), flush=True)
    return probabilities <= args.limit and learned[0] <= max(args.limit, 3 * learned[2]) and not lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--models", nargs="+", default=["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", *NAMED])
    parser.add_argument("--size", type=int, default=224, help="side of the images, pixels")
    parser.add_argument("--per-class", type=int, default=4, help="images per class")
    parser.add_argument("--limit", type=float, default=1e-4, help="largest difference of a probability")
    parser.add_argument("--onnx", action="store_true", help="export each network with --check")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory(prefix="stoker-parity-") as name:
        folder = pathlib.Path(name)
        write_images(folder / "data" / "train", 2, args.size, args.seed)
        write_images(folder / "data" / "val", args.per_class, args.size, args.seed + 1)
        paths = sorted((folder / "data" / "val").rglob("*.png"))
        results = []
        for model in args.models:
            results.append(compare(model, args, folder, paths))
            shutil.rmtree(folder / f"run-{model}")
    print("predict_parity: " + ("all within" if all(results) else "NOT within") + f" {args.limit:g}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
