#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the probabilities of networks that `train --init-from` read from .pth files with those of their origin.

    scripts/parity/import_parity.py --train build/release/apps/train
    scripts/parity/import_parity.py --train build/release/apps/train --timm path/to/pytorch-image-models
    scripts/parity/import_parity.py --other-python "chroot /srv/trixie python3" --images PHOTOS

Needs torch, torchvision, numpy and Pillow (Debian: python3-torchvision); timm's sources for its networks. Each network
gets random weights whose batch norms know the images, and is saved by torch.save() in three layouts: the zip archive of
this torch, the one before PyTorch 1.6 ("legacy"), and that of current releases, which another Python writes (it loads the
weights with weights_only and saves them again), or this script, with the members that PyTorch 2.7 added. `train` starts from
the file, does one update with everything but the classifier at rest and a learning rate that changes nothing, and
classifies PNG files of the network's size, which need no resizing: made-up ones, or the middles of the first files of
--images. Ends with 1 when a probability differs by more than the limit.
"""
import argparse
import copy
import csv
import io
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile

import torch

from predict_parity import CLASSES, load_images, made_model, run, with_statistics, write_images, write_photos

TORCHVISION = ("resnet18", "resnet34", "resnet50", "resnet101", "efficientnet_b0", "efficientnet_b1", "mobilenet_v3_small",
               "mobilenet_v3_large", "convnext_tiny", "vit_b_16")
TIMM = {"resnet18": "resnet18", "resnet50": "resnet50", "efficientnet_b0": "efficientnet_b0",
        "mobilenetv3_large_100": "mobilenet_v3_large", "mobilenetv3_small_100": "mobilenet_v3_small",
        "convnext_tiny": "convnext_tiny", "vit_small_patch16_224": "vit_s_16", "resnext50_32x4d": "resnext50_32x4d",
        "mobilenetv2_100": "mobilenet_v2", "densenet121": "densenet121", "regnety_004": "regnet_y_400mf",
        "regnetx_004": "regnet_x_400mf", "efficientnetv2_s": "efficientnet_v2_s", "swin_tiny_patch4_window7_224": "swin_t",
        "vit_base_patch32_224": "vit_b_32"}
HEADS = {"res": "fc", "wide_resnet": "fc", "regnet": "fc", "efficientnet": "classifier", "mobilenet_v2": "classifier",
         "mobilenet": "classifier.3", "convnext": "classifier.2", "vit": "heads", "densenet": "classifier", "swin": "head"}


LAYOUTS = ("zip", "legacy", "current")
SAVE_AGAIN = """
import io, os, sys
answer = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # libraries print to it while they load
import torch
weights = torch.load(io.BytesIO(sys.stdin.buffer.read()), weights_only=True)
bytes = io.BytesIO()
torch.save(weights, bytes)
print(torch.__version__, file=sys.stderr)
answer.write(bytes.getbuffer())
answer.close()
os._exit(0)
"""


def head_of(name):
    return next(head for family, head in HEADS.items() if name.startswith(family))


def probabilities(name, file, size, run_dir, paths, data, args):
    """Of `train predict` for each path and class, and the lines of the log about the weights."""
    log = run([args.train, "--no-amp", "--data-dir", str(data), "--model", name, "--img-size", str(size), "--in-chans", "3",
                "--init-from", str(file), "--freeze", "*,!" + head_of(name), "--lr", "1e-30", "--weight-decay", "0",
                "--sched", "constant", "--epochs", "1", "--max-updates", "1", "--batch-size", "10", "--train-crop", "none",
                "--crop-pct", "1", "--threads", str(args.threads), "--run-dir", str(run_dir)])
    text = run([args.train, "predict", str(run_dir), str(data / "val"), "--which", "last", "--logits", "--threads",
                str(args.threads)])
    rows = {row["path"]: row for row in csv.DictReader(text.splitlines())}
    logits = torch.tensor([[float(rows[str(path)][label]) for label in CLASSES] for path in paths], dtype=torch.float64)
    lines = re.findall(r"^starting weights: (.*)$", log, re.MULTILINE)
    return logits.softmax(1), "; ".join(lines)


def timm_model(name, images, seed, size=None):
    """A network of timm's; with `size` the same for other images, with position embeddings that timm resampled."""
    import timm
    options = {"img_size": images.shape[-1]} if name.startswith("vit") else {}
    torch.manual_seed(seed)
    model = timm.create_model(name, num_classes=len(CLASSES), **options)
    if size is not None:
        larger = timm.create_model(name, num_classes=len(CLASSES), img_size=size)
        state = timm.models.vision_transformer.checkpoint_filter_fn(larger.state_dict(), model)
        model.load_state_dict(state, strict=True)
        return model, larger
    return with_statistics(model, images), None


def as_current(saved):
    """The bytes of a zip archive of an older torch, with the members and the alignment of PyTorch 2.7."""
    old, bytes_ = zipfile.ZipFile(io.BytesIO(saved)), io.BytesIO()
    records = {name.split("/", 1)[1]: old.read(name) for name in old.namelist()}
    order = {"data.pkl": records.pop("data.pkl"), ".format_version": b"1", ".storage_alignment": b"64",
             "byteorder": b"little"}
    records.pop("version")
    order.update(records)
    order.update({"version": b"3\n", ".data/serialization_id": b"0123456789" * 4})
    with zipfile.ZipFile(bytes_, "w", zipfile.ZIP_STORED) as new:
        for name, data in order.items():
            entry = zipfile.ZipInfo("archive/" + name)
            padding = -(bytes_.tell() + 30 + len(entry.filename) + 4) % 64  # behind the header and this field's own
            entry.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            new.writestr(entry, data)
    return bytes_.getvalue()


def save(state, file, layout, args):
    """Writes the state dict; returns which library wrote it."""
    torch.save(state, file, _use_new_zipfile_serialization=layout != "legacy")
    if layout != "current":
        return f"{layout}, torch {torch.__version__}"
    if not args.other_python:
        file.write_bytes(as_current(file.read_bytes()))
        return "current, made by this script"
    saved = subprocess.run([*shlex.split(args.other_python), "-c", SAVE_AGAIN], input=file.read_bytes(), capture_output=True)
    if saved.returncode != 0:
        sys.exit(f"import_parity: {args.other_python} failed:\n{saved.stderr.decode()}")
    file.write_bytes(saved.stdout)
    return f"current, torch {saved.stderr.decode().split()[-1]}"


def compare(origin, their_name, our_name, model, layouts, images, paths, data, folder, args, saved=None):
    """`saved`: the network whose weights go to the file, if not `model` itself."""
    with torch.no_grad():
        wanted = model.eval()(images).double().softmax(1)
        exact = copy.deepcopy(model).double()(images.double()).softmax(1)
    results = []
    for layout in layouts:
        file = folder / f"{their_name.replace(' ', '-')}-{layout}.pth"
        written = save((saved or model).state_dict(), file, layout, args)
        got, notes = probabilities(our_name, file, images.shape[-1], folder / f"run-{origin}-{their_name}-{layout}", paths, data, args)
        largest = (got - wanted).abs().max().item()
        results.append(largest <= args.limit)
        print(f"{origin} {their_name} ({written}): {len(paths)} images, largest difference of a probability {largest:.2e}, "
              f"from float64 ours {(got - exact).abs().max():.1e}, theirs {(wanted - exact).abs().max():.1e}, "
              f"probabilities from {wanted.min():.3f} to {wanted.max():.3f}; {notes.replace(str(folder), '...')}", flush=True)
        file.unlink()
    return all(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--models", nargs="*", default=list(TORCHVISION), help="of torchvision")
    parser.add_argument("--timm", help="timm's sources: the folder that holds timm/")
    parser.add_argument("--timm-models", nargs="*", default=list(TIMM))
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=LAYOUTS)
    parser.add_argument("--other-python", help="command of a Python with a current torch, which writes the layout \"current\"")
    parser.add_argument("--images", type=pathlib.Path, help="a folder of photos to cut the images from")
    parser.add_argument("--size", type=int, default=224, help="side of the images, pixels")
    parser.add_argument("--per-class", type=int, default=20, help="images per class")
    parser.add_argument("--limit", type=float, default=1e-4, help="largest difference of a probability")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory(prefix="stoker-import-") as name:
        folder = pathlib.Path(name)
        data = folder / "data"
        if args.images:
            write_photos(data / "train", 2, args.size, args.images, skip=len(CLASSES) * args.per_class)
            write_photos(data / "val", args.per_class, args.size, args.images)
        else:
            write_images(data / "train", 2, args.size, args.seed)
            write_images(data / "val", args.per_class, args.size, args.seed + 1)
        paths = sorted((data / "val").rglob("*.png"))
        images = load_images(paths)
        results = []
        for model in args.models:
            results.append(compare("torchvision", model, model, made_model(model, images, args.seed), args.layouts, images,
                                   paths, data, folder, args))
        if args.timm:
            sys.path.insert(0, args.timm)
            for model in args.timm_models:
                made, _ = timm_model(model, images, args.seed)
                results.append(compare("timm", model, TIMM[model], made, args.layouts, images, paths, data, folder, args))
            resized, larger = timm_model("vit_small_patch16_224", images, args.seed, size=args.size * 3 // 2 // 16 * 16)
            results.append(compare("timm", "vit_small_patch16_224 from larger images", "vit_s_16", resized,
                                   args.layouts[:1], images, paths, data, folder, args, larger))
    print(f"import_parity: {len(results)} networks, " + ("all within" if all(results) else "NOT within") + f" {args.limit:g}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
