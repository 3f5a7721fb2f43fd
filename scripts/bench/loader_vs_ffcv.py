#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our loader against FFCV's on the same images, in turn: from JPEGs, and from decoded pixels.

    scripts/bench/loader_vs_ffcv.py --data DIR --rounds 5

DIR is a flat folder of images. FFCV must be importable (it is in no Debian package: build it from its repository with
python3-numba, libturbojpeg0-dev and libopencv-dev). It reads files of its own, which are written first: mode `jpg`
keeps every image as a JPEG of quality 90 in its full size, mode `raw` as pixels. Both loaders crop at random, resize
to --size, flip, and hand over uint8 in batches; both have the same workers; the first epoch of each run warms up.
FFCV `raw` stands against `train bench loader --cache ram`.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

WRITE_MODES = {"jpg": "none", "raw": "ram"}  # FFCV's way to store, and our cache tier that answers it


class LooseImages:
    """(image, 0) for every file of a folder."""

    def __init__(self, folder):
        self.paths = sorted(path for path in pathlib.Path(folder).iterdir() if path.is_file())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        from PIL import Image
        return Image.open(self.paths[index]).convert("RGB"), 0


def write_dataset(images, path, mode):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    largest_image = 1 << 26  # bytes of pixels
    field = RGBImageField(write_mode=mode, jpeg_quality=90) if mode == "jpg" else RGBImageField(write_mode=mode)
    DatasetWriter(str(path), {"image": field, "label": IntField()}, num_workers=1, page_size=largest_image).from_indexed_dataset(
        LooseImages(images))


def measure_ffcv(path, args):
    """images/s of each epoch after the first."""
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip, ToTensor
    loader = Loader(str(path), batch_size=args.batch_size, num_workers=args.workers, order=OrderOption.RANDOM,
                    os_cache=True, drop_last=False,
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((args.size, args.size)),
                                         RandomHorizontalFlip(), ToTensor()],
                               "label": [IntDecoder(), ToTensor()]})
    rates = []
    for _ in range(args.epochs):
        begin, images = time.perf_counter(), 0
        for image, _ in loader:
            images += len(image)
        rates.append(images / (time.perf_counter() - begin))
    return rates[1:]


def in_own_process(args, mode, path):
    """FFCV keeps threads and memory for as long as a process lives, so each measurement gets its own."""
    words = [sys.executable, __file__, "--data", str(args.data), "--measure", str(path), "--workers",
             str(args.workers), "--batch-size", str(args.batch_size), "--size", str(args.size), "--epochs",
             str(args.epochs)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"loader_vs_ffcv: FFCV {mode} ended with {done.returncode}")
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def measure_ours(args, cache):
    done = subprocess.run([args.train, "bench", "loader", "--json", "--data-dir", str(args.data), "--img-size",
                           str(args.size), "--train-crop", "random-resized", "--num-workers", str(args.workers),
                           "--batch-size", str(args.batch_size), "--cache", cache],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"loader_vs_ffcv: train ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)["images_per_second"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--train", default="build/release/apps/train", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=10, help="of FFCV, the first included")
    parser.add_argument("--measure", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure_ffcv(args.measure, args)))
        return
    with tempfile.TemporaryDirectory(prefix="stoker-ffcv-") as scratch:
        files = {mode: pathlib.Path(scratch) / f"{mode}.beton" for mode in WRITE_MODES}
        for mode, path in files.items():
            write_dataset(args.data, path, mode)
        pairs = {mode: [] for mode in WRITE_MODES}
        for number in range(args.rounds):
            for mode, cache in WRITE_MODES.items():
                ours, peer = measure_ours(args, cache), in_own_process(args, mode, files[mode])
                pairs[mode].append((ours, peer))
                print(f"round {number + 1}: --cache {cache} {ours:.0f} images/s, FFCV {mode} {peer:.0f}, "
                      f"{ours / peer:.2f} times", flush=True)
    for mode, figures in pairs.items():
        ratios = [ours / peer for ours, peer in figures]
        print(f"FFCV {mode}: median {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f}); ours "
              f"{statistics.median(ours for ours, _ in figures):.0f}, FFCV "
              f"{statistics.median(peer for _, peer in figures):.0f} images/s")


if __name__ == "__main__":
    main()
