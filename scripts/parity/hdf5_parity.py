#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes HDF5 files with h5py in many ways and compares what the program reads of them, byte for byte. Needs h5py.

    scripts/parity/hdf5_parity.py --tool build/release/tests/data/hdf5_tool

Elements uint8, float16, float32; in one piece, in chunks of every kind (h5py's own choice included), with and without
gzip and shuffle; file formats of old and of new; int, bool and float labels. Ends with 1 at the first difference.
"""
import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

STORAGES = {"one piece": {}, "h5py's chunks": {"chunks": True}, "1 sample per chunk": {"chunks": 1},
            "7 samples per chunk": {"chunks": 7}, "parts of samples": {"chunks": "parts"}}
FILTERS = {"plain": {}, "gzip": {"compression": "gzip"}, "shuffle and gzip": {"compression": "gzip", "shuffle": True},
           "shuffle": {"shuffle": True}}
LABELS = {"int64": "multiclass", "uint8": "multiclass", "bool": "binary", "float32": "regression", "int32": "multilabel"}


def chunks_of(choice, shape):
    if choice == "parts":
        return (min(5, shape[0]),) + tuple(max(1, side // 2) for side in shape[1:])
    return choice if choice is True else (choice,) + shape[1:]


def made_labels(rng, name, count):
    if name == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if name == "float32":
        return rng.standard_normal((count, 2)).astype(np.float32)
    if name == "int32":
        return rng.integers(0, 2, (count, 5)).astype(np.int32)
    return rng.integers(0, 6, count).astype(name)


def wanted(values):
    """[N, H, W, C], which is how the program has samples."""
    if values.ndim == 3:
        return values[..., None]
    return values.transpose(0, 2, 3, 1) if values.shape[1] in (1, 3) else values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, help="build/release/tests/data/hdf5_tool")
    args = parser.parse_args()
    rng = np.random.default_rng(7)
    compared = files = 0
    with tempfile.TemporaryDirectory(prefix="stoker-hdf5-") as scratch:
        scratch = pathlib.Path(scratch)
        path = scratch / "train.h5"
        kinds = itertools.product(("uint8", "float16", "float32"), STORAGES, FILTERS, ("earliest", "latest"), LABELS,
                                  ((37, 24, 17), (23, 3, 12, 10), (20, 9, 11, 3)))
        for number, (element, storage, filtered, libver, label, shape) in enumerate(kinds):
            if FILTERS[filtered] and not STORAGES[storage]:
                continue
            if number % 7 and label != "int64":  # every label with some of the rest
                continue
            values = rng.integers(0, 256, shape).astype(element) if element == "uint8" else (
                rng.standard_normal(shape) * 30).astype(element)
            labels = made_labels(rng, label, shape[0])
            settings = dict(FILTERS[filtered])
            if STORAGES[storage]:
                settings["chunks"] = chunks_of(STORAGES[storage]["chunks"], shape)
            with h5py.File(path, "w", libver=libver) as file:
                file.create_dataset("x", data=values, **settings)
                file.create_dataset("y", data=labels)
            subprocess.run([args.tool, str(scratch), "train", LABELS[label], str(scratch / "read")], check=True)
            numbers = np.fromfile(scratch / "read.numbers", element)
            learned = np.fromfile(scratch / "read.labels", np.float32)
            files, compared = files + 1, compared + values.size
            if numbers.tobytes() != np.ascontiguousarray(wanted(values)).tobytes() or not np.array_equal(
                    learned, labels.astype(np.float32).ravel()):
                print(f"hdf5_parity: not the same: {element}, {storage}, {filtered}, {libver}, {label}, {shape}")
                return 1
    print(f"hdf5_parity: {files} files of h5py {h5py.__version__} (HDF5 {h5py.version.hdf5_version}), {compared} numbers "
          "and all labels: every byte is the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
