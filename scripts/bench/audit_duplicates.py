#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `train audit` on copies that are planted: takes real images, writes some of them a second time (the same
pixels in another format, resized, recompressed, mirrored, cropped, or several of these), audits the folder and prints
which copies were found and which pairs are none.

    scripts/bench/audit_duplicates.py --images '/data/cifar10/*/*/*.jpg' [--count 5000] [--copies 2000]

A pair of two different originals counts as wrong, although photographs repeat in real data sets; --show FILE draws these
pairs side by side, so that somebody can look. --tiles cuts each image into tiles, which are different pictures by
construction. Needs Pillow (python3-pil)."""
import argparse
import collections
import glob
import io
import itertools
import json
import pathlib
import random
import subprocess
import tempfile

from PIL import Image


def recoded(image, quality):
    content = io.BytesIO()
    image.save(content, "JPEG", quality=quality)
    return Image.open(content).convert("RGB")


def part(image, left, top, width, height):
    return image.crop((left, top, left + width, top + height))


class Copies:
    """One method per kind of copy; each takes an image and returns another one."""

    def __init__(self, rng):
        self.rng = rng

    def exact(self, image):
        return image

    def resized(self, image):
        factor = self.rng.choice([0.5, 0.75, 1.25, 2.0])
        filters = [Image.BILINEAR, Image.BICUBIC, Image.LANCZOS]
        return image.resize((max(1, round(image.width * factor)), max(1, round(image.height * factor))),
                            self.rng.choice(filters))

    def recompressed(self, image):
        return recoded(image, self.rng.choice([30, 50, 75, 90]))

    def mirrored(self, image):
        return image.transpose(Image.FLIP_LEFT_RIGHT)

    def cropped(self, image):
        """95 per cent of each side, from anywhere."""
        width, height = round(0.95 * image.width), round(0.95 * image.height)
        return part(image, self.rng.randint(0, image.width - width), self.rng.randint(0, image.height - height), width,
                    height)

    def cropped_all_around(self, image):
        """5 per cent less at each of the four borders."""
        x, y = max(1, round(0.05 * image.width)), max(1, round(0.05 * image.height))
        return part(image, x, y, image.width - 2 * x, image.height - 2 * y)

    def cropped_and_resized(self, image):
        return self.cropped(image).resize(image.size, Image.BICUBIC)

    def all_of_it(self, image):
        return recoded(self.resized(self.mirrored(self.cropped(image))), 75)


KINDS = ["exact", "resized", "recompressed", "mirrored", "cropped", "cropped_all_around", "cropped_and_resized",
         "all_of_it"]


def original(folder, index):
    """Two classes, since a data set has at least two."""
    return folder / "train" / ("odd" if index % 2 else "even") / f"{index:05}.png"


def tiles_of(files, side):
    """(name, image) of every whole tile of `side` by `side` pixels."""
    for file in files:
        image = Image.open(file).convert("RGB")
        for top in range(0, image.height - side + 1, side):
            for left in range(0, image.width - side + 1, side):
                yield f"{file}+{left}+{top}", part(image, left, top, side, side)


def write_data(folder, files, copies, rng):
    """Originals in train/, copies in val/; returns the kind of each copy by its file name."""
    kinds = {}
    maker = Copies(rng)
    for split in ("train", "val"):
        for name in ("even", "odd"):
            (folder / split / name).mkdir(parents=True)
    for index, (_, image) in enumerate(files):
        image.save(original(folder, index))
        if index < copies:
            kind = KINDS[index % len(KINDS)]
            name = f"{index:05}.png" if index % 2 else f"{index:05}.bmp"
            getattr(maker, kind)(image).save(folder / "val" / original(folder, index).parent.name / name)
            kinds[index] = kind
    return kinds


def origin_of(sample):
    return int(pathlib.Path(sample["name"]).stem)


def draw(pairs, folder, path):
    side = 128
    columns = 8
    sheet = Image.new("RGB", (columns * (2 * side + 8), (len(pairs) + columns - 1) // columns * (side + 8)), "white")
    for place, pair in enumerate(pairs):
        for k, index in enumerate(pair):
            image = Image.open(original(folder, index)).resize((side, side), Image.NEAREST)
            sheet.paste(image, (place % columns * (2 * side + 8) + k * side, place // columns * (side + 8)))
    sheet.save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--images", required=True, help="pattern of image files, quoted")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--copies", type=int, default=2000)
    parser.add_argument("--tiles", type=int, default=0, help="pixels of a side; 0: whole images")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", help="PNG of the pairs that are none")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    files = sorted(glob.glob(arguments.images, recursive=True))
    rng.shuffle(files)
    if arguments.tiles:
        files = list(tiles_of(files, arguments.tiles))
        rng.shuffle(files)
    else:
        files = [(file, Image.open(file).convert("RGB")) for file in files[:arguments.count]]
    files = files[:arguments.count]
    names = [name for name, _ in files]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        kinds = write_data(folder, files, min(arguments.copies, len(files)), rng)
        done = subprocess.run([arguments.train, "audit", str(folder), "--json"], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        right, wrong = set(), set()
        for group in found["duplicates"]:
            for a, b in itertools.combinations(group["samples"], 2):
                if origin_of(a) == origin_of(b):
                    right.add(origin_of(a))
                else:
                    wrong.add(tuple(sorted((origin_of(a), origin_of(b)))))
        planted, hits = collections.Counter(kinds.values()), collections.Counter(kinds[i] for i in right)
        print(f"{len(files)} originals, {len(kinds)} copies, seed {arguments.seed}; audit took {found['seconds']:.1f} s")
        for kind in KINDS:
            print(f"{kind:22} found {hits[kind]:5} of {planted[kind]:5}  {100 * hits[kind] / max(1, planted[kind]):6.2f} %")
        print(f"recall {100 * len(right) / len(kinds):.2f} %   precision "
              f"{100 * len(right) / max(1, len(right) + len(wrong)):.2f} % ({len(wrong)} pairs of different originals)")
        missed = sorted(set(kinds) - right)
        if missed:
            print("missed:", ", ".join(f"{names[i]} ({kinds[i]})" for i in missed[:10]))
        if wrong:
            print("pairs of different originals:")
            for a, b in sorted(wrong)[:40]:
                print(f"  {names[a]}  {names[b]}")
            if arguments.show:
                draw(sorted(wrong)[:64], folder, arguments.show)


if __name__ == "__main__":
    main()
