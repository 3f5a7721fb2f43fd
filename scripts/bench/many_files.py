#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many small images: how long the scan takes with a cold page cache, what the list of samples costs in memory, and how
often the storage is accessed per image, loose and packed.

    scripts/bench/many_files.py --train build/release/apps/train --work /tmp/many --images 100000

Makes distinct JPEGs in class folders (kept for the next run), packs them, and then, each in a fresh process:
  scan     train --dry-run with a cold cache: seconds and bytes per image as the program prints them, and how much more
           resident memory the whole process has than with 1,000 images
  read     every image once, with a cold cache, by `train pack` into a folder that is thrown away
  calls    the same under strace: system calls that reach the storage, per image
Without root the page cache is emptied file by file with posix_fadvise, which keeps names and inodes cached; the output notes it.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import cv2
import numpy as np

CALLS = ("open", "openat", "newfstatat", "fstat", "stat", "lstat", "statx", "read", "pread64", "getdents64", "close")


def make_images(folder, images, classes=100):
    """images / classes JPEGs of 48x48 pixels in each class folder, and 2 per class to validate on."""
    done = folder / "made.txt"
    if done.exists() and done.read_text() == str(images):
        return
    shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng(1)
    base = rng.integers(0, 256, (classes, 6, 6, 3), dtype=np.uint8)
    for split, count in (("train", images // classes), ("val", 2)):
        for label in range(classes):
            place = folder / split / f"class{label:03}"
            place.mkdir(parents=True)
            for number in range(count):
                cells = base[label] ^ rng.integers(0, 64, (6, 6, 3), dtype=np.uint8)
                pixels = cv2.resize(cells, (48, 48), interpolation=cv2.INTER_CUBIC)
                (place / f"{number:06}.jpg").write_bytes(cv2.imencode(".jpg", pixels)[1].tobytes())
    done.write_text(str(images))


def empty_page_cache(folder):
    """Returns how."""
    os.sync()
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return "drop_caches"
    except OSError:
        for path in folder.rglob("*"):
            if path.is_file():
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
        return "posix_fadvise per file (names and inodes stay cached)"


def run(command, env=None):
    """Wall seconds, peak resident bytes and output of a process that must succeed."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {os.waitstatus_to_exitcode(status)}:\n{output[-2000:]}")
    return time.monotonic() - begin, usage.ru_maxrss * 1024, output


class Bench:
    def __init__(self, args):
        self.train = args.train
        self.work = pathlib.Path(args.work)
        self.env = dict(os.environ, OMP_NUM_THREADS="1")

    def pack(self, source, target, *more):
        shutil.rmtree(target, ignore_errors=True)
        return run([self.train, "pack", source, target, "--num-workers", "2", *more], self.env)[0]

    def scan(self, data):
        cold = empty_page_cache(data)
        _, peak, output = run([self.train, "--data-dir", data, "--dry-run", "--log-level", "debug", "--threads", "1",
                               "--num-workers", "0", "--device", "cpu"], self.env)
        seconds = float(re.search(r"scan: ([\d.]+) s", output)[1])
        list_bytes = float(re.search(r"scan: \d+ images, ([\d.]+) bytes", output)[1])
        return cold, seconds, list_bytes, peak

    def calls(self, data):
        """System calls on files below `data`, per image."""
        target, log = self.work / "thrown-away", self.work / "strace.log"
        shutil.rmtree(target, ignore_errors=True)
        run(["strace", "-f", "-y", "-qq", "-e", "trace=" + ",".join(CALLS), "-o", log, self.train, "pack", data, target,
             "--split", "train", "--num-workers", "1"], self.env)
        counts = collections.Counter()
        with open(log, errors="replace") as lines:
            for line in lines:
                if str(data) in line:
                    counts[re.match(r"\d+\s+(\w+)", line)[1] if re.match(r"\d+\s+(\w+)\(", line) else "resumed"] += 1
        shutil.rmtree(target)
        log.unlink()
        return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--work", required=True, help="folder for images and shards, about 6 KB per image")
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--traced-images", type=int, default=10_000, help="for strace, which is slow")
    args = parser.parse_args()
    bench = Bench(args)
    sets = {count: bench.work / f"loose{count}" for count in (1_000, args.traced_images, args.images)}
    for count, folder in sets.items():
        make_images(folder, count)
        bench.pack(folder, bench.work / f"packed{count}")
    print(f"{args.images} JPEGs of 48x48 pixels in 100 class folders and 200 to validate on")
    for kind in ("loose", "packed"):
        _, _, _, small_peak = bench.scan(bench.work / f"{kind}1000")
        data = bench.work / f"{kind}{args.images}"
        cold, seconds, list_bytes, peak = bench.scan(data)
        print(f"scan, {kind}: {seconds:.2f} s cold ({cold}); {list_bytes:.1f} bytes per image by its own account, "
              f"{(peak - small_peak) / (args.images - 1000):.0f} by peak resident memory")
    for kind in ("loose", "packed"):
        data = bench.work / f"{kind}{args.images}"
        empty_page_cache(data)
        seconds = bench.pack(data, bench.work / "thrown-away")
        shutil.rmtree(bench.work / "thrown-away")
        print(f"read all, {kind}: {seconds:.2f} s cold, scan included: {args.images / seconds:,.0f} images/s")
    for kind in ("loose", "packed"):
        counts = bench.calls(bench.work / f"{kind}{args.traced_images}")
        per_image = {call: count / args.traced_images for call, count in counts.most_common() if call != "resumed"}
        print(f"calls per image, {kind}: {sum(per_image.values()):.2f} ("
              + ", ".join(f"{call} {count:.3f}" for call, count in per_image.items()) + ")")


if __name__ == "__main__":
    main()
