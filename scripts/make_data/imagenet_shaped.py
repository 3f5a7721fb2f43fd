#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lays a folder of images out as ImageNet is: OUT/train/<class>/<image> and OUT/val/<class>/<image>.

    scripts/make_data/imagenet_shaped.py IMAGES OUT --classes 8 --val-every 5

The sorted images are dealt into classes of neighbours; every val-every-th image of a class goes to val. Files are
hard links where that is possible, else copies. With --classes 0 a class is what stands before the first _ of a name.
For trying a training out: labels that are dealt cannot be learned.
"""
import argparse
import os
import pathlib
import shutil
import sys

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}


def place(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--val-every", type=int, default=5)
    args = parser.parse_args()
    images = sorted(path for path in args.images.rglob("*") if path.suffix.lower() in ENDINGS)
    if not images:
        sys.exit(f"imagenet_shaped: {args.images} holds no images")
    classes = {}
    for number, path in enumerate(images):
        dealt = f"n{number * args.classes // len(images):08}" if args.classes else path.name.split("_")[0]
        classes.setdefault(dealt, []).append(path)
    for name, paths in classes.items():
        for number, path in enumerate(paths):
            split = "val" if number % args.val_every == args.val_every - 1 or len(paths) == 1 else "train"
            place(path, args.out / split / name / path.name)
            if len(paths) == 1:  # a class needs an image to train on
                place(path, args.out / "train" / name / path.name)
    print(f"{len(images)} images in {len(classes)} classes below {args.out}")


if __name__ == "__main__":
    main()
