#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that memory does not grow: neither with epochs nor with workers.

    scripts/check_memory.py --train build/release/apps/train
    scripts/check_memory.py --train build/release/apps/train --jpeg [--images FOLDER]

Without --jpeg it trains 40 epochs on 1,000 images with 1 and with 16 workers: 16 workers may cost at most 32 MB more, and
once all that a run makes is there, after epoch 10, there is no growth to the end. The least that is allocated in epochs 10 to 20,
20 to 30 and 30 to 40 is compared: a leak grows from each to the next, what is made once from one of them alone. Both times it
may be 0.03 MB (what a run remembers of its epochs). Resident memory, which also has the gaps that the allocator leaves, may
grow by 16 MB.

With --jpeg it runs `train bench loader` at batch 256 with 1, 2, 4, 8 and 16 workers on JPEGs, those of FOLDER or 96 made
ones of 500 x 375 pixels: each worker beyond the first may cost at most 2 MB.
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import made_idx

MEGABYTE = 1e6
MOST_PER_WORKER = 2  # MB
EPOCHS, SETTLED = 40, 10
MOST_GROWTH, MOST_GAPS = 0.03, 16  # MB: from ten epochs to the next; from epoch SETTLED to the last


def growth_of(allocated):
    """MB from ten epochs to the next ten, the lesser of two; `allocated`: MB after each epoch."""
    least = [min(allocated[begin - 1:begin + 10]) for begin in range(SETTLED, EPOCHS, 10)]
    return min(after - before for before, after in zip(least, least[1:]))


def memory_by_epoch(train, data, run_dir, workers):
    command = [train, "--data-dir", str(data), "--run-dir", str(run_dir), "--model", "small_cnn", "--width", "8", "--epochs", str(EPOCHS),
               "--num-workers", str(workers), "--threads", "1", "--no-amp", "--save-every", "10e", "--quiet", "--batch-size", "32"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    events = [json.loads(line) for line in open(run_dir / "metrics.jsonl")]
    epochs = [event for event in events if event["event"] == "epoch"]
    return [event["resident_bytes"] / MEGABYTE for event in epochs], [event["allocated_bytes"] / MEGABYTE for event in epochs]


def check_epochs(train, folder):
    good = True
    made_idx.write_idx(folder, "train", 1000, side=28, seed=1)
    made_idx.write_idx(folder, "t10k", 200, side=28, seed=2)
    last = {}
    for workers in (1, 16):
        resident, allocated = memory_by_epoch(train, folder, folder / f"run-{workers}", workers)
        growth, gaps = growth_of(allocated), resident[-1] - resident[SETTLED - 1]
        last[workers] = resident[-1]
        good = good and growth <= MOST_GROWTH and gaps <= MOST_GAPS
        print(f"{workers} workers: {allocated[SETTLED - 1]:.2f} MB allocated after epoch {SETTLED}, {allocated[-1]:.2f} MB after epoch {EPOCHS}; growth "
              f"in ten epochs {growth:.3f} MB (limit {MOST_GROWTH}); resident {resident[SETTLED - 1]:.1f} and {resident[-1]:.1f} MB: {gaps:.1f} MB "
              f"(limit {MOST_GAPS})")
    more = last[16] - last[1]
    print(f"16 workers cost {more:.1f} MB more than 1 (limit 32)")
    return good and more <= 32


def write_bmp(path, width, height, seed):
    """A 24-bit bitmap of soft waves and some noise: about as many bits per pixel as a photograph once it is a JPEG."""
    draw = random.Random(seed)
    noise = draw.randbytes(width * 3 + 256)
    rows = []
    for y in range(height):
        at = draw.randrange(256)
        rows.append(bytes((x * seed + y * 3 + noise[at + x] // 4) & 0xFF for x in range(width * 3)))
    stride_padding = b"\0" * (-width * 3 % 4)
    pixels = b"".join(row + stride_padding for row in rows)
    header = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    path.write_bytes(header + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835, 2835, 0, 0) + pixels)


def made_jpegs(train, folder):
    """Shards of JPEGs, made by `train pack` from bitmaps."""
    images = folder / "bitmaps" / "train" / "waves"
    images.mkdir(parents=True)
    for i in range(96):
        write_bmp(images / f"{i}.bmp", 500, 375, i + 1)
    subprocess.run([train, "pack", str(folder / "bitmaps"), str(folder / "shards"), "--quality", "90"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "shards"


def loader_peak(train, images, workers):
    command = [train, "bench", "loader", "--data-dir", str(images), "--num-workers", str(workers), "--threads", "1",
               "--batch-size", "256", "--json"]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    figures = json.loads(result.stdout)
    return figures["peak_rss_bytes"] / MEGABYTE, figures["images_per_second"]["median"]


def check_workers(train, images):
    first, _ = loader_peak(train, images, 1)
    print(f" 1 worker:  peak RSS {first:.1f} MB")
    good = True
    for workers in (2, 4, 8, 16):
        peak, rate = loader_peak(train, images, workers)
        each = (peak - first) / (workers - 1)
        good = good and each <= MOST_PER_WORKER
        print(f"{workers:2} workers: peak RSS {peak:.1f} MB, {each:.2f} MB for each beyond the first (limit {MOST_PER_WORKER}); "
              f"{rate:.0f} images/s")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--jpeg", action="store_true", help="workers on JPEGs instead of epochs on small images")
    parser.add_argument("--images", help="with --jpeg: a folder of JPEGs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-memory-") as name:
        folder = pathlib.Path(name)
        if not args.jpeg:
            return 0 if check_epochs(args.train, folder) else 1
        return 0 if check_workers(args.train, args.images or made_jpegs(args.train, folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
