#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains 30 epochs on 1,000 images with 1 and with 16 workers and checks resident memory: 16 workers may cost at
most 32 MB more, and from epoch 3 to the end there is no growth (at most 1 MB: the kernel counts pages in batches).

    scripts/check_memory.py --train build/release/apps/train
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import made_idx

MEGABYTE = 1e6


def resident_by_epoch(train, data, run_dir, workers):
    command = [train, "--data-dir", str(data), "--run-dir", str(run_dir), "--model", "small_cnn", "--epochs", "30",
               "--num-workers", str(workers), "--threads", "1", "--save-every", "10e", "--quiet", "--batch-size", "32"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    events = [json.loads(line) for line in open(run_dir / "metrics.jsonl")]
    return [event["resident_bytes"] / MEGABYTE for event in events if event["event"] == "epoch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="stoker-memory-") as name:
        folder = pathlib.Path(name)
        made_idx.write_idx(folder, "train", 1000, side=28, seed=1)
        made_idx.write_idx(folder, "t10k", 200, side=28, seed=2)
        last = {}
        for workers in (1, 16):
            resident = resident_by_epoch(args.train, folder, folder / f"run-{workers}", workers)
            growth = resident[-1] - resident[2]
            last[workers] = resident[-1]
            good = good and growth <= 1
            print(f"{workers} workers: {resident[2]:.1f} MB after epoch 3, {resident[-1]:.1f} MB after epoch 30: "
                  f"growth {growth:.1f} MB")
        more = last[16] - last[1]
        print(f"16 workers cost {more:.1f} MB more than 1 (limit 32)")
    return 0 if good and more <= 32 else 1


if __name__ == "__main__":
    sys.exit(main())
