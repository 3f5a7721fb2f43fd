#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ends training at random moments, runs the same command again until it is done, and compares the result with a run that
was never interrupted: weights, optimizer state, summary.csv (less its clock columns) and the predictions of the best
checkpoint must be identical, bit for bit.

    scripts/kill_anywhere.py --train build/release/apps/train --trials 50
    scripts/kill_anywhere.py --train build/release/apps/train --trials 200 --signal TERM

With --signal KILL the process is gone at once. With --signal TERM it must end with 75 and a checkpoint that verifies and
holds the update that the last line names, or with 0 when it was done by then. Only a signal that comes before training
begins may leave no checkpoint, when there is nothing to save. Reports come every second, and what examines the run
between updates is on, as always.

Options after `--` are given to `train`; unless --data-dir is among them, besides those with which a tiny network is
trained on images made here: `-- --val-every 7u --sched plateau --plateau 1 --keep-every 20u --average-last 3`.
"""
import argparse
import csv
import hashlib
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import made_idx

CLOCK_COLUMNS = {"train_seconds", "eval_seconds", "images_per_second", "data_wait_share",
                 "update_seconds", "update_p95_seconds", "update_max_seconds", "exchange_share"}


def tiny_options(folder, seconds_between_reports):
    """A short run for SIGKILL; for SIGTERM one of some 10 s, in which reports every second examine it several times."""
    is_long = seconds_between_reports > 0
    made_idx.write_idx(folder, "train", 2000 if is_long else 500, side=28 if is_long else 12, seed=1)
    made_idx.write_idx(folder, "t10k", 400 if is_long else 120, side=28 if is_long else 12, seed=2)
    return ["--data-dir", str(folder), "--epochs", "6" if is_long else "12", "--batch-size", "16",
            "--accumulation-steps", "2", "--model", "small_cnn", "--width", "24" if is_long else "8",
            "--num-workers", "2", "--threads", "1", "--no-amp", "--save-every", "never" if is_long else "5u",
            "--report-every", f"{seconds_between_reports}s" if is_long else "3u", "--model-ema", "--lr", "0.05",
            "--aa", "rand-m3-n1", "--color-jitter", "0.4", "--gaussian-noise", "0.02", "--random-erasing", "0.25",
            "--mixup", "0.2", "--cutmix", "1"]


def digest(run_dir):
    """Results that must not depend on interruptions: name -> SHA-256."""
    last = run_dir / "checkpoints" / "last"
    names = ("model.safetensors", "model_ema.safetensors", "optimizer.safetensors", "../best/model.safetensors",
             "../average/model.safetensors")
    result = {name: hashlib.sha256((last.resolve() / name).read_bytes()).hexdigest()
              for name in names if (last.resolve() / name).exists()}
    with open(run_dir / "summary.csv", newline="") as file:
        rows = [{key: value for key, value in row.items() if key not in CLOCK_COLUMNS} for row in csv.DictReader(file)]
    result["summary.csv"] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return result


def digest_with_predictions(train, run_dir):
    """digest(), and the predictions of the best checkpoint."""
    result = digest(run_dir)
    predictions = run_dir / "predictions"
    subprocess.run([train, "eval", str(run_dir), "-o", str(predictions), "--num-workers", "1", "--threads", "1"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    for path in sorted(predictions.glob("*.csv")):
        result[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
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


def fail(run_dir, code, errors, what):
    log = run_dir / "train.log"
    text = log.read_text(errors="replace")[-4000:] if log.exists() else ""
    sys.exit(f"kill_anywhere: {what}; it ended with {code}:\n{errors}\n{text}")


def begins(run_dir):
    """How often training has begun there."""
    events = run_dir / "metrics.jsonl"
    lines = events.read_text().splitlines() if events.exists() else []
    return sum('"event":"start"' in line.replace(" ", "") or '"event":"resume"' in line.replace(" ", "") for line in lines)


def check_ended_in_order(train, run_dir, code, errors, begins_before):
    """After SIGTERM: 0, or 75 with a checkpoint that verifies and holds the update of the last line. `begins_before` is
    what begins() was when the command was started."""
    if code == 0:
        return
    if code == -signal.SIGTERM and not run_dir.exists():
        return  # before its handlers: nothing had been written either
    last_line = errors.strip().splitlines()[-1] if errors.strip() else ""
    named = re.fullmatch(r"train: exit=75 reason=signal:TERM(?: update=(\d+)(?: metric=\S+ value=\S+)? checkpoint=(.*))?", last_line)
    if code != 75 or not named:
        fail(run_dir, code, errors, "a run that was stopped did not end with 75")
    if named[2] is None:
        if begins(run_dir) > begins_before:
            fail(run_dir, code, errors, "a run that had begun to train was stopped without a checkpoint")
        return
    checkpoint = pathlib.Path(named[2])
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    state = json.loads((checkpoint / "state.json").read_text())["train"]
    if state["updates"] != int(named[1]):
        fail(run_dir, code, errors, f"{checkpoint} holds update {state['updates']}, not {named[1]}")
    for name, record in manifest["files"].items():
        if (checkpoint / name).stat().st_size != record["bytes"]:
            fail(run_dir, code, errors, f"{checkpoint / name} differs from its manifest")
    # The program itself compares every digest before it uses a checkpoint.
    verified = subprocess.run([train, "eval", str(checkpoint), "--num-workers", "1", "--threads", "1"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if verified.returncode != 0:
        fail(run_dir, code, errors, f"{checkpoint} does not verify:\n{verified.stderr}")


def is_ended(train, options, run_dir, seconds, with_term):
    """Starts training and ends it after `seconds` by SIGTERM or SIGKILL; False when it was done before."""
    begins_before = begins(run_dir)
    process = start(train, options, run_dir)
    try:
        wait_for_success(process, run_dir, seconds)
        return False
    except subprocess.TimeoutExpired:
        pass
    if not with_term:
        process.kill()
        process.communicate()
        return True
    process.terminate()
    _, errors = process.communicate(timeout=120)
    check_ended_in_order(train, run_dir, process.returncode, errors, begins_before)
    return process.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--trials", type=int, default=50, help="runs that are each killed while they train")
    parser.add_argument("--kills-per-trial", type=int, default=1, help="times that each is killed before it may end")
    parser.add_argument("--signal", choices=["KILL", "TERM"], default="KILL", help="what ends them")
    parser.add_argument("--short", action="store_true", help="short runs with --signal TERM too, reports every 3 updates")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*", help="options of train, after --")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="stoker-kill-") as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        options = args.options
        if "--data-dir" not in options:
            options = tiny_options(folder / "data", 1 if args.signal == "TERM" and not args.short else 0) + options
        complete(args.train, options, folder / "unbroken")
        wanted = digest_with_predictions(args.train, folder / "unbroken")
        begin = time.monotonic()  # of a second run: the first reads program and libraries from disk
        complete(args.train, options, folder / "timed")
        seconds = time.monotonic() - begin
        print(f"unbroken run: {seconds:.1f} s", flush=True)

        same = killed = 0
        for trial in range(args.trials):
            run_dir = folder / f"trial-{trial}"
            kills = 0
            while kills < args.kills_per_trial:
                if is_ended(args.train, options, run_dir, rng.uniform(0, seconds), args.signal == "TERM"):
                    kills += 1
                else:  # it had ended: this trial begins anew
                    shutil.rmtree(run_dir)
                    kills = 0
            killed += kills
            complete(args.train, options, run_dir)
            got = digest_with_predictions(args.train, run_dir)
            differing = [key for key in wanted if got.get(key) != wanted[key]]
            same += not differing
            if differing:
                print(f"trial {trial}: differs in {', '.join(differing)}", flush=True)
            shutil.rmtree(run_dir)
        print(f"{killed} times SIG{args.signal} in {args.trials} trials: {same} of {args.trials} identical to the unbroken run")
        return 0 if same == args.trials else 1


if __name__ == "__main__":
    sys.exit(main())
