#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes spectrograms in HDF5: chirps in noise that rise (class 1) or fall (class 0). Needs numpy and h5py.

    scripts/make_data/spectrograms.py OUT --train 20000 --val 4000

Both classes have the same pitch, length, loudness and place on average: they differ only in the direction. Values
are decibels (mean about -58). The same options give the same numbers: sample i of a split is drawn from
(seed, split, block of i) alone. Layouts: OUT/train.h5 and OUT/val.h5, or OUT/spectrograms.h5 with a group per split.
"""
import argparse
import pathlib
import time

import h5py
import numpy as np

BLOCK = 2048  # samples that are drawn together


def made_block(rng, count, bins, frames, positive_share, signal):
    """Decibels, float32 [count, bins, frames], and classes [count]."""
    labels = (rng.random(count) < positive_share).astype(np.int64)
    one = (count, 1, 1)
    slope = rng.uniform(0.3, 1.0, one) * np.where(labels == 1, 1, -1).reshape(one)  # bins per frame
    middle_bin = rng.uniform(0.3 * bins, 0.7 * bins, one)
    middle_frame = rng.uniform(0.3 * frames, 0.7 * frames, one)
    length = rng.uniform(0.2 * frames, 0.45 * frames, one)
    loudness = signal * rng.uniform(0.7, 1.3, one)
    at = np.arange(frames, dtype=np.float32).reshape(1, 1, frames) - middle_frame
    ridge = (np.arange(bins, dtype=np.float32).reshape(1, bins, 1) - middle_bin - slope * at).astype(np.float32)
    chirp = np.exp(-0.5 * (ridge / 1.3) ** 2) * (np.abs(at) < length / 2) * loudness
    tilt = np.linspace(1, -1, bins, dtype=np.float32).reshape(1, bins, 1)  # low bins are louder, as in most sound
    noise = rng.standard_normal((count, bins, frames), dtype=np.float32)
    return (-60 + 5 * tilt + 8 * (noise + chirp)).astype(np.float32), labels


def stored(values, args):
    """As the options want it: uint8 covers -100 to -20 dB, with as many equal channels as requested."""
    if args.dtype == "uint8":
        values = np.clip(np.rint((values + 100) * (255 / 80)), 0, 255)
    values = values.astype(args.dtype)
    return values if args.channels == 0 else np.repeat(values[:, None], args.channels, axis=1)


def write_split(group, name, count, args):
    shape = (count, args.bins, args.frames) if args.channels == 0 else (count, args.channels, args.bins, args.frames)
    settings = {}
    if args.chunk:
        settings["chunks"] = (min(args.chunk, count),) + shape[1:]
    if args.gzip:
        settings.update(compression="gzip", compression_opts=args.gzip, shuffle=True)
        settings.setdefault("chunks", (min(64, count),) + shape[1:])
    inputs = group.create_dataset(args.input, shape, args.dtype, **settings)
    labels = np.empty(count, np.int64)
    for block, first in enumerate(range(0, count, BLOCK)):
        size = min(BLOCK, count - first)
        rng = np.random.default_rng([args.seed, sum(name.encode()), block])
        values, classes = made_block(rng, BLOCK, args.bins, args.frames, args.positive_share, args.signal)
        inputs[first:first + size] = stored(values[:size], args)
        labels[first:first + size] = classes[:size]
    group.create_dataset(args.label, data=labels.astype(args.label_dtype))
    return shape, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder; made when it is not there")
    parser.add_argument("--train", type=int, default=20000, help="samples (default %(default)s)")
    parser.add_argument("--val", type=int, default=4000, help="samples (default %(default)s)")
    parser.add_argument("--bins", type=int, default=64, help="of frequency: height (default %(default)s)")
    parser.add_argument("--frames", type=int, default=64, help="of time: width (default %(default)s)")
    parser.add_argument("--dtype", choices=["uint8", "float16", "float32"], default="float16")
    parser.add_argument("--label-dtype", default="int64")
    parser.add_argument("--channels", type=int, default=0, choices=[0, 1, 3], help="0: samples are [bins, frames]")
    parser.add_argument("--chunk", type=int, default=0, help="samples per chunk; 0: in one piece")
    parser.add_argument("--gzip", type=int, default=0, help="level; 0: not compressed. Bytes are shuffled before")
    parser.add_argument("--layout", choices=["files", "groups"], default="files")
    parser.add_argument("--input", default="x", help="name of the data set (default %(default)s)")
    parser.add_argument("--label", default="y", help="name of the labels (default %(default)s)")
    parser.add_argument("--positive-share", type=float, default=0.2)
    parser.add_argument("--signal", type=float, default=1.2, help="loudness of chirps, in deviations of the noise")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", args.train), ("val", args.val)):
        start = time.monotonic()
        path = args.out / (f"{name}.h5" if args.layout == "files" else "spectrograms.h5")
        mode = "a" if args.layout == "groups" and name != "train" else "w"
        with h5py.File(path, mode) as file:
            group = file if args.layout == "files" else file.create_group(name)
            shape, labels = write_split(group, name, count, args)
        print(f"{path}: {name} {list(shape)} {args.dtype}, {labels.mean():.1%} positive, "
              f"{path.stat().st_size / 1e6:.1f} MB in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
