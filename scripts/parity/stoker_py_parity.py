#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares scripts/python/stoker.py with `train predict`: a network of every kind, every task, every way to crop.

    scripts/parity/stoker_py_parity.py --train build/release/apps/train [--networks resnet18 | all]

Each case trains two updates on synthetic images (PNG, JPEG, gray, with alpha, turned by EXIF, not square), predicts them with
`train predict --logits` and with stoker.py, and compares every column: text must be equal, numbers within --limit of each
other, relative to 1 + their size, and nearer to each other than a 50th of what samples differ by. Ends with 1 where one
differs and with 77 where torch, Pillow or PyYAML are missing; without torchvision its networks are left out.
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
    import yaml  # noqa: F401
    from PIL import Image
except ImportError as missing:
    print(f"stoker_py_parity: skipped: {missing}")
    sys.exit(77)
import stoker

try:
    import torchvision  # noqa: F401
    HAS_TORCHVISION = True
except ImportError:
    HAS_TORCHVISION = False
    print("without torchvision: its networks are left out")

CLASSES = ("ant", "bee", "cow")
# One of each kind of block: the others differ in numbers alone, and all 57 take half an hour.
KINDS = ("small_cnn", "tiny_cnn", "peer_cnn", "resnet9", "spectrogram_cnn", "resnet18", "resnet50", "resnext50_32x4d",
         "mobilenet_v2", "mobilenet_v3_small", "convnext_tiny", "vit_s_16", "densenet121", "efficientnet_b0",
         "efficientnet_v2_s", "regnet_y_400mf", "regnet_x_400mf", "swin_t", "swin_v2_t")
UNPROVEN = ("--prove-backend", "off")  # what is compared here is a proof itself
CLIP_LIMIT = 5e-6  # after two updates clips differ so little that a wrong frame moves their outputs by no more than 5e-5


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


def write_deep(folder, rng):
    """Gray images of 16 bits whose numbers fill little of them."""
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
        for i in range(4):
            gray = np.asarray(picture(rng, 40, 44).convert("L")).astype(np.uint16)
            Image.fromarray(880 + gray * 2).save(folder / name / f"deep{i}.png")


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


def write_pairs(folder, rng):
    """Videos whose frames are there in high and in low quality, of other sizes and, some of them, of another shape."""
    for split in ("train", "val"):
        for i in range(6):
            video = folder / split / ("real", "fake")[i % 2] / f"v{i}"
            for quality in ("hq", "lq"):
                (video / quality).mkdir(parents=True)
            for frame in range(3 + 3 * (i % 3)):
                high = picture(rng, 60, 45)
                high.save(video / "hq" / f"frame_{frame}.png")
                low = high.resize(((20, 15), (30, 24), (60, 45))[i % 3], Image.BILINEAR)
                low.save(video / "lq" / f"frame_{frame}.jpg", quality=60)


def refuses(title, run_dir, videos, message):
    """Whether videos of another kind than those of the training end with a message."""
    try:
        list(stoker.load_run(run_dir, which="last").predict(videos))
    except ValueError as error:
        good = message in str(error)
        print(f"{'ok   ' if good else 'WRONG'} {title}: {error}", flush=True)
        return good
    print(f"WRONG {title}: predicted", flush=True)
    return False


def starting_weights(network, images, path):
    """Weights of which the outputs depend on the image, but not wildly: means and variances are those of the images, and what
    residual blocks add is small. As they begin, two updates leave the deep networks with one answer, or with none."""
    torch.manual_seed(1)
    model = stoker.make_network(network, 3, len(CLASSES), 32).train()
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = None  # the plain average
        if type(part).__name__ == "StochasticDepth":
            part.p = 0.0
        added = [m for m in part.modules() if isinstance(m, torch.nn.BatchNorm2d)][-1:] if getattr(part, "use_res_connect", False) \
            else [getattr(part, "bn3", None) or getattr(part, "bn2", None)]
        for last in filter(None, added):
            torch.nn.init.constant_(last.weight, 0.1)
    pixels = torch.stack([torch.from_numpy(np.asarray(stoker.read_image(image, 3).resize((32, 32))).transpose(2, 0, 1).copy())
                          for image in stoker.images_below(images)])
    with torch.no_grad():
        model((pixels.float() / 255 - 0.45) / 0.225)
        for part in model.modules():
            if isinstance(part, torch.nn.BatchNorm2d):  # no channel that an image unlike these would make huge
                part.running_var.add_(part.running_var.mean())
    torch.save(model.state_dict(), path)
    return path


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"stoker_py_parity: {' '.join(command)} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout


def compare(title, args, run_dir, data, images, options, limit):
    run([args.train, "--data-dir", str(data), "--run-dir", str(run_dir), "--no-amp", "--threads", "1", "--epochs", "1",
         "--max-updates", "2", "--batch-size", "6", "--lr", "0.02", *UNPROVEN, *options])
    theirs = list(csv.DictReader(run([args.train, "predict", str(run_dir), str(images), "--which", "last", "--logits",
                                      "--threads", "1", *UNPROVEN]).splitlines()))
    loaded = stoker.load_run(run_dir, which="last")
    ours = {row["path"]: row for row in loaded.predict(images, batch_size=5, logits=True)}
    worst, where, wrong, seen = 0.0, "", [], {}
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
            seen.setdefault(column, []).append(float(text))
            difference = abs(float(text) - mine[column]) / (1 + abs(float(text)))
            if not difference <= worst:  # also where it is not a number
                worst, where = difference, row["path"]
    if len(ours) != len(theirs):
        wrong.append(f"{len(theirs)} rows, here {len(ours)}")
    spread = max((max(values) - min(values) for values in seen.values()), default=0.0)
    if not spread > 50 * worst:
        wrong.append(f"outputs differ by no more than {spread:.1e} from sample to sample: too little to compare")
    good = not wrong and worst <= limit
    print(f"{'ok   ' if good else 'WRONG'} {title}: {len(theirs)} samples that differ by {spread:.1e}, largest difference {worst:.1e}" + ("" if good else f" ({where})"), flush=True)
    for line in wrong[:4]:
        print("      " + line)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--networks", nargs="+", default=KINDS, help="names, or all; one of each kind unless given")
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
            write_deep(folder / "deep" / split, rng)
        write_images(folder / "flat", rng)
        for split in ("train", "val"):
            for kind in CLASSES[:2]:
                shutil.copytree(folder / "data" / split / kind, folder / "pair" / split / kind)
        write_tables(folder / "flat", rng)
        write_videos(folder / "videos", rng)
        write_pairs(folder / "pairs", rng)
        images, videos = folder / "data" / "val", folder / "videos" / "val"

        def case(title, options, data=folder / "data", shown=images, limit=args.limit):
            results.append(compare(title, args, folder / f"run{len(results)}", data, shown, options, limit))

        def begin(network):
            if network not in stoker.TORCHVISION:
                return []
            return ["--init-from", str(starting_weights(network, images, folder / "begin.pth")), "--lr", "0.0001"]

        for network in networks:
            if network in stoker.TORCHVISION and not HAS_TORCHVISION:
                continue
            case(network, ["--model", network, "--img-size", "32", *begin(network)])
        small = ["--model", "tiny_cnn", "--img-size", "32"]
        case("crop-pct 0.875, gray", [*small, "--crop-pct", "0.875", "--in-chans", "1"])
        case("bicubic", [*small, "--interpolation", "bicubic"])
        case("letterbox", [*small, "--train-crop", "letterbox", "--eval-crop", "letterbox"])
        case("the whole image squeezed, lanczos, mean and std", [*small, "--interpolation", "lanczos", "--eval-crop", "none", "--mean", "0.4,0.5,0.6", "--std", "0.2,0.3,0.25"])
        case("averaged weights, mirrored as well", [*small, "--model-ema", "--tta", "hflip"])
        if HAS_TORCHVISION:
            case("resnet18 of one channel", ["--model", "resnet18", "--img-size", "32", "--in-chans", "1"])
        case("width 16", ["--model", "small_cnn", "--width", "16", "--img-size", "40"])
        case("binary", [*small, "--task", "binary", "--threshold", "0.4"], folder / "pair")
        case("16 bits over a range", [*small, "--in-chans", "1", "--input-range", "900,1300"], folder / "deep", folder / "deep" / "val")
        case("padding of TensorFlow", ["--model", "spectrogram_cnn", "--same-padding", "--img-size", "36"])
        case("regression", [*small, "--task", "regression"], folder / "flat" / "numbers")
        case("multilabel", [*small, "--task", "multilabel"], folder / "flat" / "labels")
        for backbone in ("tiny_cnn", "resnet18", "efficientnet_b0", "mobilenet_v3_small")[:4 if HAS_TORCHVISION else 1]:
            case(f"two_stream_convlstm of {backbone}",
                 ["--model", "two_stream_convlstm", "--backbone", backbone, "--lstm-channels", "8", "--img-size", "32",
                  "--clip-frames", "4", "--dataset", "clips", "--batch-size", "2", *begin(backbone)], folder / "videos", videos, CLIP_LIMIT)
        pairs = ["--model", "two_stream_convlstm", "--backbone", "tiny_cnn", "--lstm-channels", "8", "--img-size", "32",
                 "--clip-frames", "4", "--dataset", "clips", "--batch-size", "2"]
        for title, more in (("", []), (", cut from the middle, mirrored as well", ["--crop-pct", "0.8", "--tta", "hflip"]),
                            (", squeezed", ["--eval-crop", "none"]), (", gray, apart", ["--in-chans", "1", "--frame-sampling", "stride"])):
            case(f"two_stream_convlstm of pairs{title}", [*pairs, *more], folder / "pairs", folder / "pairs" / "val", CLIP_LIMIT)
        results.append(refuses("pairs for a network of single frames", folder / f"run{len(results) - 5}", folder / "pairs" / "val",
                               "frames without partners"))
        results.append(refuses("single frames for a network of pairs", folder / f"run{len(results) - 2}", videos, "pairs of frames"))
    if not all(results):
        sys.exit(1)


if __name__ == "__main__":
    main()
