#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps on a CPU: `train bench step` with everything automatic against PyTorch's best.

    scripts/bench/step_vs_pytorch.py                                  # this CPU; about eight minutes on two cores
    scripts/bench/step_vs_pytorch.py --kind avx2 --kind avx512 --kind native

PyTorch (torchvision's networks, SGD with momentum, random images in memory) is tried with one thread and with all, in both
layouts, in float32 and under autocast to bfloat16; its fastest way then runs in turn with `train`, five rounds. Kinds of CPU
are brought back by the switches of oneDNN, ATen and OpenBLAS, for both sides. Images are 224 pixels wide. Wants Python's
torch and torchvision. Prints a table; exit 0 when every ratio reaches --least.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

MODELS = ("resnet18", "efficientnet_b0", "convnext_tiny", "vit_s_16")
KINDS = {
    "native": {},
    "avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "ATEN_CPU_CAPABILITY": "avx512", "OPENBLAS_CORETYPE": "SkylakeX"},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Haswell"},
}
SIDE = 224


# ---- PyTorch, in a process of its own -------------------------------------------------------------------------------

def make_network(name):
    import torchvision
    if name == "vit_s_16":
        return torchvision.models.VisionTransformer(image_size=SIDE, patch_size=16, num_layers=12, num_heads=6,
                                                    hidden_dim=384, mlp_dim=1536)
    return getattr(torchvision.models, name)()


def peer(name, batch, way, seconds):
    """images/s of updates that take `seconds` at least, behind two that are not counted."""
    import torch
    threads, channels_last, bfloat16 = way
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    network = make_network(name).to(memory_format=layout)
    images = torch.randn(batch, 3, SIDE, SIDE).contiguous(memory_format=layout)
    labels = torch.randint(0, 1000, (batch,))
    optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    criterion = torch.nn.CrossEntropyLoss()

    def update():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            loss = criterion(network(images), labels)
        loss.backward()
        optimizer.step()

    for _ in range(2):
        update()
    begin, updates = time.perf_counter(), 0
    while updates < 2 or time.perf_counter() - begin < seconds:
        update()
        updates += 1
    return batch * updates / (time.perf_counter() - begin)


# ---- both sides -----------------------------------------------------------------------------------------------------

def run(command, environment):
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    return done.stdout if done.returncode == 0 else None


def peer_rate(name, batch, way, seconds, environment):
    out = run([sys.executable, __file__, "--peer", json.dumps([name, batch, way, seconds])], environment)
    return float(out) if out else 0.0  # a way that this CPU has no code for


def own_rate(train, name, batch, environment):
    out = run([train, "bench", "step", "--model", name, "--img-size", str(SIDE), "--batch-size", str(batch), "--num-classes",
               "1000", "--json"], environment)
    if out is None:
        sys.exit(f"step_vs_pytorch: {train} bench step --model {name} failed with {environment}")
    found = json.loads(out)
    return found["images_per_second"]["median"], found["precision"]


def way_text(way):
    threads, channels_last, bfloat16 = way
    return f"{'bfloat16' if bfloat16 else 'float32'}, channels-{'last' if channels_last else 'first'}, {threads} threads"


def compare(args, kind, name):
    environment = KINDS[kind]
    cpus = len(os.sched_getaffinity(0))
    ways = list(itertools.product(sorted({1, cpus}), (False, True), (False, True)))
    tried = {way: peer_rate(name, args.batch_size, way, 2, environment) for way in ways}
    best = max(tried, key=tried.get)
    ours, theirs, precision = [], [], ""
    for _ in range(args.rounds):
        rate, precision = own_rate(args.train, name, args.batch_size, environment)
        ours.append(rate)
        theirs.append(peer_rate(name, args.batch_size, best, 4, environment))
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    print(f"| {kind} | {name} | {statistics.median(theirs):.1f} ({way_text(best)}) | {statistics.median(ours):.1f} ({precision}) "
          f"| {ratio:.2f} ({min(a / b for a, b in zip(ours, theirs)):.2f} to {max(a / b for a, b in zip(ours, theirs)):.2f}) |",
          flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="default: native")
    parser.add_argument("--model", action="append", choices=MODELS, help="default: all four")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--least", type=float, default=1.0, help="ratio that every network has to reach")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        print(peer(*json.loads(args.peer)))
        return 0
    print("| kind | network | PyTorch's best, images/s | train, images/s | ratio, median (range) |\n|---|---|---|---|---|")
    ratios = [compare(args, kind, name) for kind in args.kind or ["native"] for name in args.model or MODELS]
    return 0 if min(ratios) >= args.least else 1


if __name__ == "__main__":
    sys.exit(main())
