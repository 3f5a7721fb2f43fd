#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluates a head pose run on a validation split and on its mirror image, whose yaw and roll are negated.

    scripts/parity/pose_flip.py --train build/release/apps/train --run runs/heads --data heads --layout 300wlp

Needs NumPy, OpenCV and, for 300wlp, SciPy. The mirrored copy is made here with OpenCV, with annotation files written
anew: the program sees nothing but another data set. For 300wlp --split names the folder (AFLW2000); for biwi every
folder of a subject is mirrored, its camera too. Ends with 1 when a mean absolute error moves by more than --limit.
"""
import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np

MIRROR = np.diag([-1.0, 1.0, 1.0])


def mirror_300wlp(source, target):
    from scipy.io import loadmat, savemat
    for path in sorted(source.rglob("*.jpg")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        image = cv2.imread(str(path))
        cv2.imwrite(str(copy), cv2.flip(image, 1), [cv2.IMWRITE_JPEG_QUALITY, 98])
        content = {key: value for key, value in loadmat(path.with_suffix(".mat")).items() if not key.startswith("__")}
        content["Pose_Para"][0, [1, 2]] *= -1
        known = ~(content["pt2d"] == -1).all(0)
        content["pt2d"][0, known] = image.shape[1] + 1 - content["pt2d"][0, known]  # MATLAB counts from 1
        savemat(str(copy.with_suffix(".mat")), content, do_compression=True)


def text_of(matrix):
    return "".join(" ".join(f"{value:.17g}" for value in row) + "\n" for row in np.atleast_2d(matrix))


def mirror_biwi(source, target):
    width = 0
    for path in sorted(source.rglob("*_rgb.png")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        image = cv2.imread(str(path))
        width = image.shape[1]
        cv2.imwrite(str(copy), cv2.flip(image, 1))
        pose = path.name.replace("_rgb.png", "_pose.txt")
        numbers = np.array((path.parent / pose).read_text().split(), np.float64)
        turn, place = numbers[:9].reshape(3, 3), numbers[9:]
        copy.with_name(pose).write_text(text_of(MIRROR @ turn @ MIRROR) + "\n" + text_of(MIRROR @ place))
    for path in sorted(source.rglob("rgb.cal")):
        lines = [np.array(line.split(), np.float64) for line in path.read_text().splitlines() if line.strip()]
        lens, turn, shift = np.array(lines[:3]), np.array(lines[4:7]), lines[7]
        lens[0, 2] = width - 1 - lens[0, 2]
        (target / path.relative_to(source)).write_text(
            text_of(lens) + text_of(lines[3]) + text_of(MIRROR @ turn @ MIRROR) + text_of(MIRROR @ shift))


def errors_of(args, data):
    """Mean absolute error in degrees by angle."""
    command = [args.train, "eval", str(args.run), "--data-dir", str(data), "--threads", str(args.threads)]
    command += ["--split", args.split] if args.layout == "300wlp" else []
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"pose_flip: {' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    return {row["angle"]: float(row["mae"]) for row in csv.DictReader(result.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--run", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--layout", choices=("300wlp", "biwi"), default="300wlp")
    parser.add_argument("--split", default="AFLW2000", help="300wlp: the folder to mirror")
    parser.add_argument("--limit", type=float, default=0.3, help="degrees")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-mirror-") as name:
        mirrored = pathlib.Path(name)
        if args.layout == "biwi":
            mirror_biwi(args.data, mirrored)
        else:
            mirror_300wlp(args.data / args.split, mirrored / args.split)
        plain, flipped = errors_of(args, args.data), errors_of(args, mirrored)
    moved = {angle: abs(plain[angle] - flipped[angle]) for angle in plain}
    for angle in plain:
        print(f"{angle}: mean absolute error {plain[angle]:.3f}, of the mirrored images {flipped[angle]:.3f}, "
              f"apart {moved[angle]:.3f} degrees")
    holds = max(moved.values()) <= args.limit
    print("pose_flip: " + ("all within" if holds else "NOT within") + f" {args.limit:g} degrees")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
