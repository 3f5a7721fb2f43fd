#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our loader of sounds against torchaudio in a PyTorch DataLoader on the same files, in turn, several times.

    scripts/bench/sounds_vs_torchaudio.py --train build/release/apps/train --rounds 5 sounds/wav sounds/flac sounds/mp3

Each folder holds class folders of files. Both draw an excerpt of --seconds, resample it to 16 kHz, and make a log-mel
spectrogram (n_fft 400, hop 200, 128 mels). torchaudio runs twice: with load() of the whole file, and with
load(frame_offset, num_frames) of the excerpt alone. Workers and batch are equal; the first epoch of each run warms up and
does not count.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

RATE, PEERS = 16000, {"torchaudio, whole files": "whole", "torchaudio, excerpts": "excerpts"}


def peer(args):
    import torch  # pylint: disable=import-error,import-outside-toplevel
    import torchaudio  # pylint: disable=import-error,import-outside-toplevel
    torch.set_num_threads(1)

    class Sounds(torch.utils.data.Dataset):
        def __init__(self):
            self.paths = sorted(str(path) for path in args.folders[0].rglob("*") if path.is_file())
            self.mel = torchaudio.transforms.MelSpectrogram(RATE, n_fft=400, hop_length=200, n_mels=128)
            self.decibels = torchaudio.transforms.AmplitudeToDB()
            self.resamplers = {}

        def __len__(self):
            return len(self.paths)

        def excerpt(self, path):
            if args.peer == "whole":
                sound, rate = torchaudio.load(path)
                frames = sound.shape[1]
            else:
                about = torchaudio.info(path)
                rate, frames = about.sample_rate, about.num_frames
            wanted = int(args.seconds * rate)
            begin = int(torch.rand(()) * max(1, frames - wanted))
            if args.peer == "whole":
                return sound[:, begin:begin + wanted], rate
            return torchaudio.load(path, frame_offset=begin, num_frames=wanted)

        def __getitem__(self, index):
            sound, rate = self.excerpt(self.paths[index])
            sound = sound.mean(0)
            if rate != RATE:
                resampler = self.resamplers.setdefault(rate, torchaudio.transforms.Resample(rate, RATE))
                sound = resampler(sound)
            wanted = int(args.seconds * RATE)
            sound = torch.nn.functional.pad(sound, (0, max(0, wanted - sound.shape[0])))[:wanted]
            return self.decibels(self.mel(sound))

    sounds = Sounds()
    loader = torch.utils.data.DataLoader(sounds, batch_size=args.batch_size, shuffle=True, num_workers=args.workers,
                                         persistent_workers=True)
    rates = []
    for _ in range(args.epochs):
        begin = time.monotonic()
        for _ in loader:
            pass
        rates.append(len(sounds) / (time.monotonic() - begin))
    print(statistics.median(rates[1:]))


def output_of(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return done.stdout


def our_rate(args, folder):
    text = output_of([args.train, "bench", "loader", "--json", "--data-dir", str(folder), "--seconds",
                      str(args.seconds), "--num-workers", str(args.workers), "--batch-size", str(args.batch_size)])
    return text and json.loads(text)["images_per_second"]["median"]


def peer_rate(args, folder, name):
    text = output_of([args.python, __file__, str(folder), "--peer", name, "--seconds", str(args.seconds), "--workers",
                      str(args.workers), "--batch-size", str(args.batch_size), "--epochs", str(args.epochs)])
    return text and float(text.split()[-1])


def print_row(folder, name, rates, ours):
    if None in rates:
        print(f"| {folder} | {name} | cannot read them | |")
        return
    ratios = [mine / rate for mine, rate in zip(ours, rates)]
    print(f"| {folder} | {name} | {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) | "
          f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--train", default="build/release/apps/train", metavar="PROGRAM")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--epochs", type=int, default=3, help="of torchaudio, the first included")
    parser.add_argument("--peer", choices=PEERS.values(), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        peer(args)
        return
    print("| files | loader | files/s, median (range) | ours / it, median of pairs (range) |\n|---|---|---|---|")
    for folder in args.folders:
        rounds = []
        for _ in range(args.rounds):
            rounds.append([our_rate(args, folder)] + [peer_rate(args, folder, name) for name in PEERS.values()])
        ours = [one[0] for one in rounds]
        print_row(folder.name, "train bench loader", ours, ours)
        for i, name in enumerate(PEERS):
            print_row(folder.name, name, [one[i + 1] for one in rounds], ours)


if __name__ == "__main__":
    main()
