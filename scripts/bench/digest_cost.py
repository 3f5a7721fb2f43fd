#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What digests of updates cost: CPU seconds of runs with a digest of every update and of runs without any, in turns, so that
both see the same machine. At the default (every 200 updates) the cost is a 200th of the difference.

    scripts/bench/digest_cost.py --train build/release/apps/train --pairs 6
    scripts/bench/digest_cost.py -- --model resnet18 --img-size 64 --batch-size 32

CPU seconds, not seconds: other programs on the machine then matter little. Options after `--` are given to `train`.
"""
import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made_idx  # noqa: E402

DEFAULT_EVERY = 200


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("options", nargs="*", help="options of train, after --")
    args = parser.parse_args()
    network = args.options or ["--model", "tiny_cnn", "--batch-size", "256"]
    shares = []
    with tempfile.TemporaryDirectory(prefix="stoker-digests-") as name:
        folder = pathlib.Path(name)
        made_idx.write_idx(folder, "train", 2560, 28, seed=1)
        made_idx.write_idx(folder, "t10k", 64, 28, seed=2)
        for pair in range(args.pairs):
            took = {}
            for every in (0, 1) if pair % 2 == 0 else (1, 0):
                for updates in (1, 1 + args.updates):  # less what starting takes
                    took[every, updates] = cpu_seconds(
                        [args.train, "--data-dir", name, "--run-dir", str(folder / f"{pair}-{every}-{updates}"), "--threads", "1",
                         "--num-workers", "1", "--no-amp", "--epochs", "1000", "--max-updates", str(updates), "--val-every",
                         "1000e", "--save-every", "never", "--device", "cpu", "--digest-every", str(every), *network])
            each = {every: (took[every, 1 + args.updates] - took[every, 1]) / args.updates for every in (0, 1)}
            shares.append((each[1] - each[0]) / each[0])
            print(f"pair {pair + 1}: {1000 * each[0]:.2f} ms of CPU per update, {1000 * each[1]:.2f} ms with digests", flush=True)
    share = statistics.median(shares)
    print(f"a digest of every update costs {100 * share:.2f}% (median of {len(shares)} pairs, {100 * min(shares):.2f} to "
          f"{100 * max(shares):.2f}); at the default, every {DEFAULT_EVERY}th: {100 * share / DEFAULT_EVERY:.4f}%")
    sys.exit(0 if share / DEFAULT_EVERY < 0.01 else 1)


if __name__ == "__main__":
    main()
