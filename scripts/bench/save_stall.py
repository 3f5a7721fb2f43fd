#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long training waits for a checkpoint, written at once and beside training.

    scripts/bench/save_stall.py --train build/release/apps/train --model resnet50

The first save of each run is left out: it takes the memory of the copy. Both ways take turns.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import made_idx  # noqa: E402


def saves(args, folder, way, turn):
    run = folder / f"{way}-{turn}"
    command = [args.train, "--data-dir", str(folder), "--run-dir", str(run), "--model", args.model, "--device", args.device,
               "--img-size", str(args.img_size), "--batch-size", str(args.batch_size), "--epochs", "1000", "--max-updates",
               str(args.every * args.saves), "--save-every", f"{args.every}u", "--val-every", "never", "--no-report",
               "--num-workers", "1", "--threads", str(args.threads)] + (["--model-ema"] if args.model_ema else [])
    subprocess.run(command + [f"--{way}"], check=True, capture_output=True)
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = [event for event in events if event["event"] == "checkpoint"]
    return found[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--img-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=3, help="updates from one save to the next")
    parser.add_argument("--saves", type=int, default=5, help="of a run")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--model-ema", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made_idx.write_idx(folder, "train", 16 * args.batch_size, side=args.img_size, seed=1)
        made_idx.write_idx(folder, "t10k", args.batch_size, side=args.img_size, seed=2)
        stalls = {"no-async-save": [], "async-save": []}
        for turn in range(args.turns):
            for way, found in stalls.items():
                found += saves(args, folder, way, turn)
        for way, found in stalls.items():
            waits = [1e3 * save["stall_seconds"] for save in found]
            writing = [1e3 * save["seconds"] for save in found]
            print(f"--{way}: training waited {statistics.median(waits):.1f} ms (median of {len(waits)}; {min(waits):.1f} to "
                  f"{max(waits):.1f}), written in {statistics.median(writing):.1f} ms, {found[0]['bytes'] / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
