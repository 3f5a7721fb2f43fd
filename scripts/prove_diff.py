#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one difference in one of two runs that are else the same, and compares what `train inspect diff` reports.

    scripts/prove_diff.py --train build/release/apps/train --pairs 20

Planted are in turn: a label, a pixel of a file, the learning rate, the number of threads, two images that have changed places, a
weight in the checkpoint of update 37. Both runs record the digests of every update, which show where they really diverge; for a
planted weight that is the update of its checkpoint. Then all records but those of every 20th update are taken out, so that the
command has to compute the updates in between again.
"""
import argparse
import pathlib
import random
import sys
import tempfile

import audited_runs as runs
import made_images

OPTIONS = ["--epochs", "8", "--digest-every", "1", "--save-every", "15u", "--dataset", "csv", "--mixup", "0.2"]
PLANTED_UPDATE = 37


def make_csv(folder, seed):
    rng = random.Random(seed)
    (folder / "images").mkdir(parents=True)
    for split, count in (("train", 96), ("val", 24)):
        lines = ["path,label"]
        for i in range(count):
            label = rng.randrange(3)
            name = f"images/{split}-{i:03}.png"
            (folder / name).write_bytes(made_images.png(12, made_images.noise(rng, 12, 40 * label)))
            lines.append(f"{name},{label}")
        (folder / f"{split}.csv").write_text("".join(line + "\n" for line in lines))


def images_of(data):
    return sorted((data / "images").glob("train-*.png"))


def plant_label(data, rng):
    path = data / "train.csv"
    lines = path.read_text().splitlines()
    at = rng.randrange(1, len(lines))
    name, label = lines[at].split(",")
    lines[at] = f"{name},{(int(label) + 1) % 3}"
    path.write_text("".join(line + "\n" for line in lines))
    return f"label of {name}"


def plant_pixel(data, rng):
    path = rng.choice(images_of(data))
    path.write_bytes(made_images.png(12, made_images.noise(random.Random(rng.random()), 12, 0)))
    return f"another {path.name}"


def plant_swap(data, rng):
    a, b = rng.sample(images_of(data), 2)
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)
    return f"{a.name} and {b.name} swapped"


def first_difference(a, b):
    of_a, of_b = runs.recorded(a), runs.recorded(b)
    return min((update for update in of_a if update in of_b and of_a[update] != of_b[update]), default=0)


def make_pair(train, work, number, kind, rng):
    """Two runs, what differs, and the update at which they part."""
    data_a, data_b, a, b = work / "data-a", work / "data-b", work / "a", work / "b"
    make_csv(data_a, number)
    make_csv(data_b, number)
    options = [*OPTIONS, "--seed", str(number)]
    if kind == "threads":
        options += ["--width", "16", "--img-size", "24"]
    runs.complete(train, data_a, a, options)
    if kind in ("label", "pixel", "swap"):
        what = {"label": plant_label, "pixel": plant_pixel, "swap": plant_swap}[kind](data_b, rng)
        runs.complete(train, data_b, b, options)
    elif kind == "lr":
        what = "--lr 0.05000001"
        runs.complete(train, data_b, b, [*options, "--lr", "0.05000001"])
    elif kind == "threads":
        what = "--threads 2"
        runs.complete(train, data_b, b, [*options, "--threads", "2"])
    else:
        runs.complete(train, data_b, b, [*options, "--max-updates", str(PLANTED_UPDATE)])
        what = f"{runs.change_weight(runs.checkpoints(b)[-1], rng, bit=20)} after update {PLANTED_UPDATE}"
        runs.complete(train, data_b, b, options)
        return a, b, what, PLANTED_UPDATE
    return a, b, what, first_difference(a, b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    kinds = ["label", "pixel", "lr", "threads", "swap", "weight"]
    right = 0
    for number in range(args.pairs):
        with tempfile.TemporaryDirectory(prefix="stoker-diff-") as folder:
            a, b, what, parts_at = make_pair(args.train, pathlib.Path(folder), number, kinds[number % len(kinds)], rng)
            if parts_at == 0:
                sys.exit(f"prove_diff: {what} changes nothing")
            for run in (a, b):
                runs.forget_records(run, keep=lambda update: update % 20 == 0)
            difference, _, _ = runs.ask(args.train, ["inspect", "diff", a, b])
            parted = difference["parted"] or {"update": None, "tensor": None, "what": []}
            right += parted["update"] == parts_at
            print(f"{number:2} {what}: part at {parts_at}, named {parted['update']} ({parted['tensor']}); "
                  f"{'; '.join(parted['what'])[:160]}", flush=True)
    print(f"{right} of {args.pairs} right")
    sys.exit(0 if right == args.pairs else 1)


if __name__ == "__main__":
    main()
