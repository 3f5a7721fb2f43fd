#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Updates by replicas on lanes (threads of one process that share the weights) against other ways to use as many CPUs:

    taskset -c 2,3 scripts/bench/lanes_vs_peers.py --train build/release/apps/train --ddp ddp.py

* `ddp`: DistributedDataParallel of PyTorch, a process for each CPU. The script that is named prints its images/s, and takes
  --processes, --model, --size, --batch, --updates, --rounds and --channels-last. Networks that torchvision has.
* `threads`: our own program, one process with a thread for each CPU inside each operation.

Same network, images per update and layout, float32, noise as images. All run on the CPUs that this script may use, in turn,
--rounds times; the figure is the median of the ratios of neighbours. With --busy another process keeps the last of these
CPUs busy all the time, as a neighbour on the same machine would.
"""
import argparse
import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys

IN_TORCHVISION = ("resnet18", "resnet34", "resnet50", "efficientnet_b0", "mobilenet_v3_large")


def rate_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    rates = [float(text.replace(",", "")) for text in re.findall(r"([\d,.]+) images/s", done.stdout)]
    if done.returncode != 0 or not rates:
        sys.exit(f"lanes_vs_peers: {' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout[-2000:]}")
    return rates[0]


@contextlib.contextmanager
def neighbour(cpu):
    """A process that never waits, on one CPU."""
    if cpu is None:
        yield
        return
    busy = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def commands(args, model, cpus):
    layout = [] if args.channels_last else ["--no-channels-last"]
    step = [args.train, "bench", "step", "--model", model, "--img-size", args.size, "--no-amp", *layout, "--device", "cpu"]
    ways = {"lanes": [*step, "--batch-size", args.batch, "--replicas", cpus, "--lanes", cpus, "--threads", 1],
            "threads": [*step, "--batch-size", args.batch * cpus, "--threads", cpus]}
    if args.ddp and model in IN_TORCHVISION:
        ways["ddp"] = [sys.executable, args.ddp, "--processes", cpus, "--model", model, "--size", args.size, "--batch",
                       args.batch, "--updates", args.updates, "--rounds", 1,
                       *(["--channels-last"] if args.channels_last else [])]
    return {way: list(map(str, command)) for way, command in ways.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--ddp", type=pathlib.Path, help="the script of DistributedDataParallel; without it only threads")
    parser.add_argument("--models", default="resnet18,small_cnn,efficientnet_b0")
    parser.add_argument("--size", type=int, default=160)
    parser.add_argument("--batch", type=int, default=16, help="of each lane or process")
    parser.add_argument("--updates", type=int, default=10, help="of ddp; the program measures for some seconds")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    with neighbour(cpus[-1] if args.busy else None):
        for model in args.models.split(","):
            rates = {way: [] for way in commands(args, model, len(cpus))}
            for _ in range(args.rounds):
                for way, command in commands(args, model, len(cpus)).items():
                    rates[way].append(rate_of(command))
                print(f"  {model}: " + ", ".join(f"{way} {of_way[-1]:.1f}" for way, of_way in rates.items()), flush=True)
            for way in list(rates)[1:]:
                ratios = [a / b for a, b in zip(rates["lanes"], rates[way])]
                print(f"{model} {args.batch * len(cpus)} images per update at {args.size} px, CPUs {cpus}"
                      f"{', one of them busy' if args.busy else ''}: lanes {statistics.median(rates['lanes']):.1f}, "
                      f"{way} {statistics.median(rates[way]):.1f} images/s, {statistics.median(ratios):.2f} times "
                      f"({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
