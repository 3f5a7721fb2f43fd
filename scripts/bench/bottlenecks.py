#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes bottlenecks on purpose, follows the diagnosis that the program prints, and compares with its prediction.

    scripts/bench/bottlenecks.py                          # all; about eight minutes on two idle CPUs
    scripts/bench/bottlenecks.py --case one-worker --case tiny-batch
    scripts/bench/bottlenecks.py --list

Each case trains briefly, reads verdict, option and predicted gain from the run's metrics.jsonl, trains again with the
advice taken, and compares images/s. Right: the verdict is one of those that name the bottleneck, or,
where no option helps on this machine, nothing to gain and why. Reached: at least 80 % of the predicted gain. Exit 0
when at most one verdict is wrong and three of four gains are reached. Wants a machine with two CPUs on which nothing else runs.
"""
import argparse
import dataclasses
import json
import math
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys

import cv2
import numpy

HERE = pathlib.Path(__file__).resolve().parent
MNIST = "/usr/share/datasets/fashion-mnist"


# ---- data -----------------------------------------------------------------------------------------------------------

def picture(random, width, height, detail):
    """Smooth colours with `detail` of noise, so that JPEG files have the size of photographs."""
    coarse = random.integers(0, 255, (max(2, height // 40), max(2, width // 40), 3), dtype=numpy.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(numpy.float32)
    return numpy.clip(smooth + random.normal(0, detail, smooth.shape), 0, 255).astype(numpy.uint8)


def make_folder(folder, sizes, detail=12):
    """Class folders a and b with a picture of each (width, height); validates on four small ones."""
    done = folder / ".done"
    if done.exists() and done.read_text() == repr((sizes, detail)):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    random = numpy.random.default_rng(7)
    for split, all_sizes in (("train", sizes), ("val", [(64, 64)] * 4)):
        for number, (width, height) in enumerate(all_sizes):
            path = folder / split / "ab"[number % 2] / f"{number:05d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), picture(random, width, height, detail), [cv2.IMWRITE_JPEG_QUALITY, 90])
    done.write_text(repr((sizes, detail)))
    return folder


class Work:
    """A folder with what cases share: data, and the library that makes storage slow."""

    def __init__(self, root, train, seconds):
        self.root, self.train, self.seconds = pathlib.Path(root), train, seconds
        self.root.mkdir(parents=True, exist_ok=True)

    def small(self, count=240):
        return make_folder(self.root / f"small{count}", [(128, 96)] * count)

    def medium(self):
        return make_folder(self.root / "medium", [(960, 720)] * 120)

    def huge(self):
        return make_folder(self.root / "huge", [(2048, 1536)] * 48)

    def bursty(self):
        # Every 64th takes longer than the network does for all that fit into a short queue.
        return make_folder(self.root / "bursty", [(4500, 3300) if i % 64 == 0 else (160, 120) for i in range(320)], detail=6)

    def slow_storage(self, folder, microseconds, once=False):
        library = self.root / "slow_storage.so"
        source = HERE / "slow_storage.c"
        if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        return {"LD_PRELOAD": str(library), "SLOW_DIR": str(folder), "SLOW_MICROSECONDS": str(microseconds),
                "SLOW_ONCE": "1" if once else "0"}


# ---- cases ----------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Case:
    name: str
    verdicts: tuple        # any of these names the bottleneck
    setup: object          # (work) -> (flags, environment)
    hogs: int = 0          # other processes that compute all the time
    remedy: str = "option"  # "option": the flag that was named; "stop-hogs"; "next-epoch": it passes by itself; "other-blas"
    pinned: bool = False   # hogs stay on the first CPU
    seconds: float = 0     # of training; 0: as requested
    also: tuple = ()       # verdicts that are right, too, where they reach their promise: another way out
    no_remedy: str = ""    # a fact that names the bottleneck where no option helps; then no gain is right, too


# A network that takes little time beside the loader; the lightest learns in its last layer only.
LIGHT = ["--model", "small_cnn", "--width", "4", "--no-amp", "--threads", "1"]
LIGHTEST = ["--freeze", "*,!fc"]


# Older kinds of CPU are brought back by oneDNN's own switch; the reference BLAS is Debian's libblas3.
WITHOUT_BFLOAT16 = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
REFERENCE_BLAS = "/usr/lib/x86_64-linux-gnu/blas"


def on_folder(folder, *flags):
    return ["--data-dir", str(folder), *LIGHT, *flags]


def on_mnist(*flags):
    return ["--data-dir", MNIST, "--model", "small_cnn", "--no-amp", *flags]


CASES = [
    Case("throttled-reads", ("input-bound: storage",),
         lambda work: (on_folder(work.small(), "--img-size", "64", "--batch-size", "16", "-j", "2", "--cache", "none"),
                       work.slow_storage(work.small(), 15000))),
    Case("slow-decode", ("input-bound: decode",),
         lambda work: (on_folder(work.huge(), "--img-size", "64", "--batch-size", "8", "-j", "2", "--cache", "none"), {})),
    Case("heavy-augmentation", ("input-bound: augmentation",),
         lambda work: (on_folder(work.small(), *LIGHTEST, "--img-size", "128", "--batch-size", "16", "-j", "2", "--cache",
                                 "none", "--aa", "rand-m3-n30"), {})),
    Case("one-worker", ("input-bound: too few workers",),
         lambda work: (on_folder(work.medium(), "--img-size", "64", "--batch-size", "16", "-j", "1", "--cache", "none"), {})),
    Case("cpu-hogs", ("CPU contention", "another process competes with the threads"),
         # On pixels in memory, so that nothing else is in the way.
         lambda work: (on_mnist("--width", "16", "--threads", "1", "--batch-size", "64", "-j", "1"), {}),
         hogs=4, remedy="stop-hogs"),
    Case("tiny-batch", ("launch-bound: batch too small",),
         lambda work: (on_mnist("--width", "8", "--threads", "1", "--batch-size", "2", "--val-batch-size", "256", "-j", "1"), {})),
    Case("sync-each-step", ("sync-bound",),
         # So few images that a larger batch is not a way out: an epoch would have too few updates.
         lambda work: (["--data-dir", str(work.small(64)), "--img-size", "32", "--in-chans", "1", "--model", "small_cnn", "--width",
                        "2", "--amp", "--threads", "1", "--batch-size", "8", "-j", "1", "--cache", "ram", "--train-crop",
                        "none", "--report-every", "1u"], {})),
    Case("slow-copies", ("copy-bound",),
         lambda work: (on_mnist("--width", "8", "--threads", "1", "--batch-size", "64", "-j", "1", "--no-pin-memory"),
                       {"STOKER_TEST_SLOW_COPY": "600000"})),
    Case("compute-bound", ("device-bound",),
         lambda work: (["--data-dir", str(work.small()), "--img-size", "96", "--model", "resnet18", "--batch-size", "16",
                        "-j", "1", "--threads", "1", "--no-amp", "--cache", "ram"], {}),
         # A CPU without bfloat16 has no faster way to compute, unless a second CPU is free.
         no_remedy="the CPU is the limit"),
    Case("cold-cache", ("input-bound: cold cache",),
         lambda work: (on_folder(work.small(900), "--img-size", "64", "--batch-size", "16", "-j", "2", "--cache", "none"),
                       work.slow_storage(work.small(900), 25000, once=True)), remedy="next-epoch", seconds=22),
    Case("undersized-prefetch", ("input-bound: undersized prefetch",),
         lambda work: (["--data-dir", str(work.bursty()), "--model", "small_cnn", "--width", "16", "--threads",
                        "1", "--img-size", "64", "--batch-size", "8", "-j", "2", "--cache", "none", "--prefetch-factor",
                        "1"], {}),
         # The queue is counted in batches: larger ones hold more images, and share the fixed cost of an update besides.
         also=("launch-bound: batch too small",)),
    Case("oversubscribed-threads", ("oversubscribed threads",),
         lambda work: (on_mnist("--width", "16", "--threads", "16", "--batch-size", "64", "-j", "1"), {})),
    Case("competing-threads", ("another process competes with the threads",),
         lambda work: (on_mnist("--width", "16", "--threads", "2", "--batch-size", "64", "-j", "1"), {}), hogs=1),
    Case("emulated-bfloat16", ("device-bound",),
         lambda work: (["--data-dir", MNIST, "--model", "small_cnn", "--amp", "--width", "16", "--threads", "1", "--batch-size", "64",
                        "-j", "1"], WITHOUT_BFLOAT16)),
    Case("wrong-layout", ("device-bound",),
         # Depthwise convolutions: of a ResNet's time the layout is a tenth here.
         lambda work: (["--data-dir", str(work.small()), "--img-size", "96", "--model", "efficientnet_b0", "--batch-size", "16", "-j",
                        "1", "--threads", "1", "--cache", "ram", "--no-amp", "--no-channels-last"], WITHOUT_BFLOAT16)),
    # As competing-threads, but the neighbour stays on one CPU, as a pinned service does.
    Case("neighbour-on-one-cpu", ("another process competes with the threads", "CPU contention"),
         lambda work: (on_mnist("--width", "16", "--threads", "2", "--batch-size", "64", "-j", "1"), {}), hogs=1, pinned=True),
    Case("reference-blas", ("device-bound",),
         lambda work: (["--data-dir", str(work.small()), "--img-size", "64", "--model", "vit_s_16", "--batch-size", "4", "-j", "1",
                        "--threads", "1", "--cache", "ram", "--no-amp"], {"LD_LIBRARY_PATH": REFERENCE_BLAS}),
         remedy="other-blas"),
]
TWELVE = [case.name for case in CASES[:12]]
SIXTEEN = TWELVE + [case.name for case in CASES[-4:]]


# ---- runs -----------------------------------------------------------------------------------------------------------

def spin(pinned):
    if pinned:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    while True:
        pass


class Hogs:
    def __init__(self, count, pinned):
        self.processes = [multiprocessing.Process(target=spin, args=(pinned,), daemon=True) for _ in range(count)]

    def __enter__(self):
        for process in self.processes:
            process.start()

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.join()


@dataclasses.dataclass
class Run:
    rate: float          # images/s behind the warm-up
    epoch_rates: list    # images/s of every whole epoch
    diagnosis: dict      # of the last whole epoch, or else the last one, or None
    diagnoses: list      # with the epoch that each is of


def number_behind(flags, name, otherwise):
    return int(flags[flags.index(name) + 1]) if name in flags else otherwise


def train(work, name, flags, environment, hogs, seconds, pinned=False):
    run_dir = work.root / "runs" / name
    shutil.rmtree(run_dir, ignore_errors=True)
    command = [work.train, *flags, "--run-dir", str(run_dir), "--epochs", "100000", "--max-time", f"{seconds:.0f}s",
               "--val-every", "100000e", "--save-every", "never", "--no-save-best", "--sched", "constant", "--lr", "0.001"]
    if "--report-every" not in flags:
        command += ["--report-every", "1s"]
    with Hogs(hogs, pinned):
        variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        done = subprocess.run(command, env={**variables, **environment}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    if done.returncode not in (0, 75):
        sys.exit(f"bottlenecks: {' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-3000:]}")
    events = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    reports = [event for event in events if event["event"] == "report"]
    epochs = [event for event in events if event["event"] == "epoch"]
    warm = [event for event in reports if event["elapsed_seconds"] >= 0.25 * seconds]
    rate = 0.0
    if len(warm) >= 2:
        images = (warm[-1]["updates"] - warm[0]["updates"]) * number_behind(flags, "--batch-size", 64)
        rate = images / (warm[-1]["elapsed_seconds"] - warm[0]["elapsed_seconds"])
    elif epochs:  # reports that are rare: the last whole epoch, or what there was of one
        rate = (epochs[-2] if len(epochs) > 1 else epochs[-1])["images_per_second"]
    found = [(event["epoch"], event["diagnosis"]) for event in events if event.get("diagnosis")]
    # Of whole epochs where there are any: a last one that was cut short, or a report of few updates, is seldom like the rest.
    whole = [event["diagnosis"] for event in epochs[:-1] if event.get("diagnosis")]
    last = whole[-1] if whole else found[-1][1] if found else None
    return Run(rate, [event["images_per_second"] for event in epochs], last, found)


def with_option(flags, option, value):
    """The command line with the advice taken: what contradicts it goes."""
    taken = list(flags)
    alias = {"--num-workers": "-j"}
    for name in (option, alias.get(option, option)):
        if value and name in taken:
            place = taken.index(name)
            del taken[place:place + 2]
    for switch in ("--no-" + option[2:],):
        if switch in taken:
            taken.remove(switch)
    return taken + [option] + ([value] if value else [])


def examine(case, work):
    seconds = case.seconds or work.seconds
    flags, environment = case.setup(work)
    before = train(work, case.name, flags, environment, case.hogs, seconds, case.pinned)
    named = before.diagnosis or {"verdict": "none", "gain_percent": 0, "knob": "", "value": "", "advice": "", "evidence": []}
    base = before.rate
    if case.remedy == "next-epoch":
        of_first = [diagnosis for epoch, diagnosis in before.diagnoses if epoch == 1]
        named = of_first[-1] if of_first else named
        base, after_rate = before.epoch_rates[0], max(before.epoch_rates[1:-1] or before.epoch_rates)
    elif case.remedy == "other-blas":
        after_rate = train(work, case.name + "-cured", flags, {}, 0, seconds).rate
    elif case.remedy == "stop-hogs":
        after_rate = train(work, case.name + "-cured", flags, environment, 0, seconds).rate
    elif named["knob"]:
        cured = with_option(flags, named["knob"], named["value"])
        after_rate = train(work, case.name + "-cured", cured, environment, case.hogs, seconds, case.pinned).rate
    else:
        after_rate = base
    gain = 100 * (after_rate / base - 1) if base > 0 else math.nan
    predicted = named["gain_percent"]
    reached = gain / predicted if predicted > 0 else 0.0
    right = named["verdict"] in case.verdicts or (named["verdict"] in case.also and reached >= 0.8)
    if case.no_remedy and named["verdict"] == "nothing to gain":
        right = any(fact.startswith(case.no_remedy) for fact in named["evidence"])
    print(f"{case.name:23s} {'right' if right else 'WRONG':5s}  {named['verdict']}\n"
          f"{'':23s} {named['advice']}\n"
          f"{'':23s} {base:.1f} -> {after_rate:.1f} images/s: {gain:+.0f}%, predicted {predicted:+.0f}%: "
          f"{'reached' if reached >= 0.8 else 'MISSED'} ({100 * reached:.0f}%)\n"
          f"{'':23s} because: {'; '.join(named['evidence'])}", flush=True)
    return {"case": case.name, "right": right, "reached": reached >= 0.8, "verdict": named["verdict"],
            "advice": named["advice"], "before": base, "after": after_rate, "gain_percent": gain,
            "predicted_percent": predicted}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/tests/hooks/train_with_hooks",
                        help="train, with the hook that slows copies down")
    parser.add_argument("--case", action="append", help="only this one; may be repeated")
    parser.add_argument("--sixteen", action="store_true",
                        help="with the four that the machine makes: emulated bfloat16, wrong layout, a neighbour, reference BLAS")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seconds", type=float, default=12, help="of training, each run")
    parser.add_argument("--work", default="/tmp/stoker-bottlenecks", help="folder for data and runs, kept for the next time")
    parser.add_argument("--results", help="JSON file; results of earlier calls in it are kept, so that cases can be run one by one")
    args = parser.parse_args()
    if args.list:
        print("\n".join(case.name for case in CASES))
        return 0
    names = args.case or (SIXTEEN if args.sixteen else TWELVE)
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"bottlenecks: no case {', '.join(sorted(unknown))}; --list names them")
    work = Work(args.work, args.train, args.seconds)
    results = {}
    if args.results and os.path.exists(args.results):
        results = {row["case"]: row for row in json.loads(pathlib.Path(args.results).read_text())}
    for case in CASES:
        if case.name in names:
            results[case.name] = examine(case, work)
            if args.results:
                pathlib.Path(args.results).write_text(json.dumps(list(results.values()), indent=1) + "\n")
    rows = [results[name] for name in SIXTEEN if name in results] or list(results.values())
    right, reached = sum(row["right"] for row in rows), sum(row["reached"] for row in rows)
    enough = right >= len(rows) - 1 and reached >= math.ceil(0.75 * len(rows))
    print(f"\n{len(rows)} cases: {right} verdicts right, {reached} predicted gains reached to 80%: "
          f"{'good' if enough else 'NOT GOOD ENOUGH'}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
