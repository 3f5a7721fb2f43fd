#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a network of timm's that `train` does not have, by way of TorchScript, and checks what became of it.

    scripts/prove_torchscript.py --train build/release/apps/train --timm path/to/pytorch-image-models --data photos

Needs torch (Debian: python3-torch) and timm's sources, of a release that runs under it (0.6.13 under torch 1.13). `--data` has
train/CLASS/*.jpg and val/ or test/CLASS/*.jpg. In a temporary folder, or --work:

1. timm makes the network, torch.jit.script() writes it; Python writes 10 images' outputs beside it.
2. `train` trains it for an epoch on half of the classes' images (--per-class), and exports it: the start of the rest.
3. Fine-tuning of that file with --freeze, an average of the weights, dropout as the network has it: once in one piece, once
   killed (SIGKILL) --kills times at random moments and started again by the same command. Every file of the last
   checkpoint that holds numbers must be the same, bit for bit.
4. The run is exported as TorchScript and safetensors. Python loads both: the outputs for the images of the test vectors must
   agree within 1e-5 of a probability, the weights must be the same numbers, frozen ones those that it began with, and
   the loaded network must train: a backward pass reaches every parameter.

Ends with 1 where one of these is false.
"""
import argparse
import json
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import torch

NUMBERS = ("model.safetensors", "model_ema.safetensors", "optimizer.safetensors", "random.safetensors")
DTYPES = {"F32": torch.float32, "I64": torch.int64, "U8": torch.uint8, "F64": torch.float64, "I32": torch.int32}


def read_safetensors(path):
    content = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        part = content[8 + length + begin:8 + length + end]
        tensors[name] = torch.frombuffer(part, dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def run(words, expected=0):
    print("$", " ".join(str(word) for word in words), flush=True)
    ended = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if ended.returncode != expected:
        sys.exit(f"ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout + ended.stderr


def picked(text, *words):
    for line in text.splitlines():
        if any(line.lstrip().startswith(word) for word in words):
            print("   ", line.strip())


def link_images(data, folder, per_class, classes):
    """`per_class` training images and a fifth of that for validation, of every class."""
    names = sorted(path.name for path in (data / "train").iterdir() if path.is_dir())[:classes]
    val = data / ("val" if (data / "val").is_dir() else "test")
    for split, source, count in (("train", data / "train", per_class), ("val", val, max(1, per_class // 5))):
        for name in names:
            (folder / split / name).mkdir(parents=True)
            for path in sorted((source / name).iterdir())[:count]:
                (folder / split / name / path.name).symlink_to(path.resolve())
    return names


def write_network(args, classes, file):
    sys.path.insert(0, str(args.timm))
    import timm
    torch.manual_seed(7)
    network = timm.create_model(args.network, num_classes=classes, drop_rate=0.2)
    torch.jit.script(network).save(str(file))
    print(f"timm {timm.__version__}, torch {torch.__version__}: {args.network}, "
          f"{sum(p.numel() for p in network.parameters()):,} parameters, {len(list(network.named_buffers()))} buffers")
    return network


def newest_update(run_dir):
    return max((int(path.name[5:]) for path in (run_dir / "checkpoints").glob("step-*") if path.name[5:].isdigit()), default=0)


def train_until_done(words, run_dir, kills, rng):
    """Kills it up to `kills` times, at random moments after it has saved some further checkpoints; then lets it end."""
    done = []
    while True:
        with open(run_dir.parent / "killed.log", "a") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log)
        before, further = newest_update(run_dir), 10 * rng.randint(1, 3)
        while process.poll() is None and len(done) < kills:
            if newest_update(run_dir) >= before + further:
                time.sleep(rng.uniform(0, 0.3))
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        code = process.wait()
        if code == 0:
            return done
        if code != -signal.SIGKILL:
            sys.exit(f"ended with {code}; see {run_dir.parent / 'killed.log'}")
        done.append(newest_update(run_dir))


def differing(one, other):
    files = [name for name in NUMBERS if (one / name).exists() or (other / name).exists()]
    return files, [name for name in files if (one / name).read_bytes() != (other / name).read_bytes()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, default="build/release/apps/train")
    parser.add_argument("--timm", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--network", default="regnety_002")
    parser.add_argument("--freeze", default="stem", help="pattern of what rests while fine-tuning")
    parser.add_argument("--per-class", type=int, default=100)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--img-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--amp", action="store_true", help="fine-tune in bfloat16")
    parser.add_argument("--work", type=pathlib.Path)
    args = parser.parse_args()
    work = args.work or pathlib.Path(tempfile.mkdtemp(prefix="stoker-torchscript-"))
    work.mkdir(parents=True, exist_ok=True)
    rng, failed = random.Random(args.seed), []

    data = work / "data"
    names = link_images(args.data, data, args.per_class, args.classes)
    made = work / "network.ts"
    write_network(args, len(names), made)
    common = [args.train, "--trust-model", "--data-dir", data, "--img-size", args.img_size, "--threads", args.threads,
              "--batch-size", 32, "--num-workers", 1]
    picked(run([*common, "--model", made, "--epochs", 1, "--no-amp", "--run-dir", work / "first"]), "model", "memory", "compute",
           "epoch 1/1 done", "train:")
    began = work / "began.pt"
    picked(run([args.train, "export", work / "first", "--trust-model", "--output", began, "--check"]), "checked")

    words = [*common, "--model", began, "--epochs", args.epochs, "--freeze", args.freeze, "--model-ema", "--opt", "adamw", "--lr",
             "0.002", "--save-every", "10u", "--amp" if args.amp else "--no-amp", "--aa", "rand-m1.667-n1"]
    whole, killed = work / "whole", work / "killed"
    picked(run([*words, "--run-dir", whole]), "model", "recipe", "memory", "best", "train:",
           *(f"epoch {n}/{args.epochs} done" for n in range(1, args.epochs + 1)))
    kills = train_until_done([str(word) for word in [*words, "--run-dir", killed]], killed, args.kills, rng)
    files, different = differing(whole / "checkpoints/last", killed / "checkpoints/last")
    print(f"killed {len(kills)} times, with checkpoints of updates {kills} as the newest: {len(files)} files of numbers "
          f"compared ({', '.join(files)}), {len(different)} differ")
    if different or not kills:
        failed.append(f"bits: {different}, killed {len(kills)} times")

    exported, weights = work / "exported.pt", work / "exported.safetensors"
    some = sorted((data / "val" / names[0]).iterdir())[:10]
    picked(run([args.train, "export", killed, *some, "--trust-model", "--output", exported, "--check"]), "checked", "written")
    picked(run([args.train, "export", killed, "--output", weights]), "written")
    extra = {"class_names": "", "preprocess": "", "updates": ""}
    network = torch.jit.load(str(exported), _extra_files=extra)
    vectors = read_safetensors(exported.with_suffix(".vectors.safetensors"))
    with torch.no_grad():
        logits = network(vectors["images"])
    difference = (logits.softmax(1) - vectors["logits"].softmax(1)).abs().max().item()
    print(f"Python loads {exported.name} ({json.loads(extra['class_names'])[:3]}..., {int(extra['updates'])} updates): "
          f"probabilities of {len(logits)} images differ by at most {difference:.2g}")
    if not difference <= 1e-5:
        failed.append("Python predicts otherwise")
    state, saved = network.state_dict(), read_safetensors(weights)
    same = set(state) == set(saved) and all(torch.equal(state[name], saved[name]) for name in state)
    print(f"{len(saved)} tensors of {weights.name} and of the TorchScript file: {'the same' if same else 'not the same'}")
    start = torch.jit.load(str(began)).state_dict()
    rest = [name for name, _ in network.named_parameters() if name.split(".")[0] == args.freeze]
    moved = [name for name, _ in network.named_parameters() if not torch.equal(state[name], start[name])]
    print(f"{len(rest)} parameters were frozen, {len(moved)} of the other {len(list(network.parameters())) - len(rest)} moved")
    if not same or not rest or set(rest) & set(moved) or not moved:
        failed.append("weights")
    network.train()
    network(vectors["images"]).logsumexp(1).sum().backward()
    without = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    print(f"in Python it trains on: gradients reach all but {len(without)} parameters")
    if without:
        failed.append(f"no gradients: {without[:5]}")

    other = work / "other.ts"
    shutil.copy(made, other)
    text = run([*words[:words.index("--model") + 1], other, *words[words.index("--model") + 2:], "--run-dir", whole], expected=78)
    picked(text, "--model")
    text = run([args.train, "eval", killed], expected=78)
    picked(text, "error")
    picked(run([args.train, "eval", killed, "--trust-model"]), "images")
    print("failed: " + "; ".join(failed) if failed else "all of it holds")
    if args.work is None and not failed:
        shutil.rmtree(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
