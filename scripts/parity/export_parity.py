#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `train export` writes, in the eyes of other readers, with `train predict` on the same files of images.

    scripts/parity/export_parity.py FOLDER --train build/release/apps/train [--images PHOTOS]
    scripts/parity/onnx_readers.py FOLDER              # again with what another system has installed

Needs torch, torchvision, numpy and Pillow (Debian: python3-torchvision). Each network gets weights whose batch norms know
the images (those that torchvision lacks are trained for some updates), predicts PNG files of its size, and is exported
as TorchScript and as ONNX, with and without preprocessing inside. Python runs the TorchScript here; the ONNX files go to
FOLDER with the images and probabilities, for onnx_readers.py, which runs at the end with what is installed. The images are
made up, or cut from the first files of PHOTOS. Ends with 1 when a probability differs by more than the limit.
"""
import argparse
import csv
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch

from import_parity import head_of
from predict_parity import CLASSES, load_images, load_pixels, made_model, run, write_images, write_photos

OURS = ("tiny_cnn", "small_cnn", "resnet9")
THEIRS = ("resnet18", "resnet34", "resnet50", "efficientnet_b0", "mobilenet_v3_small", "mobilenet_v3_large", "convnext_tiny",
          "vit_s_16", "vit_b_16", "mobilenet_v2", "densenet121", "regnet_y_400mf", "efficientnet_v2_s", "swin_t", "swin_v2_t")


def trained(name, images, folder, data, args):
    """A run whose weights tell the images apart; its folder."""
    run_dir = folder / "run"
    size = images.shape[-1]
    command = [args.train, "--no-amp", "--data-dir", str(data), "--model", name, "--img-size", str(size), "--in-chans", "3",
               "--epochs", "1", "--batch-size", "10", "--train-crop", "none", "--crop-pct", "1", "--device", "cpu", "--threads",
               str(args.threads), "--run-dir", str(run_dir), "--no-report"]
    if name in OURS:
        command += ["--max-updates", "20", "--epochs", "20"]
    else:
        weights = folder / "weights.pth"
        torch.save(made_model(name, images, args.seed).state_dict(), weights)
        command += ["--init-from", str(weights), "--freeze", "*,!" + head_of(name), "--lr", "1e-30", "--weight-decay", "0",
                    "--sched", "constant", "--max-updates", "1"]
    run(command)
    return run_dir


def predicted(run_dir, data, paths, args):
    text = run([args.train, "predict", str(run_dir), str(data / "val"), "--which", "last", "--logits", "--device", "cpu",
                "--threads", str(args.threads)])
    rows = {row["path"]: row for row in csv.DictReader(text.splitlines())}
    logits = torch.tensor([[float(rows[str(path)][label]) for label in CLASSES] for path in paths], dtype=torch.float64)
    return logits.softmax(1)


def export(name, images, paths, data, args):
    """Whether TorchScript agrees, too."""
    folder = args.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run_dir = trained(name, images, folder, data, args)
    probabilities = predicted(run_dir, data, paths, args)
    np.save(folder / "probabilities.npy", probabilities.numpy())
    for file, options in (("normalised.onnx", []), ("bytes.onnx", ["--with-preprocessing"]), ("normalised.pt", []),
                          ("bytes.pt", ["--with-preprocessing"])):
        run([args.train, "export", str(run_dir), "--which", "last", "--output", str(folder / file), *options])
    differences = []
    with torch.no_grad():
        for file, samples in (("normalised.pt", images), ("bytes.pt", torch.from_numpy(np.load(args.folder / "bytes.npy")))):
            network = torch.jit.load(str(folder / file))
            for batch in (1, 7):
                got = torch.cat([network(some) for some in samples.split(batch)]).double().softmax(1)
                differences.append((got - probabilities).abs().max().item())
    print(f"{name}: TorchScript in Python {torch.__version__} on {len(paths)} images, largest difference of a probability "
          f"{differences[0]:.1e} one by one, {differences[1]:.1e} by 7; bytes in: {differences[2]:.1e}, {differences[3]:.1e}; "
          f"probabilities from {probabilities.min():.3f} to {probabilities.max():.3f}", flush=True)
    shutil.rmtree(run_dir)
    (folder / "weights.pth").unlink(missing_ok=True)
    return max(differences) <= args.torchscript_limit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="what is written, for onnx_readers.py")
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--models", nargs="+", default=[*OURS, *THEIRS])
    parser.add_argument("--images", type=pathlib.Path, help="a folder of photos to cut the images from")
    parser.add_argument("--size", type=int, default=224, help="side of the images, pixels")
    parser.add_argument("--per-class", type=int, default=20, help="images per class")
    parser.add_argument("--limit", type=float, default=1e-4, help="largest difference of a probability, ONNX")
    parser.add_argument("--torchscript-limit", type=float, default=1e-5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.folder.mkdir(parents=True, exist_ok=True)
    data = args.folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    if args.images:
        write_photos(data / "val", args.per_class, args.size, args.images)
        write_photos(data / "train", 2, args.size, args.images, skip=len(CLASSES) * args.per_class)
    else:
        write_images(data / "train", 2, args.size, args.seed)
        write_images(data / "val", args.per_class, args.size, args.seed + 1)
    paths = sorted((data / "val").rglob("*.png"))
    images = load_images(paths)
    np.save(args.folder / "images.npy", images.numpy())
    np.save(args.folder / "bytes.npy", load_pixels(paths))
    results = [export(name, images, paths, data, args) for name in args.models]
    print(f"export_parity: TorchScript of {sum(results)} of {len(results)} networks within {args.torchscript_limit:g}", flush=True)
    readers = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("onnx_readers.py")), str(args.folder), "--limit",
                              str(args.limit), "--threads", str(args.threads), "--models", *args.models])
    return 0 if all(results) and readers.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
