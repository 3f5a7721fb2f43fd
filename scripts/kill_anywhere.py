#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kills training with SIGKILL at random moments, runs the same command again until it ends, and compares the
result with a run that was never interrupted: weights, optimizer state and summary.csv (less its clock columns)
must be identical, bit for bit.

    scripts/kill_anywhere.py --train build/release/apps/train --trials 50

Options after `--` are given to `train`; without any, a tiny network is trained on images made here.
"""
import argparse
import csv
import hashlib
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import made_idx

CLOCK_COLUMNS = {"train_seconds", "eval_seconds", "images_per_second", "data_wait_share",
                 "update_seconds", "update_p95_seconds", "update_max_seconds"}


def tiny_options(folder):
    made_idx.write_idx(folder, "train", 500, side=12, seed=1)
    made_idx.write_idx(folder, "t10k", 120, side=12, seed=2)
    return ["--data-dir", str(folder), "--epochs", "12", "--batch-size", "16", "--accumulation-steps", "2",
            "--model", "small_cnn", "--width", "8", "--num-workers", "2", "--threads", "1", "--save-every", "5u",
            "--model-ema", "--lr", "0.05", "--report-every", "3u", "--rand-augment", "1,9", "--color-jitter", "0.4",
            "--gaussian-noise", "0.02", "--random-erasing", "0.25", "--mixup", "0.2", "--cutmix", "1"]


def digest(run_dir):
    """What must not depend on interruptions: name -> SHA-256."""
    last = run_dir / "checkpoints" / "last"
    result = {name: hashlib.sha256((last / name).read_bytes()).hexdigest()
              for name in ("model.safetensors", "model_ema.safetensors", "optimizer.safetensors")
              if (last / name).exists()}
    with open(run_dir / "summary.csv", newline="") as file:
        rows = [{key: value for key, value in row.items() if key not in CLOCK_COLUMNS} for row in csv.DictReader(file)]
    result["summary.csv"] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return result


def start(train, options, run_dir):
    return subprocess.Popen([train, *options, "--run-dir", str(run_dir)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def wait_for_success(process, run_dir, seconds):
    _, errors = process.communicate(timeout=seconds)
    if process.returncode != 0:
        sys.exit(f"kill_anywhere: training in {run_dir} ended with {process.returncode}:\n{errors}")


def complete(train, options, run_dir):
    wait_for_success(start(train, options, run_dir), run_dir, 600)


def is_killed(train, options, run_dir, seconds):
    """Starts training and kills it after `seconds`; False when it had ended by then."""
    process = start(train, options, run_dir)
    try:
        wait_for_success(process, run_dir, seconds)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--trials", type=int, default=50, help="runs that are each killed while they train")
    parser.add_argument("--kills-per-trial", type=int, default=1, help="times that each is killed before it may end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*", help="options of train, after --")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="stoker-kill-") as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        options = args.options or tiny_options(folder / "data")
        complete(args.train, options, folder / "unbroken")
        wanted = digest(folder / "unbroken")
        begin = time.monotonic()  # of a second run: the first reads program and libraries from disk
        complete(args.train, options, folder / "timed")
        seconds = time.monotonic() - begin
        print(f"unbroken run: {seconds:.1f} s", flush=True)

        same = killed = 0
        for trial in range(args.trials):
            run_dir = folder / f"trial-{trial}"
            kills = 0
            while kills < args.kills_per_trial:
                if is_killed(args.train, options, run_dir, rng.uniform(0, seconds)):
                    kills += 1
                else:  # it had ended: this trial begins anew
                    shutil.rmtree(run_dir)
                    kills = 0
            killed += kills
            complete(args.train, options, run_dir)
            got = digest(run_dir)
            differing = [key for key in wanted if got.get(key) != wanted[key]]
            same += not differing
            if differing:
                print(f"trial {trial}: differs in {', '.join(differing)}", flush=True)
            shutil.rmtree(run_dir)
        print(f"{killed} kills in {args.trials} trials: {same} of {args.trials} identical to the unbroken run")
        return 0 if same == args.trials else 1


if __name__ == "__main__":
    sys.exit(main())
