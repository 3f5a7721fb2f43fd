#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Training with nothing but --data-dir, --epochs and the task against six ordinary recipes, on six kinds of data.

    scripts/bench/defaults_vs_recipes.py --cifar10 DIR --photos DIR       # about an hour on two cores
    scripts/bench/defaults_vs_recipes.py --only spectrograms heads

DATA      fashion       10,000 PNG files of Debian's dataset-fashion-mnist, 10 classes
          cifar10       10,000 of the JPEG files under --cifar10 (train/<class>, test/<class>)
          photos        the JPEG files under --photos, one ImageNet class each, as 10 classes of 40 classes that follow one another
          spectrograms  made: 8 classes of harmonic tones that rise, fall, tremble, in noise; HDF5
          heads         made: drawn heads, gray, 64 pixels; yaw, pitch and roll in degrees
          regression    made: photographs of nothing but a disc; its radius and its brightness; CSV
Recipes change the optimizer, learning rate, schedule, decay and smoothing; the network, the crops and the batch are those of the
defaults. Each is trained with the same --seeds; a figure is their mean of the best epoch: top1 in percent, 100 x R2 for
regression, mean absolute error in degrees for heads. A default is good enough within 1 point of the best recipe, on five of six.
Wants Python's numpy and cv2.
"""
import argparse
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import cv2
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import made_hdf5  # noqa: E402
import array  # noqa: E402
import gzip  # noqa: E402

RECIPES = {
    "defaults": [],
    "sgd 0.1 cosine": "--optimizer sgd --lr-base 0.1 --lr-scheduler cosine --weight-decay 5e-4",
    "sgd 0.01 step": "--optimizer sgd --lr 0.01 --lr-scheduler multistep --decay-milestones {half},{most} --weight-decay 1e-4",
    "sgd one-cycle": "--optimizer sgd --lr-base 0.2 --lr-scheduler one-cycle --weight-decay 5e-4",
    "adam 0.001": "--optimizer adam --lr 0.001 --lr-scheduler constant --weight-decay 0",
    "adamw 0.001 cosine": "--optimizer adamw --lr 0.001 --lr-scheduler cosine --warmup-epochs 1 --weight-decay 0.05",
    "adamw 0.0003, smoothing": "--optimizer adamw --lr 0.0003 --lr-scheduler cosine --weight-decay 0.01 {smoothing}",
}


# ---- data -----------------------------------------------------------------------------------------------------------

def fashion(folder, _):
    root = pathlib.Path("/usr/share/datasets/fashion-mnist")
    for stem, split, count in (("train", "train", 8000), ("t10k", "test", 2000)):
        with gzip.open(root / f"{stem}-images-idx3-ubyte.gz") as images, gzip.open(root / f"{stem}-labels-idx1-ubyte.gz") as labels:
            pixels = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 28, 28)[:count]
            classes = np.frombuffer(labels.read(), np.uint8, offset=8)[:count]
        for i, (image, label) in enumerate(zip(pixels, classes)):
            path = folder / split / f"class{label}" / f"{i:05}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), image)


def cifar10(folder, args):
    for split, count in (("train", 800), ("test", 200)):
        for label in sorted((pathlib.Path(args.cifar10) / split).iterdir()):
            (folder / split / label.name).mkdir(parents=True)
            for path in sorted(label.iterdir())[:count]:
                shutil.copy(path, folder / split / label.name)


def photos(folder, args):
    files = sorted(path for path in pathlib.Path(args.photos).rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))
    for i, path in enumerate(files):
        target = folder / ("val" if i % 5 == 4 else "train") / f"group{10 * i // len(files)}"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def tone(rng, label):
    """64 frequencies x 48 times: a harmonic tone whose pitch goes one of eight ways."""
    t = np.linspace(0, 1, 48)
    bend = [0 * t, t, -t, np.abs(2 * t - 1), -np.abs(2 * t - 1), 0.35 * np.sin(18 * t), 0.35 * np.sin(36 * t), np.round(2 * t) / 2][label]
    pitch = rng.uniform(9, 16) + rng.uniform(2, 5) * bend
    rows = np.arange(64)[:, None]
    image = sum(rng.uniform(0.3, 1) * np.exp(-0.5 * ((rows - k * pitch) / 0.8) ** 2) for k in (1, 2, 3))
    onset = rng.integers(0, 12)
    image[:, :onset] = 0
    return image + rng.normal(0, 0.7, image.shape)


def spectrograms(folder, _):
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True)
    for split, count in (("train", 2400), ("val", 800)):
        labels = [i % 8 for i in range(count)]
        values = np.stack([tone(rng, label) for label in labels]).astype(np.float32)
        made_hdf5.write_hdf5(folder / f"{split}.h5", array.array("f", values.tobytes()), [count, 64, 48], labels)


def head(rng, yaw, pitch, roll):
    """A gray face of 64 pixels that looks where the angles say, before a soft background."""
    image = cv2.resize(rng.uniform(40, 140, (4, 4)).astype(np.float32), (64, 64), interpolation=cv2.INTER_CUBIC)
    skin, x0, y0, size = rng.uniform(130, 220), 32 + rng.uniform(-3, 3), 32 + rng.uniform(-3, 3), rng.uniform(17, 22)
    y, p, r = np.radians([yaw, pitch, roll])

    def place(across, up):  # of a point of the face, on a sphere
        depth = np.sqrt(max(0.0, 1 - across * across - up * up))
        x1, z1 = across * np.cos(y) + depth * np.sin(y), -across * np.sin(y) + depth * np.cos(y)
        y1 = up * np.cos(p) - z1 * np.sin(p)
        return (int(8 * (x0 + size * (x1 * np.cos(r) - y1 * np.sin(r)))), int(8 * (y0 + size * (x1 * np.sin(r) + y1 * np.cos(r)))))
    cv2.ellipse(image, (int(x0), int(y0)), (int(0.85 * size), int(1.1 * size)), roll, 0, 360, skin, -1, cv2.LINE_AA)
    for across, up, radius, shade in ((-0.38, -0.25, 0.12, 20), (0.38, -0.25, 0.12, 20), (0, 0.05, 0.1, skin - 60), (-0.2, 0.5, 0.09, 60),
                                      (0, 0.52, 0.09, 60), (0.2, 0.5, 0.09, 60)):
        cv2.circle(image, place(across, up), int(8 * radius * size), float(shade), -1, cv2.LINE_AA, shift=3)
    return np.clip(image + rng.normal(0, 8, image.shape), 0, 255).astype(np.uint8)


def heads(folder, _):
    rng = np.random.default_rng(2)
    write_table(folder, "train.csv val.csv", (2000, 500), ("yaw", "pitch", "roll"),
                lambda: (lambda angles: (head(rng, *angles), angles))(rng.uniform((-60, -40, -30), (60, 40, 30))))


def disc(rng):
    image = rng.normal(rng.uniform(60, 120), 25, (64, 64))
    radius, brightness = rng.uniform(4, 20), rng.uniform(20, 100)
    rows, columns = np.mgrid[:64, :64]
    x, y = rng.uniform(20, 44, 2)
    image += brightness * ((rows - y) ** 2 + (columns - x) ** 2 < radius ** 2)
    return np.clip(image, 0, 255).astype(np.uint8), (radius, brightness)


def regression(folder, _):
    rng = np.random.default_rng(3)
    write_table(folder, "train.csv val.csv", (2000, 500), ("radius", "brightness"), lambda: disc(rng))


def write_table(folder, names, counts, columns, draw):
    for name, count in zip(names.split(), counts):
        split = name.split(".")[0]
        (folder / split).mkdir(parents=True)
        with open(folder / name, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["path", *columns])
            for i in range(count):
                image, values = draw()
                cv2.imwrite(str(folder / split / f"{i:05}.png"), image)
                table.writerow([f"{split}/{i:05}.png", *(f"{value:.4f}" for value in values)])


# name: how it is made, epochs, options that the task asks for, metric, points of it, whether less is better
DATA = {
    "fashion": (fashion, 10, "", "top1", 1, False),
    "cifar10": (cifar10, 12, "", "top1", 1, False),
    "photos": (photos, 8, "", "top1", 1, False),
    "spectrograms": (spectrograms, 8, "", "top1", 1, False),
    "heads": (heads, 10, "--task head-pose", "mae", 1, True),
    "regression": (regression, 10, "--task regression --eval-metric r2", "r2", 100, False),
}


# ---- runs -----------------------------------------------------------------------------------------------------------

def result_of(args, data, name, seed, cpu):
    _, epochs, task, _, points, _ = DATA[data]
    recipe = RECIPES[name]
    if recipe:
        smoothing = "" if "--task" in task else "--label-smoothing 0.1"
        recipe = recipe.format(half=epochs // 2, most=3 * epochs // 4, smoothing=smoothing).split()
    run = args.folder / "runs" / f"{data}-{name.replace(' ', '_').replace(',', '')}-{seed}"
    shutil.rmtree(run, ignore_errors=True)
    command = [args.train, "--data-dir", args.folder / data, "--epochs", epochs, *task.split(), *recipe, "--seed", seed, "--run-dir", run,
               "--threads", "1", "--num-workers", "1", "--no-amp", "--no-report"]
    command = ["taskset", "-c", str(cpu), *map(str, command)]
    ended = subprocess.run(command, capture_output=True, text=True)
    value = re.search(r"metric=\S+ value=(\S+)", ended.stdout + ended.stderr)
    if ended.returncode or not value:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{(ended.stdout + ended.stderr)[-1500:]}")
    return points * float(value.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/stoker-defaults"), help="of data and runs")
    parser.add_argument("--cifar10")
    parser.add_argument("--photos")
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    free = list(cpus)

    def taken(data, name, seed):
        cpu = free.pop()
        try:
            return result_of(args, data, name, seed, cpu)
        finally:
            free.append(cpu)

    good = 0
    for data in args.only:
        make, epochs, _, metric, points, less = DATA[data]
        if not (args.folder / data / "done").exists():
            shutil.rmtree(args.folder / data, ignore_errors=True)
            make(args.folder / data, args)
            (args.folder / data / "done").write_text("")
        with concurrent.futures.ThreadPoolExecutor(len(cpus)) as pool:
            jobs = {name: [pool.submit(taken, data, name, seed) for seed in args.seeds] for name in args.recipes}
            figures = {name: statistics.mean(job.result() for job in each) for name, each in jobs.items()}
        print(f"{data}, {epochs} epochs, {'100 x ' if points == 100 else ''}{metric}: "
              + ", ".join(f"{name} {value:.2f}" for name, value in figures.items()), flush=True)
        others = [value for name, value in figures.items() if name != "defaults"]
        if "defaults" in figures and others:
            behind = figures["defaults"] - min(others) if less else max(others) - figures["defaults"]
            good += behind <= 1
            print(f"  defaults are {behind:+.2f} behind the best recipe", flush=True)
    print(f"within 1 point: {good} of {len(args.only)}")
    sys.exit(0 if good >= min(5, len(args.only)) else 1)


if __name__ == "__main__":
    main()
