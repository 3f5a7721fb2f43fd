#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small data sets laid out as public ones are after unpacking, and trains on each for an epoch with --data-dir alone
(Kaggle's list of ids has no validation split and needs one option more).
usage: published_data.py TRAIN [NAME]: the program, and the one data set to try."""
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import zlib

CLASSES = 3


def png(colour, side=32):
    """A square of one colour with some noise. The content of a file decides about its format, whatever its name is."""
    rows = b"".join(b"\0" + bytes(min(255, max(0, c + random.randint(-9, 9))) for _ in range(side) for c in colour)
                    for _ in range(side))
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def colour_of(label):
    return [(200, 40, 40), (40, 200, 40), (40, 40, 200)][label % 3]


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def planes(label):
    return b"".join(bytes([c]) * 1024 for c in colour_of(label))


def cifar_binary(folder):
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        write(folder, f"cifar-10-batches-bin/{name}", b"".join(bytes([k % 10]) + planes(k % 10) for k in range(20)))
    write(folder, "cifar-10-batches-bin/batches.meta.txt", "\n".join(f"class{i}" for i in range(10)) + "\n\n")


def python_batch(labels):
    """What pickle.dump({b"labels": ..., b"data": uint8[n, 3072]}) of Python 2 wrote."""
    data = b"".join(planes(k) for k in labels)
    text = lambda word: b"U" + bytes([len(word)]) + word
    array = (b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85" + text(b"b") + b"\x87R(K\1M" +
             struct.pack("<H", len(labels)) + b"M" + struct.pack("<H", 3072) + b"\x86cnumpy\ndtype\n" + text(b"u1") +
             b"K\0K\1\x87R(K\3" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89T" +
             struct.pack("<I", len(data)) + data + b"tb")
    return (b"\x80\2}(" + text(b"data") + array + text(b"labels") + b"](" +
            b"".join(b"K" + bytes([k]) for k in labels) + b"eu.")


def cifar_python(folder):
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        write(folder, f"cifar-10-batches-py/{name}", python_batch([k % 10 for k in range(20)]))
    write(folder, "cifar-10-batches-py/batches.meta",
          pickle.dumps({"label_names": [f"class{i}" for i in range(10)], "num_vis": 3072}, protocol=2))


def mnist_raw(folder):
    for split, count in (("train", 100), ("t10k", 40)):
        pixels = b"".join(bytes([25 * (k % 10)]) * 784 for k in range(count))
        write(folder, f"MNIST/raw/{split}-images-idx3-ubyte", struct.pack(">IIII", 0x803, count, 28, 28) + pixels)
        write(folder, f"MNIST/raw/{split}-labels-idx1-ubyte",
              struct.pack(">II", 0x801, count) + bytes(k % 10 for k in range(count)))


def gtsrb(folder):
    for label in range(CLASSES):
        rows = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
        for k in range(8):
            write(folder, f"GTSRB/Final_Training/Images/{label:05d}/00000_{k:05d}.ppm", png(colour_of(label)))
            rows.append(f"00000_{k:05d}.ppm;32;32;5;5;27;27;{label}")
        write(folder, f"GTSRB/Final_Training/Images/{label:05d}/GT-{label:05d}.csv", "\n".join(rows) + "\n")
    rows = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
    for k in range(9):
        write(folder, f"GTSRB/Final_Test/Images/{k:05d}.ppm", png(colour_of(k % CLASSES)))
        rows.append(f"{k:05d}.ppm;32;32;5;5;27;27;{k % CLASSES}")
    write(folder, "GTSRB/GT-final_test.csv", "\n".join(rows) + "\n")


def kaggle_ids(folder):
    breeds = ["boxer", "pug", "whippet"]
    rows = ["id,breed"]
    for k in range(60):
        write(folder, f"train/{k:08x}.jpg", png(colour_of(k % CLASSES)))
        write(folder, f"test/{k + 100:08x}.jpg", png(colour_of(k % CLASSES)))
        rows.append(f"{k:08x},{breeds[k % CLASSES]}")
    write(folder, "labels.csv", "\n".join(rows) + "\n")
    return ["--val-fraction", "0.2"]


def oxford_pets(folder):
    breeds = ["Abyssinian", "beagle", "great_dane"]
    lists = {"trainval": [], "test": []}
    for k in range(30):
        label = k % CLASSES
        name = f"{breeds[label]}_{k}"
        write(folder, f"images/{name}.jpg", png(colour_of(label)))
        lists["test" if k >= 21 else "trainval"].append(f"{name} {label + 1} {1 if label == 0 else 2} 1")
    for name, rows in lists.items():
        write(folder, f"annotations/{name}.txt", "\n".join(rows) + "\n")
    write(folder, "annotations/list.txt", "#Image CLASS-ID SPECIES BREED ID\n" + "\n".join(sum(lists.values(), [])) + "\n")
    write(folder, "annotations/xmls/Abyssinian_0.xml", "<annotation></annotation>")


def tiny_imagenet(folder):
    root, wnids = "tiny-imagenet-200", ["n01443537", "n01629819", "n01641577"]
    rows = []
    for label, wnid in enumerate(wnids):
        for k in range(8):
            write(folder, f"{root}/train/{wnid}/images/{wnid}_{k}.JPEG", png(colour_of(label), 64))
        write(folder, f"{root}/train/{wnid}/{wnid}_boxes.txt", f"{wnid}_0.JPEG\t0\t0\t63\t63\n")
    for k in range(9):
        write(folder, f"{root}/val/images/val_{k}.JPEG", png(colour_of(k % CLASSES), 64))
        rows.append(f"val_{k}.JPEG\t{wnids[k % CLASSES]}\t0\t0\t62\t62")
        write(folder, f"{root}/test/images/test_{k}.JPEG", png(colour_of(k % CLASSES), 64))
    write(folder, f"{root}/val/val_annotations.txt", "\n".join(rows) + "\n")
    write(folder, f"{root}/wnids.txt", "\n".join(reversed(wnids)) + "\n")
    write(folder, f"{root}/words.txt", "n01443537\tgoldfish\n")


def flat_imagenet(folder):
    for label, wnid in enumerate(["n01440764", "n01443537", "n01484850"]):
        for k in range(8):
            write(folder, f"train/{wnid}/{wnid}_{k}.JPEG", png(colour_of(label), 64))
    for k in range(9):
        write(folder, f"val/ILSVRC2012_val_{k + 1:08d}.JPEG", png(colour_of(k % CLASSES), 64))
    write(folder, "ILSVRC2012_validation_ground_truth.txt", "".join(f"{k % CLASSES + 1}\n" for k in range(9)))


DATA_SETS = {
    "cifar_binary": (cifar_binary, "100 training and 20 validation images, 10 classes"),
    "cifar_python": (cifar_python, "100 training and 20 validation images, 10 classes"),
    "mnist_raw": (mnist_raw, "100 training and 40 validation images, 10 classes"),
    "gtsrb": (gtsrb, "24 training and 9 validation images, 3 classes"),
    "kaggle_ids": (kaggle_ids, "validation images, 3 classes"),
    "oxford_pets": (oxford_pets, "21 training and 9 validation images, 3 classes"),
    "tiny_imagenet": (tiny_imagenet, "24 training and 9 validation images, 3 classes"),
    "flat_imagenet": (flat_imagenet, "24 training and 9 validation images, 3 classes"),
}


def main():
    program, wanted, failed = sys.argv[1], sys.argv[2:] or list(DATA_SETS), 0
    random.seed(1)
    for name in wanted:
        make, expected = DATA_SETS[name]
        with tempfile.TemporaryDirectory() as place:
            data = pathlib.Path(place) / "data"
            options = make(data) or []
            command = [program, "--data-dir", str(data), *options, "--epochs", "1"]
            ran = subprocess.run(command + ["--run-dir", f"{place}/run"], capture_output=True, text=True)
            printed = ran.stdout + ran.stderr
            good = ran.returncode == 0 and expected in printed
            failed += not good
            line = next((line for line in printed.splitlines() if line.startswith("data ")), "")
            print(f"{'ok    ' if good else 'FAILED'} {name:14} exit={ran.returncode} {' '.join(command[3:])}: {line}")
            for note in printed.splitlines():
                if note.startswith("note") or not good:
                    print("       " + note.replace(place, ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
