#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clips of video files: our loader beside a PyTorch DataLoader with PyAV and with OpenCV, in turn, several times.

    scripts/bench/videos_vs_peers.py --train build/release/apps/train [--work FOLDER] [--rounds 5]

Makes H.264 videos with ffmpeg in the work folder. A sample is eight frames of a video, spread over it, each cut to its middle
and resized to 224. All have the same number of workers; one thread of a decoder each. The first epoch warms up.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FRAMES, SIDE = 8, 224


def make_videos(folder, count, seconds, size):
    for i in range(count):
        path = folder / ("a" if i % 2 else "b") / f"{i:03}.mp4"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = ("mandelbrot", "testsrc2", "life=mold=10:ratio=0.1:death_color=#C83232:life_color=#00ff00")[i % 3]
        separator = ":" if "=" in kind else "="
        given = f"{kind}{separator}size={size}:rate=25"
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", given, "-t", str(seconds), "-c:v",
                        "libx264", "-preset", "medium", "-crf", "23", "-pix_fmt", "yuv420p", "-g", "50", str(path)],
                       check=True)


def middles(available):
    return [(2 * i + 1) * available // (2 * FRAMES) for i in range(FRAMES)]


def shown(cv2, frame):
    height, width = frame.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return cv2.resize(frame[top:top + side, left:left + side], (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def clip_of_pyav(path):
    import av
    import cv2
    import numpy as np
    frames = []
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        stream.thread_count = 1
        step = 1 / stream.average_rate / stream.time_base
        for number in middles(stream.frames):
            time_of = int(number * step) + (stream.start_time or 0)
            file.seek(time_of, stream=stream)
            for frame in file.decode(stream):
                if frame.pts >= time_of:
                    frames.append(shown(cv2, frame.to_ndarray(format="rgb24")))
                    break
    return np.stack(frames)


def clip_of_opencv(path):
    import cv2
    import numpy as np
    file = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    frames = []
    for number in middles(int(file.get(cv2.CAP_PROP_FRAME_COUNT))):
        file.set(cv2.CAP_PROP_POS_FRAMES, number)
        frames.append(shown(cv2, cv2.cvtColor(file.read()[1], cv2.COLOR_BGR2RGB)))
    return np.stack(frames)


PEERS = {"DataLoader, PyAV": clip_of_pyav, "DataLoader, OpenCV": clip_of_opencv}


class Clips:
    def __init__(self, paths, read):
        self.paths, self.read = paths, read

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.read(self.paths[index])


def start_worker(_):
    import cv2
    cv2.setNumThreads(0)


def peer_rate(paths, read, args):
    import torch
    loader = torch.utils.data.DataLoader(Clips(paths, read), batch_size=args.batch_size, shuffle=True,
                                         num_workers=args.workers, persistent_workers=True, worker_init_fn=start_worker)
    rates = []
    for _ in range(args.epochs):
        start = time.monotonic()
        clips = sum(len(batch) for batch in loader)
        rates.append(clips / (time.monotonic() - start))
    return statistics.median(rates[1:])


def our_rate(folder, args):
    words = [args.train, "bench", "loader", "--json", "--data-dir", str(folder), "--val-split", "none", "--clip-frames",
             str(FRAMES), "--img-size", str(SIDE), "--train-crop", "none", "--num-workers", str(args.workers),
             "--batch-size", str(args.batch_size)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)["images_per_second"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--size", default="640x360")
    args = parser.parse_args()
    folder = args.work or pathlib.Path(tempfile.mkdtemp())
    make_videos(folder, args.videos, args.seconds, args.size)
    paths = sorted(folder.glob("*/*.mp4"))
    rates = {"train bench loader": []}
    for _ in range(args.rounds):
        rates["train bench loader"].append(our_rate(folder, args))
        for name, read in PEERS.items():
            rates.setdefault(name, []).append(peer_rate(paths, read, args))
    ours = rates["train bench loader"]
    for name, values in rates.items():
        ratios = [mine / value for mine, value in zip(ours, values)]
        print(f"{name:20} {statistics.median(values):6.2f} clips/s ({min(values):.2f} to {max(values):.2f}), ours / it "
              f"{statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
