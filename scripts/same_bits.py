#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains five short runs with two versions of the program and compares what they leave: model.safetensors and
summary.csv, less its clock columns and those of metrics that only one of them has, must be the same bytes. For changes that must not change what is trained.

    scripts/same_bits.py --before OLD/train --after build/release/apps/train
    scripts/same_bits.py --before OLD/train --after build/release/apps/train --to-before=--no-OLD -- --no-NEW

Options after `--` are given to the second program alone: what the first one did without being asked. `--to-before` is for
the first one alone, once for each word: what the second one no longer does, and may no longer have an option for.
Needs NumPy, OpenCV and h5py for the synthetic data. Ends with 1 when a run differs.
"""
import argparse
import csv
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import kill_anywhere
import made_idx

HERE = pathlib.Path(__file__).resolve().parent
COMMON = ["--num-workers", "2", "--threads", "2", "--no-report", "--resume", "none", "--no-plan-check"]


def make(script, *arguments):
    subprocess.run([sys.executable, str(HERE / "make_data" / script), *map(str, arguments)], check=True,
                   stdout=subprocess.DEVNULL)


def runs(folder):
    """Name -> options, on data made below `folder`."""
    idx = folder / "idx"
    idx.mkdir()
    made_idx.write_idx(idx, "train", 1000, side=28, seed=1)
    made_idx.write_idx(idx, "t10k", 200, side=28, seed=2)
    make("clips.py", folder / "clips", "--train", "48", "--val", "16")
    make("heads.py", folder / "heads", "--layout", "biwi", "--people", "6", "--val-people", "3", "--images", "12")
    make("spectrograms.py", folder / "spectrograms", "--train", "2000", "--val", "400")
    return {
        "small_cnn": ["--data-dir", idx, "--model", "small_cnn", "--epochs", "2", "--batch-size", "64", "--lr", "0.05",
                      "--accumulation-steps", "2", "--mixup", "0.2", "--clip-grad", "1", "--no-amp", "--no-channels-last"],
        "resnet18 --amp and EMA": ["--data-dir", idx, "--model", "resnet18", "--epochs", "1", "--batch-size", "64", "--amp",
                                   "--channels-last", "--model-ema", "--lr", "0.05", "--max-updates", "12"],
        "s1": ["--preset", "s1_deepfake", "--data-dir", folder / "clips", "--img-size", "32", "--width", "8", "--train-crop",
               "none", "--color-jitter", "none", "--batch-size", "8", "--lr", "0.003", "--no-amp", "--no-channels-last", "--backbone",
               "small_cnn", "--lstm-channels", "8", "--epochs", "1", "--warmup-epochs", "0"],
        "s2": ["--preset", "s2_head_pose_biwi", "--data-dir", folder / "heads", "--img-size", "64", "--model", "small_cnn",
               "--no-amp", "--no-channels-last", "--batch-size", "16", "--epochs", "2", "--warmup-epochs", "0"],
        "s4": ["--preset", "s4_spectrogram_hdf5", "--data-dir", folder / "spectrograms", "--epochs", "2", "--warmup-epochs",
               "0", "--batch-size", "128", "--max-updates", "24", "--amp"],
    }


def trained(program, options, run_dir):
    ended = subprocess.run([str(program), *map(str, options), *COMMON, "--run-dir", str(run_dir)], capture_output=True,
                           text=True)
    if ended.returncode != 0:
        sys.exit(f"same_bits: {program} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    digests = kill_anywhere.digest(run_dir)
    del digests["summary.csv"]
    with open(run_dir / "summary.csv", newline="") as file:
        return digests, list(csv.DictReader(file))


def common_columns(rows, others):
    names = [name for name in rows[0] if name in others[0] and name not in kill_anywhere.CLOCK_COLUMNS]
    return [[row[name] for name in names] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=pathlib.Path, required=True)
    parser.add_argument("--after", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="the run of this name")
    parser.add_argument("--to-before", action="append", default=[], metavar="WORD", help="for the first program")
    parser.add_argument("options", nargs="*", help="for the second program")
    args = parser.parse_args()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, options in runs(folder).items():
            if args.only and name != args.only:
                continue
            stem = hashlib.sha256(name.encode()).hexdigest()[:8]
            before, old_rows = trained(args.before, [*options, *args.to_before], folder / f"{stem}-before")
            after, new_rows = trained(args.after, [*options, *args.options], folder / f"{stem}-after")
            before["summary.csv"] = common_columns(old_rows, new_rows)
            after["summary.csv"] = common_columns(new_rows, old_rows)
            same = before == after
            differ += not same
            what = "the same bytes" if same else "DIFFERENT: " + ", ".join(k for k in before if before[k] != after.get(k))
            print(f"{name}: {what} ({before['model.safetensors'][:16]})", flush=True)
    print(f"same_bits: {differ} differ" if differ else "same_bits: all runs are the same bytes")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
