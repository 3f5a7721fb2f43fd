#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well `train audit --run` finds wrong labels: changes labels of Fashion-MNIST (Debian package
dataset-fashion-mnist) to another class drawn by chance, trains on them, and counts how many of them are among as many that look
most suspect.

    scripts/bench/label_errors.py --train build/release/apps/train
    scripts/bench/label_errors.py --wrong 5000 --seed 2 -- --epochs 5

Options after `--` are given to `train`; before them stands the preset, with a checkpoint kept of each epoch. Labels
that are wrong in the data set as it is count as mistakes of the audit.
"""
import argparse
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
CLASSES = 10
HEAD = 8  # bytes of an IDX file of labels


def run(words):
    ended = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def write_data(folder, count, rng):
    """Returns the changed labels: index, class before."""
    for path in DATA.glob("*.gz"):
        if not path.name.startswith("train-labels"):
            (folder / path.name).unlink(missing_ok=True)
            (folder / path.name).symlink_to(path)
    labels = bytearray(gzip.decompress((DATA / "train-labels-idx1-ubyte.gz").read_bytes()))
    changed = {}
    for index in rng.sample(range(len(labels) - HEAD), count):
        changed[index] = labels[HEAD + index]
        labels[HEAD + index] = (labels[HEAD + index] + rng.randrange(1, CLASSES)) % CLASSES
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(labels), 1))
    return changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--wrong", type=int, default=5000, help="labels to change")
    parser.add_argument("--least", type=float, default=80, help="per cent of them to find")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="for data and run, which are then kept (default: a temporary one)")
    parser.add_argument("options", nargs="*", help="options of train, after --")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-labels-") as name:
        folder = pathlib.Path(args.folder or name)
        (folder / "data").mkdir(parents=True, exist_ok=True)
        changed = write_data(folder / "data", args.wrong, random.Random(args.seed))
        run([args.train, "--preset", "fashion_mnist", "--data-dir", folder / "data", "--run-dir", folder / "run", "--save-every", "1e",
             "--keep-last", "100", "--seed", args.seed, "--quiet", *args.options])
        audit = json.loads(run([args.train, "audit", folder / "data", "--run", folder / "run", "--suspects", args.wrong, "--json"]))
    training = audit["suspect_labels"][0]
    order = [sample["index"] for sample in training["samples"]]
    looks_right = sum(sample["looks_like"] == str(changed[sample["index"]]) for sample in training["samples"]
                      if sample["index"] in changed)
    for first in (args.wrong // 10, args.wrong // 2, args.wrong):
        hits = sum(index in changed for index in order[:first])
        print(f"of the {first} most suspect, {hits} were changed ({100 * hits / first:.1f} %)")
    share = 100 * hits / args.wrong
    print(f"{args.wrong} of {training['judged']} labels changed, seed {args.seed}: {share:.1f} % of them among as many most suspect; of "
          f"{100 * looks_right / max(1, hits):.1f} % of these the true class is named; estimated wrong: {training['estimated_wrong']}")
    sys.exit(0 if share >= args.least else 1)


if __name__ == "__main__":
    main()
