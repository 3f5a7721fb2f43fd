#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one run in several ways (processes, OpenMP threads, machines), and compares what they leave: weights, their
average, the optimizer's state and summary.csv less its clock columns must be the same bytes.

    scripts/same_replicas.py --train build/release/apps/train
    scripts/same_replicas.py --train build/release/apps/train --only resnet18 --only 'resnet18 bf16' --updates 60

A way is PROCESSESxOMP_NUM_THREADS, as in 2x1. `namespaces` is two machines with two processes each, network namespaces of
this one, made by scripts/starters/two_machines.sh: as root, and only where --ways names it.

Every run has mixup, an average of the weights and clipping, and skips torn images. The images are made here; no batch
size divides their number, so that the last batch and the last update of each epoch are short. With --resume each run is stopped
halfway and continues in another way. Ends with 1 when a run differs.
"""
import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import kill_anywhere
import made_images

REPLICAS = 4
TWO_MACHINES = pathlib.Path(__file__).resolve().parent / "starters" / "two_machines.sh"
WAYS = "1x1,1x2,2x1,2x2,4x1,4x2"
COMMON = ["--train-crop", "random-resized", "--mixup", "0.2", "--model-ema", "--clip-grad", "1", "--lr", "0.05", "--epochs",
          "1000", "--val-every", "1000e", "--save-every", "never", "--resume", "auto", "--num-workers", "1",
          "--no-plan-check", "--no-report", "--on-bad-image", "skip,20", "--replicas", str(REPLICAS)]
NETWORKS = {
    "small_cnn": ["--model", "small_cnn", "--width", "8", "--batch-size", "6", "--accumulation-steps", "2"],
    "resnet18": ["--model", "resnet18", "--batch-size", "6"],
    "efficientnet_b0": ["--model", "efficientnet_b0", "--batch-size", "6", "--drop-rate", "0.2", "--drop-path-rate", "0.2"],
    "two_stream_convlstm": ["--model", "two_stream_convlstm", "--backbone", "efficientnet_b0", "--lstm-channels", "8",
                            "--clip-frames", "2", "--drop-rate", "0.2", "--batch-size", "3", "--task", "binary"],
}
RUNS = {f"{name}{suffix}": [*options, *more] for name, options in NETWORKS.items()
        for suffix, more in (("", ["--no-amp", "--no-channels-last"]), (" bf16", ["--amp", "--channels-last"]))}

Way = collections.namedtuple("Way", "processes threads")
NAMESPACES = Way(4, 1)


def way_of(text):
    return NAMESPACES if text == "namespaces" else Way(*map(int, text.split("x")))


def make_data(folder, images, side):
    """What the runs learn from, by whether their network sees clips."""
    made_images.write_images(folder / "images" / "train", images, side, seed=1, torn={5, 17, 58, 59, 60})
    made_images.write_images(folder / "images" / "val", 24, side, seed=2)
    made_images.write_clips(folder / "clips" / "train", images // 3, side, seed=1, torn={5, 17, 18}, frames=3)
    made_images.write_clips(folder / "clips" / "val", 8, side, seed=2, frames=3)


def commands_of(program, options, run_dir, way, on_two_machines):
    """What has to be started at once, each with variables of its own."""
    train = [str(program), *options, "--run-dir", str(run_dir)]
    if not on_two_machines:
        return [(train + ["--devices", str(way.processes)], {"OMP_NUM_THREADS": str(way.threads)})]
    commands = []
    for rank in range(way.processes):
        machine = "ab"[rank // 2]
        variables = {"RANK": rank, "WORLD_SIZE": way.processes, "LOCAL_RANK": rank % 2, "LOCAL_WORLD_SIZE": 2,
                     "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": 29500, "OMP_NUM_THREADS": way.threads}
        commands.append(([str(TWO_MACHINES), "in", machine, *train, "--listen", "10.77.0.1"],
                         {name: str(value) for name, value in variables.items()}))
    return commands


def trained(program, options, run_dir, way, on_two_machines=False):
    """Ends the script unless all that is started ends with 0."""
    started = [(command, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                          env={**os.environ, **variables}))
               for command, variables in commands_of(program, options, run_dir, way, on_two_machines)]
    texts = [process.communicate()[0] for _, process in started]
    for (command, process), text in zip(started, texts):
        if process.returncode != 0:
            sys.exit(f"same_replicas: {' '.join(command)} ended with {process.returncode}:\n{text}")


class Comparison:
    """One run in all ways."""

    def __init__(self, args, folder, name, ways):
        self.args, self.folder, self.name, self.ways = args, folder, name, ways
        data = folder / ("clips" if "convlstm" in name else "images")
        self.options = [*RUNS[name], *COMMON, *args.more, "--data-dir", str(data), "--img-size", str(args.side)]
        self.first = None

    def train(self, updates, run_dir, text):
        trained(self.args.train, [*self.options, "--max-updates", str(updates)], run_dir, way_of(text), text == "namespaces")

    def differing(self, number):
        """What differs from the first way, and what was left."""
        text = self.ways[number]
        run_dir = self.folder / f"{self.name.replace(' ', '-')}-{text}"
        if self.args.resume and number > 0:  # begun in the way before
            self.train(self.args.updates // 2, run_dir, self.ways[number - 1])
        self.train(self.args.updates, run_dir, text)
        digest = kill_anywhere.digest(run_dir)
        if self.args.resume:
            del digest["summary.csv"]  # has a row for where the run was stopped
        shutil.rmtree(run_dir)
        self.first = self.first or digest
        return [key for key in self.first if self.first[key] != digest.get(key)], digest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", choices=list(RUNS), metavar="NAME",
                        help=f"runs of this name; more than once for several: {', '.join(RUNS)}")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--images", type=int, default=203)
    parser.add_argument("--side", type=int, default=32, help="of an image, in pixels")
    parser.add_argument("--ways", help=f"instead of {WAYS}")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("more", nargs="*", help="options of train, after --")
    args = parser.parse_args()
    ways = (args.ways or WAYS).split(",")
    if "namespaces" in ways:
        subprocess.run([str(TWO_MACHINES), "start"], check=True)
    differ = compared = 0
    print(f"{'run':26} {'processes x OpenMP':19} {'model.safetensors':18}{'optimizer.safetensors':22} seconds", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="stoker-same-") as folder:
            folder = pathlib.Path(folder)
            make_data(folder, args.images, args.side)
            for name in args.only or RUNS:
                comparison = Comparison(args, folder, name, ways)
                for number, way in enumerate(ways):
                    begin = time.monotonic()
                    different, digest = comparison.differing(number)
                    compared += 1
                    differ += bool(different)
                    what = "DIFFERENT: " + ", ".join(different) if different else "the same bytes" if number else "the first"
                    print(f"{name:26} {way:19} {digest['model.safetensors'][:16]:18}{digest['optimizer.safetensors'][:16]:22} "
                          f"{time.monotonic() - begin:7.1f}  {what}", flush=True)
    finally:
        if "namespaces" in ways:
            subprocess.run([str(TWO_MACHINES), "stop"], check=False)
    print(f"same_replicas: {differ} of {compared} differ" if differ else f"same_replicas: all {compared} are the same bytes")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
