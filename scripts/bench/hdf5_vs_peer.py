#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our loader against h5py and a PyTorch DataLoader on the same HDF5 file, in turn, several times.

    scripts/make_data/spectrograms.py /tmp/spectro --train 200000 --val 20000
    scripts/bench/hdf5_vs_peer.py --data /tmp/spectro --rounds 5

The peer is what people write: a Dataset that opens the file on first use in each worker, one sample per __getitem__,
torch.from_numpy, the default collate. Both shuffle all samples; workers and batch are equal. A rate is samples over
seconds of a whole epoch, after one that warms up. --stage-dir adds our loader on a copy in memory. With --results FILE
rounds are kept there, so that several short calls add up; the table is of all rounds in it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

OURS, STAGED, PEER = "train bench loader", "the same, --stage-dir", "h5py + DataLoader"


def peer_rate(path, workers, batch_size, epochs):
    import h5py
    import torch

    class Spectrograms(torch.utils.data.Dataset):
        def __init__(self, file_path):
            self.path, self.file = file_path, None
            with h5py.File(file_path, "r") as file:
                self.size = len(file["x"])

        def __len__(self):
            return self.size

        def __getitem__(self, index):
            if self.file is None:
                self.file = h5py.File(self.path, "r")
            return torch.from_numpy(self.file["x"][index]), int(self.file["y"][index])

    loader = torch.utils.data.DataLoader(Spectrograms(path), batch_size=batch_size, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0)
    rates = []
    for _ in range(epochs):
        start, samples = time.monotonic(), 0
        for images, _ in loader:
            samples += len(images)
        rates.append(samples / (time.monotonic() - start))
    return statistics.median(rates[1:] or rates)


def own_rate(args, extra=()):
    words = [args.train, "bench", "loader", "--json", "--dataset", "hdf5", "--data-dir", str(args.data), "--task",
             "binary", "--num-workers", str(args.workers), "--batch-size", str(args.batch_size), *extra]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"hdf5_vs_peer: {' '.join(words)}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)["images_per_second"]["median"]


def print_table(rounds):
    print("| loader | samples/s, median (range) | ours / it, median of pairs (range) |\n|---|---|---|")
    for name in (OURS, STAGED, PEER):
        rates = [one[name] for one in rounds if name in one]
        if not rates:
            continue
        ratios = [one[OURS] / one[name] for one in rounds if name in one]
        text = "" if name == OURS else (f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        print(f"| {name} | {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) | {text} |")
    print(f"{len(rounds)} rounds")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR", help="with train.h5: x and y")
    parser.add_argument("--train", default="build/release/apps/train", metavar="PROGRAM")
    parser.add_argument("--python", default="/usr/bin/python3", help="that has h5py and torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--epochs", type=int, default=2, help="of the peer, the first included")
    parser.add_argument("--stage-dir", metavar="DIR")
    parser.add_argument("--own", nargs="*", default=[], metavar="OPTION", help="more options of ours, without dashes: "
                        "shuffle-buffer=8192")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="JSON lines, one per round; added to")
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.as_peer:
        print(peer_rate(str(args.data / "train.h5"), args.workers, args.batch_size, args.epochs))
        return
    rounds = []
    if args.results and args.results.exists():
        rounds = [json.loads(line) for line in args.results.read_text().splitlines()]
    own = ["--" + option for option in args.own]
    for _ in range(args.rounds):
        one = {OURS: own_rate(args, own)}
        if args.stage_dir:
            one[STAGED] = own_rate(args, own + ["--stage-dir", args.stage_dir])
        one[PEER] = float(subprocess.run([args.python, __file__, "--as-peer", "--data", str(args.data), "--workers",
                                          str(args.workers), "--batch-size", str(args.batch_size), "--epochs",
                                          str(args.epochs)], stdout=subprocess.PIPE, text=True, check=True).stdout)
        rounds.append(one)
        if args.results:
            with args.results.open("a") as stream:
                stream.write(json.dumps(one) + "\n")
    print_table(rounds)


if __name__ == "__main__":
    main()
