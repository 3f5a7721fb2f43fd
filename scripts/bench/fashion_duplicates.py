#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `train audit` finds the known duplicates of Fashion-MNIST (Debian package dataset-fashion-mnist).

    scripts/bench/fashion_duplicates.py --train build/release/apps/train

Equal images: issue 44 of zalandoresearch/fashion-mnist names pairs of the first files that were published; the files of today have
other images in their place, so these are put back: of each pair the second becomes the first. Near ones: every pair of the
70,000 images is compared, by the root mean square of the differences of its pixels. Needs NumPy.
"""
import argparse
import gzip
import itertools
import json
import pathlib
import subprocess
import tempfile

import numpy as np

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES = {"train": "train-images-idx3-ubyte.gz", "t10k": "t10k-images-idx3-ubyte.gz"}
HEAD = 16  # bytes of an IDX file of images
PIXELS = 28 * 28
WITHIN_TRAINING = [
    (601, 39865), (831, 24228), (1826, 23718), (2024, 53883), (4974, 6293), (5520, 49165), (5790, 11845), (5822, 33399), (6139, 37731),
    (6280, 41036), (8485, 31238), (8841, 28184), (12571, 56657), (14096, 32343), (14710, 22159), (15587, 28635), (19308, 20114),
    (19668, 21571), (19760, 39489), (19888, 24443), (21072, 32800), (22852, 28789), (23052, 57107), (23413, 33731), (24785, 46015),
    (25297, 40077), (25629, 49588), (26314, 49351), (27045, 40033), (27421, 31627), (32113, 38337), (32300, 33730), (32303, 56840),
    (32888, 41918), (32922, 54584), (36634, 39841), (38261, 41877), (42756, 53842), (46667, 57724), (46782, 54829), (47929, 54185),
    (48480, 59607), (48955, 51368)]
WITHIN_TEST = [(6334, 8569)]
ACROSS = [(3763, 7243), (4944, 7781), (6168, 9227), (12404, 4037), (15943, 6659)]  # training, test; ten in all


def audited(train, folder):
    """Pairs of samples that one group holds, exact or not, by their index in both splits together."""
    done = subprocess.run([train, "audit", str(folder), "--json"], capture_output=True, text=True, check=True)
    audit = json.loads(done.stdout)
    begin = {split["name"]: sum(of["samples"] for of in audit["splits"][:i]) for i, split in enumerate(audit["splits"])}
    equal, pairs = set(), set()
    for group in audit["duplicates"]:
        members = sorted(begin[sample["split"]] + sample["index"] for sample in group["samples"])
        pairs.update(itertools.combinations(members, 2))
        if group["exact"]:
            equal.update(itertools.combinations(members, 2))
    return equal, pairs, len(audit["duplicates"]), sum(group["across_splits"] for group in audit["duplicates"])


def close_pairs(images, most):
    """Pairs below `most` grey levels of root mean square, with it; all of them are compared."""
    values = images.reshape(len(images), PIXELS).astype(np.float32)
    squares = (values * values).sum(1)
    found = {}
    block = 2000
    for begin in range(0, len(values), block):
        rows = values[begin:begin + block]
        distances = squares[begin:begin + block, None] + squares[None, begin:] - 2 * rows @ values[begin:].T
        for a, b in zip(*np.nonzero(distances < PIXELS * (most + 1) ** 2)):
            if a >= b:
                continue
            x, y = int(begin + a), int(begin + b)
            exact = float(np.sqrt(((images[x].astype(int) - images[y].astype(int)) ** 2).mean()))  # float32 is not enough above
            if exact <= most:
                found[x, y] = exact
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--equal-only", action="store_true", help="skip the comparison of all pairs, which takes minutes")
    args = parser.parse_args()
    raw = {split: bytearray(gzip.decompress((DATA / name).read_bytes())) for split, name in IMAGES.items()}
    images = {split: np.frombuffer(content, np.uint8)[HEAD:].reshape(-1, PIXELS) for split, content in raw.items()}
    both = np.concatenate([images["train"], images["t10k"]])
    offset = len(images["train"])
    print(f"{len(both)} images, {len(np.unique(both, axis=0))} different ones", flush=True)
    if not args.equal_only:
        _, pairs, groups, across = audited(args.train, DATA)
        close = close_pairs(both, 8)
        print(f"as they are: {groups} groups, {across} of them across training and test")
        for most in (5, 8):
            wanted = [pair for pair, distance in close.items() if distance <= most]
            print(f"pairs that differ by at most {most} grey levels: {sum(pair in pairs for pair in wanted)} of {len(wanted)} found",
                  flush=True)
    known = WITHIN_TRAINING + [(offset + a, offset + b) for a, b in WITHIN_TEST] + [(a, offset + b) for a, b in ACROSS]
    for a, b in known:
        split, at = ("train", b) if b < offset else ("t10k", b - offset)
        raw[split][HEAD + PIXELS * at:HEAD + PIXELS * (at + 1)] = both[a].tobytes()
    with tempfile.TemporaryDirectory(prefix="stoker-fashion-") as name:
        folder = pathlib.Path(name)
        for path in DATA.glob("*labels*.gz"):
            (folder / path.name).symlink_to(path)
        for split, content in raw.items():
            (folder / IMAGES[split]).write_bytes(gzip.compress(bytes(content), 1))
        equal = audited(args.train, folder)[0]
    hits = sum(pair in equal for pair in known)
    print(f"known pairs, put back: {hits} of {len(known)} found, and {len(equal) - hits} other pairs of equal images")
    raise SystemExit(0 if hits == len(known) and len(equal) == hits else 1)


if __name__ == "__main__":
    main()
