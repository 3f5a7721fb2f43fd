#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/gpu_truth.sh reads from files of `train`: one line of text each, and 1 where a figure is not as it must be."""
import json
import pathlib
import sys
import time


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def events(path, kind):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [line for line in lines if line["event"] == kind]


def line(name, code, begin, log, device, scale):
    """The JSON line of a check."""
    result = {0: "passes", 77: "unknown", 124: "timeout", 137: "timeout"}.get(int(code), "fails")
    end = pathlib.Path(log).read_text(errors="replace").strip()[-2000:]
    print(json.dumps({"check": name, "result": result, "seconds": round(time.time() - float(begin), 1), "device": device,
                      "scale": scale, "says": end}))


def check(path, device):
    """Speeds are measured, and bfloat16 is no slower than float32 on a GPU."""
    facts = read(path)
    speeds = {(s["operation"], s["dtype"], s["channels_last"]): s["gflops_per_second"] or 0 for s in facts["speed"]}
    for (operation, dtype, last), gflops in speeds.items():
        print(f"{operation} {dtype}{' channels-last' if last else ''}: {gflops:.0f} GFLOP/s")
    if speeds.get(("matmul", "float32", False), 0) <= 0:
        return "no speed was measured"
    if device.startswith("cuda") and speeds["matmul", "bfloat16", False] < 2 * speeds["matmul", "float32", False]:
        return "bfloat16 is not twice as fast as float32"
    return None


def scale(path):
    reports = events(path, "report")
    scales = [r["loss_scale"] for r in reports]
    losses = [r["train_loss"] for r in reports]
    skipped = reports[-1]["skipped_updates"]
    print(f"scales {scales[0]:g} to {min(scales):g} and {scales[-1]:g}, {skipped} skipped, loss {losses[0]:.4f} to {losses[-1]:.4f}")
    if skipped == 0 or min(scales) >= 1e12:
        return "nothing was skipped"
    return None if losses[-1] < losses[0] else "the loss does not fall"


def step(path, what):
    figures = read(path)
    rate = figures["images_per_second"]["median"]
    print(f"{what}: {rate:.0f} images/s")
    return None if rate > 0 else "no images"


def feed(path, least):
    figures = read(path)
    print(json.dumps({key: value for key, value in figures.items() if isinstance(value, (int, float))})[:600])
    efficiency = figures["feed_efficiency_percent"]
    print(f"feed efficiency {efficiency:.1f} %")
    return None if efficiency >= float(least) else f"below {least} %"


def memory(path, what, device):
    plan = read(path)
    predicted, observed = plan["predicted"], plan["observed"]
    if device.startswith("cuda"):
        predicted_bytes, seen = predicted["device"]["bytes"], observed["device_allocated_bytes"]
        print(f"{what}: predicted {predicted_bytes / 1e9:.2f} GB, allocated {seen / 1e9:.2f} GB, reserved {observed['device_bytes'] / 1e9:.2f} GB")
    else:
        predicted_bytes, seen = predicted["host"]["bytes"], observed["host_bytes"]
        print(f"{what}: predicted {predicted_bytes / 1e9:.3f} GB, observed {seen / 1e9:.3f} GB")
    return None if abs(predicted_bytes - seen) <= 0.1 * seen else f"{100 * (predicted_bytes / seen - 1):+.0f} %"


def calls(path, updates):
    counts = {name: int(count) for name, count in (row.split() for row in pathlib.Path(path).read_text().splitlines())}
    for name, count in sorted(counts.items()):
        print(f"{name}: {count / float(updates):.2f} per update")
    waits = sum(counts.get(name, 0) for name in ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize"))
    # A run begins, validates and saves; none of that is a part of an update.
    return None if waits < 0.5 * float(updates) else "an update waits for the device"


def saving(path):
    saves = events(path, "checkpoint")
    later = saves[1:] or saves  # the first one takes the memory of the copy
    for save in saves:
        print(f"{save['bytes'] / 1e6:.1f} MB: written in {1e3 * save['seconds']:.1f} ms, training waited {1e3 * save['stall_seconds']:.1f} ms")
    if not later:
        return "nothing was saved"
    return None


def best(path, least):
    epochs = events(path, "epoch")
    value = max(epoch["eval_top1"] for epoch in epochs)
    print(f"top1 {value:.2f} % after {len(epochs)} epochs, {sum(epoch['train_seconds'] for epoch in epochs):.1f} s of training")
    return None if value >= float(least) else f"below {least} %"


if __name__ == "__main__":
    problem = globals()[sys.argv[1]](*sys.argv[2:])
    if problem:
        print(problem)
        sys.exit(1)
