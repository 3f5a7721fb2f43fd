#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replays random past updates of runs and compares them with what was recorded while they trained: the digest of the images
that the network got, and of the weights after the update.

    scripts/prove_replay.py --train build/release/apps/train --updates 20

Three runs: one that is not interrupted, one that is killed with SIGKILL and resumed, and one that keeps two checkpoints only,
so that it is computed again from its beginning. All of them with mixup, CutMix, class-balanced sampling, random augmentation,
images that cannot be read, accumulation and a moving average. A digest of every update is recorded (--digest-every 1). The
pictures are compared, too: as many as the update had images, each a PNG.
"""
import argparse
import json
import pathlib
import random
import sys
import tempfile

import audited_runs as runs

OPTIONS = ["--epochs", "6", "--digest-every", "1", "--save-every", "5u", "--on-bad-image", "skip,10",
           "--mixup", "0.4", "--cutmix", "1", "--class-balanced", "--aa", "rand-m3-n1", "--random-erasing", "0.25",
           "--accumulation-steps", "2", "--model-ema", "--drop-rate", "0.2"]


def made_runs(train, work, rng):
    runs.make_images(work / "data", 1, torn=(5, 17, 40), shares=(4, 2, 1), train=240)
    plain, killed, short = work / "plain", work / "killed", work / "short"
    runs.complete(train, work / "data", plain, OPTIONS)
    kills = runs.complete_with_kills(train, work / "data", killed, OPTIONS, 3, rng)
    runs.complete(train, work / "data", short, [*OPTIONS, "--keep-last", "2", "--no-save-best"])
    print(f"three runs of {len(runs.recorded(plain))} updates; killed {kills} times: {killed.name}", flush=True)
    if kills == 0:
        sys.exit("prove_replay: no run was killed")
    return [plain, killed, short]


def is_replayed(train, run, update, folder):
    replayed, code, errors = runs.ask(train, ["inspect", "replay", run, "--update", update, "--output", folder], may_fail=True)
    if code != 0:
        print(f"{run.name} update {update}: ended with {code}: {errors}")
        return False
    weights, images = runs.recorded(run)[update]
    written = json.loads((folder / "replay.json").read_text())
    count = sum(len(batch["samples"]) for batch in replayed["batches"])
    pictures = list((folder / "images").iterdir())
    whole = all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    same = replayed["digests"] == {"images": images, "weights": weights} == written["digests"]
    if not (same and whole and len(pictures) == count > 0):
        print(f"{run.name} update {update}: recorded {images} {weights}, replayed {replayed['digests']}, {len(pictures)} pictures")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--updates", type=int, default=20, help="of each run")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    all_equal = True
    with tempfile.TemporaryDirectory(prefix="stoker-replay-") as folder:
        work = pathlib.Path(folder)
        for run in made_runs(args.train, work, rng):
            updates = rng.sample(sorted(runs.recorded(run)), args.updates)
            equal = sum(is_replayed(args.train, run, update, work / "out" / run.name / str(update)) for update in updates)
            print(f"{run.name}: {equal} of {len(updates)} updates equal the recording ({min(updates)} to {max(updates)})",
                  flush=True)
            all_equal = all_equal and equal == len(updates)
    sys.exit(0 if all_equal else 1)


if __name__ == "__main__":
    main()
