#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants causes of divergence and of spikes in runs, and asks `train blame` for them.

    scripts/prove_blame.py --train build/release/apps/train --trials 10

Planted are in turn: a learning rate that jumps when the run is resumed, and an outlier among the targets of a regression. The
update is that of the jump, or the one that saw the sample, which replaying one update after the other finds.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import audited_runs as runs
import made_images

OPTIONS = ["--digest-every", "1", "--save-every", "10u", "--report-every", "1u", "--sched", "constant"]


def make_regression(folder, rng, outlier):
    (folder / "images").mkdir(parents=True)
    for split, count in (("train", 144), ("val", 12)):
        lines = ["path,brightness"]
        for i in range(count):
            value = rng.random()
            name = f"images/{split}-{i:03}.png"
            (folder / name).write_bytes(made_images.png(12, made_images.noise(rng, 12, int(120 * value))))
            lines.append(f"{name},{1000 if split == 'train' and i == outlier else value:.4f}")
        (folder / f"{split}.csv").write_text("".join(line + "\n" for line in lines))
    return f"images/train-{outlier:03}.png"


def first_update_with(train, run, name):
    """The update of the first epoch that saw this sample."""
    for update in sorted(runs.recorded(run)):
        said, _, _ = runs.ask(train, ["replay", run, "--update", update, "--output", run / "out"], may_fail=True)
        written = json.loads((run / "out" / "replay.json").read_text()) if said is None else said
        if any(sample["name"] == name for batch in written["batches"] for sample in batch["samples"]):
            return update
    sys.exit(f"prove_blame: no update saw {name}")


def outlier_trial(train, work, rng, number):
    data, run = work / "data", work / "run"
    name = make_regression(data, rng, rng.randrange(144))
    options = [*OPTIONS, "--epochs", "1", "--task", "regression", "--target-mean", "0", "--target-scale", "1", "--seed",
               str(number), "--lr", "1e-4", "--loss", "l2"]
    runs.complete(train, data, run, options)
    said, _, _ = runs.ask(train, ["blame", run])
    at = first_update_with(train, run, name)
    found = said["found"] or {"update": None, "samples": [], "layer": None}
    is_named = any(sample["name"] == name for sample in found["samples"])
    return f"target of {name}", at, found, is_named


def jump_trial(train, work, rng, number):
    data, run = work / "data", work / "run"
    runs.make_images(data, number, train=240)
    at = rng.randrange(22, 38)
    options = [*OPTIONS, "--epochs", "4", "--seed", str(number)]
    runs.complete(train, data, run, [*options, "--max-updates", str(at)])
    subprocess.run(runs.command(train, data, run, [*options, "--lr", "1e12", "--override-resume"]), capture_output=True,
                   check=False)
    said, _, _ = runs.ask(train, ["blame", run])
    found = said["found"] or {"update": None, "samples": [], "layer": None, "cause": ""}
    return f"learning rate from update {at + 1} on", at + 1, found, "learning rate" in found["cause"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    updates, named = 0, 0
    for number in range(args.trials):
        with tempfile.TemporaryDirectory(prefix="stoker-blame-") as folder:
            trial = (jump_trial, outlier_trial)[number % 2]
            what, at, found, is_named = trial(args.train, pathlib.Path(folder), rng, number)
            updates += found["update"] == at
            named += is_named
            print(f"{number:2} {what}: at {at}, named {found['update']}, {found.get('cause')} {found['layer']}", flush=True)
    print(f"update right {updates} of {args.trials}, cause or sample right {named} of {args.trials}")
    sys.exit(0 if updates == args.trials and 10 * named >= 9 * args.trials else 1)


if __name__ == "__main__":
    main()
