#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares scripts/python/stoker.py with `train predict`: every network, every task, every way to crop.

    scripts/parity/stoker_py_parity.py --train build/release/apps/train [--networks all]

Each case trains two updates on made images (PNG, JPEG, gray, with alpha, turned by EXIF, not square), predicts them with
`train predict --logits` and with stoker.py, and compares every column: text must be equal, numbers within --limit of each
other, relative to 1 + their size. Ends with 1 where one differs and with 77 where torch, torchvision, Pillow or PyYAML are
missing.
"""
import argparse
import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
try:
    import numpy as np
    import torch
    import torchvision  # noqa: F401
    import yaml  # noqa: F401
    from PIL import Image
except ImportError as missing:
    print(f"stoker_py_parity: skipped: {missing}")
    sys.exit(77)
import stoker

USUAL = ("small_cnn", "tiny_cnn", "peer_cnn", "resnet9", "spectrogram_cnn", "resnet18", "resnet50", "efficientnet_b0",
         "mobilenet_v3_small", "convnext_tiny", "vit_s_16")
CLASSES = ("ant", "bee", "cow")


def picture(rng, width, height):
    coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    noise = rng.integers(-30, 31, (height, width, 3))
    return Image.fromarray(np.clip(np.asarray(coarse, np.int64) + noise, 0, 255).astype(np.uint8))


def write_images(folder, rng):
    """Per class: plain ones of several shapes, and one of each kind that needs a rule of its own."""
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
        for i, (width, height) in enumerate(((48, 48), (64, 40), (40, 71), (32, 32))):
            picture(rng, width, height).save(folder / name / f"plain{i}.png")
        picture(rng, 60, 45).save(folder / name / "photo.jpg", quality=90)
        turned = Image.Exif()
        turned[0x0112] = 6
        picture(rng, 60, 45).save(folder / name / "turned.jpg", quality=90, exif=turned)
        picture(rng, 50, 44).convert("L").save(folder / name / "gray.png")
        veiled = picture(rng, 44, 50).convert("RGBA")
        veiled.putalpha(Image.fromarray(rng.integers(0, 256, (50, 44), dtype=np.uint8)))
        veiled.save(folder / name / "veiled.png")


def write_tables(folder, rng):
    """CSV files of numbers to learn and of labels over the same images."""
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".png", ".jpg"))
    numbers, labels = folder / "numbers", folder / "labels"
    for where in (numbers, labels):
        where.mkdir()
    for split in ("train", "val"):
        with open(numbers / f"{split}.csv", "w", encoding="utf-8") as out:
            out.write("path,width,hue\n")
            out.writelines(f"../{file},{rng.normal(50, 9):.3f},{rng.normal(0, 2):.3f}\n" for file in files)
        with open(labels / f"{split}.csv", "w", encoding="utf-8") as out:
            out.write("path,wet,warm,far\n")
            out.writelines(f"../{file},{i % 2},{i % 3 == 0:d},{i % 5 < 2:d}\n" for i, file in enumerate(files))


def write_videos(folder, rng):
    for split in ("train", "val"):
        for i in range(6):
            video = folder / split / ("real", "fake")[i % 2] / f"v{i}"
            video.mkdir(parents=True)
            for frame in range(3 + 3 * (i % 3)):
                picture(rng, 40, 36).save(video / f"frame_{frame}.png")


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"stoker_py_parity: {' '.join(command)} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout


def compare(title, args, run_dir, data, images, options):
    run([args.train, "--data-dir", str(data), "--run-dir", str(run_dir), "--no-amp", "--threads", "1", "--epochs", "1",
         "--max-updates", "2", "--batch-size", "6", "--lr", "0.02", *options])
    theirs = list(csv.DictReader(run([args.train, "predict", str(run_dir), str(images), "--which", "last", "--logits",
                                      "--threads", "1"]).splitlines()))
    loaded = stoker.load_run(run_dir, which="last")
    ours = {row["path"]: row for row in loaded.predict(images, batch_size=5, logits=True)}
    worst, where, wrong = 0.0, "", []
    for row in theirs:
        mine = ours.get(row["path"]) or ours.get(str(pathlib.Path(images) / row["path"]))
        if mine is None or set(mine) != set(row):
            wrong.append(f"{row['path']}: columns {sorted(row)}, here {sorted(mine or {})}")
            continue
        for column, text in row.items():
            if column == "path":
                continue
            if isinstance(mine[column], str):
                if mine[column] != text:
                    wrong.append(f"{row['path']}: {column} {text}, here {mine[column]}")
                continue
            difference = abs(float(text) - mine[column]) / (1 + abs(float(text)))
            if difference > worst:
                worst, where = difference, row["path"]
    if len(ours) != len(theirs):
        wrong.append(f"{len(theirs)} rows, here {len(ours)}")
    good = not wrong and worst <= args.limit
    print(f"{'ok   ' if good else 'WRONG'} {title}: {len(theirs)} samples, largest difference {worst:.1e}" + ("" if good else f" ({where})"), flush=True)
    for line in wrong[:4]:
        print("      " + line)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--networks", nargs="+", default=list(USUAL), help="names, or all")
    parser.add_argument("--limit", type=float, default=5e-4)
    args = parser.parse_args()
    networks = args.networks
    if networks == ["all"]:
        networks = [name for name in stoker.NETWORKS if name != "two_stream_convlstm"]
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    results = []
    with tempfile.TemporaryDirectory(prefix="stoker-py-") as name:
        folder = pathlib.Path(name)
        for split in ("train", "val"):
            write_images(folder / "data" / split, rng)
        write_images(folder / "flat", rng)
        for split in ("train", "val"):
            for kind in CLASSES[:2]:
                shutil.copytree(folder / "data" / split / kind, folder / "pair" / split / kind)
        write_tables(folder / "flat", rng)
        write_videos(folder / "videos", rng)
        images, videos = folder / "data" / "val", folder / "videos" / "val"

        def case(title, options, data=folder / "data", shown=images):
            results.append(compare(title, args, folder / f"run{len(results)}", data, shown, options))

        for network in networks:
            case(network, ["--model", network, "--img-size", "32"])
        small = ["--model", "tiny_cnn", "--img-size", "32"]
        case("crop-pct 0.875, gray", [*small, "--crop-pct", "0.875", "--in-chans", "1"])
        case("the whole image squeezed, mean and std", [*small, "--eval-crop", "none", "--mean", "0.4,0.5,0.6", "--std", "0.2,0.3,0.25"])
        case("averaged weights, mirrored as well", [*small, "--model-ema", "--tta", "hflip"])
        case("resnet18 of one channel", ["--model", "resnet18", "--img-size", "32", "--in-chans", "1"])
        case("width 16", ["--model", "small_cnn", "--width", "16", "--img-size", "40"])
        case("binary", [*small, "--task", "binary", "--threshold", "0.4"], folder / "pair")
        case("regression", [*small, "--task", "regression"], folder / "flat" / "numbers")
        case("multilabel", [*small, "--task", "multilabel"], folder / "flat" / "labels")
        for backbone in ("tiny_cnn", "resnet18", "efficientnet_b0", "mobilenet_v3_small"):
            case(f"two_stream_convlstm of {backbone}",
                 ["--model", "two_stream_convlstm", "--backbone", backbone, "--lstm-channels", "8", "--img-size", "32",
                  "--clip-frames", "4", "--dataset", "clips", "--batch-size", "2"], folder / "videos", videos)
    if not all(results):
        sys.exit(1)


if __name__ == "__main__":
    main()
