#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes head pose annotations with SciPy and NumPy and compares what `train` reads of them with what was written.

    scripts/parity/pose_files.py --train build/release/apps/train

Needs NumPy, SciPy and OpenCV. MAT-files are written plain and compressed, with Pose_Para as float32 and float64, with
other arrays before and after it; BIWI's matrices with 6 to 17 digits and with either line end. The columns
true_yaw, true_pitch and true_roll of `train eval --output` must be the float32 nearest to the angles in degrees, exactly
for the numbers that were stored. Ends with 1 when something differs.
"""
import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np
from scipy.io import savemat

ANGLES = ("yaw", "pitch", "roll")
SIDE = 64


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"pose_files: {' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def read_back(args, folder, words):
    """What the program read of every image of the validation split: path to (yaw, pitch, roll)."""
    common = ["--data-dir", str(folder / "data"), "--task", "head-pose", "--img-size", "16", *words]
    run([args.train, *common, "--model", "small_cnn", "--width", "4", "--epochs", "1", "--max-updates", "1",
         "--batch-size", "8", "--threads", "1", "--num-workers", "1", "--device", "cpu", "--run-dir", str(folder / "run")])
    run([args.train, "eval", str(folder / "run"), "--output", str(folder / "results"), "--threads", "1"])
    with open(folder / "results" / "images.csv", newline="") as file:
        return {row["path"]: [np.float32(row[f"true_{name}"]) for name in ANGLES] for row in csv.DictReader(file)}


def report(name, written, read):
    """Both: path to three float32."""
    worst = max(np.abs(np.subtract(read[path], written[path], dtype=np.float64)).max() for path in written)
    exact = sum(np.array_equal(np.float32(read[path]), np.float32(written[path])) for path in written)
    print(f"{name}: {len(written)} files, {exact} exactly the same, largest difference {worst:.2e} degrees")
    return exact == len(written) == len(read)


def check_mat_files(args, folder):
    rng = np.random.default_rng(args.seed)
    written = {}
    for split in ("300W_LP/AFW", "AFLW2000"):
        (folder / "data" / split).mkdir(parents=True)
        for number in range(args.files):
            stem = folder / "data" / split / f"image{number:05}"
            cv2.imwrite(f"{stem}.jpg", np.full((SIDE, SIDE, 3), number % 256, np.uint8))
            radians = rng.uniform(-np.pi / 2, np.pi / 2, 3).astype(np.float32 if number % 2 else np.float64)
            pose = np.concatenate([radians[[1, 0, 2]], np.array([60, 70, 0, 1e-3], radians.dtype)])[None]
            content = {"roi": np.array([[1, SIDE, 1, SIDE]], np.int16), "Shape_Para": rng.normal(size=(199, 1)),
                       "Pose_Para": pose, "pt2d": rng.uniform(5, 60, (2, 68)), "name": "a text"}
            if number % 3 == 0:
                content = dict(reversed(content.items()))
            savemat(f"{stem}.mat", content, do_compression=number % 4 < 2)
            if split == "AFLW2000":
                degrees = radians.astype(np.float64) * (180 / np.pi)
                written[f"{stem}.jpg"] = [np.float32(degree) for degree in degrees]
    return report("300W-LP, AFLW2000", written, read_back(
        args, folder, ["--dataset", "300wlp", "--train-split", "300W_LP", "--val-split", "AFLW2000"]))


def matrix_text(matrix, digits, line_end):
    return "".join(" ".join(f"{value:.{digits}g}" for value in row) + line_end for row in matrix)


def random_rotation(rng):
    """Uniform over what NumPy's QR gives of normal numbers, turned until it is no mirror."""
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def biwi_angles(text):
    """As Ruiz et al. 2018 read the file, with NumPy."""
    turn = np.array(text.split(), np.float64)[:9].reshape(3, 3).T
    roll = -np.arctan2(turn[1, 0], turn[0, 0])
    yaw = -np.arctan2(-turn[2, 0], np.hypot(turn[2, 1], turn[2, 2]))
    pitch = np.arctan2(turn[2, 1], turn[2, 2])
    return [np.float32(angle * (180 / np.pi)) for angle in (yaw, pitch, roll)]


def check_biwi_files(args, folder):
    rng = np.random.default_rng(args.seed)
    written = {}
    for subject in range(3):
        home = folder / "data" / f"{subject + 1:02}"
        home.mkdir(parents=True)
        for number in range(args.files):
            stem = home / f"frame_{number + 3:05}"
            cv2.imwrite(f"{stem}_rgb.png", np.full((SIDE, SIDE, 3), number % 256, np.uint8))
            digits, line_end = 6 + number % 12, ("\n", " \n", " \r\n")[number % 3]
            place = rng.uniform((-200, -150, 600), (200, 150, 1100))
            text = matrix_text(random_rotation(rng), digits, line_end) + line_end + matrix_text([place], 7, line_end)
            pathlib.Path(f"{stem}_pose.txt").write_bytes(text.encode())
            if subject == 2:
                written[f"{stem}_rgb.png"] = biwi_angles(text)
    return report("BIWI", written, read_back(args, folder, ["--dataset", "biwi"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--files", type=int, default=200, help="annotations per split or subject")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    results = []
    for check in (check_mat_files, check_biwi_files):
        with tempfile.TemporaryDirectory(prefix="stoker-pose-") as name:
            results.append(check(args, pathlib.Path(name)))
    print("pose_files: " + ("all read back exactly" if all(results) else "NOT all read back exactly"))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
