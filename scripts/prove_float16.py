#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""float16 with the loss scaler, on a CPU: scales beside PyTorch's own, learning beside bfloat16's, kills while the scale moves.

    scripts/prove_float16.py --train build/release/apps/train --data-dir /path/to/fashion-mnist

    scales  planted gradients, finite and not, go through our scaler and through torch.amp.GradScaler: scale, growth tracker
            and the gradients that are left must be the same, bit for bit, in random cases of scales, factors and intervals
    planted a run in which known updates overflow: targets are so far off there that gradients are infinite, or NaN where two of
            opposite signs meet. Every update's scale must follow PyTorch's rule, given which overflow, and equal that
            of torch.amp.GradScaler, where Python has it
    run     a run from a scale of 1e12 writes the scale of every update: torch.amp.GradScaler, given which of them overflowed,
            must have the same
    learn   the same run in float32, bfloat16 and float16, the latter from a scale of 1e12: it must skip updates, continue without
            skipping, and be as accurate as bfloat16, to within --tolerance
    kills   kill_anywhere.py with a scale that falls and grows to the end: weights, optimizer and scaler of every trial must
            be those of the run that nobody killed

Needs a LibTorch of 2.4 or later, and Python's torch of 2.3 or later for scales and run: they are left out without it. Without
--data-dir images are made. Exits 1 when one of them fails, 77 when all that were requested were left out.
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import made_idx
import made_images

HERE = pathlib.Path(__file__).resolve().parent
FLOAT16 = ["--amp", "float16", "--loss-scale", "1e12"]


def bits_of(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


def planted_cases(rng, count):
    """(initial scale, growth factor, backoff factor, interval, steps of float32 gradients as bits)."""
    for _ in range(count):
        overflows, zeros = rng.choice([0, 0.02, 0.3, 0.9]), rng.random() < 0.1
        steps = []
        for _ in range(rng.randint(1, 60)):
            row = [bits_of(0 if zeros else rng.gauss(0, 1) * 2.0 ** rng.randint(-60, 60)) for _ in range(8)]
            if rng.random() < overflows:
                row[rng.randrange(8)] = rng.choice([0x7f800000, 0xff800000, 0x7fc00000])
            steps.append(row)
        factors = rng.choice([(2, 0.5), (2, 0.5), (rng.uniform(1.1, 8), rng.uniform(0.05, 0.9))])
        yield rng.choice([1, 1e-4, 65536, 1e12, 1e30, 3e38, rng.uniform(1, 1e9)]), *factors, rng.choice([1, 2, 3, 7, 50]), steps


def ours_of(tool, cases):
    """A list of cases, each a list of steps, each (found, scale bits, tracker, gradients' bits)."""
    text = "".join(f"{init!r} {growth!r} {backoff!r} {interval} {len(steps)} 8\n" +
                   "".join(" ".join(f"{bits:08x}" for bits in row) + "\n" for row in steps)
                   for init, growth, backoff, interval, steps in cases)
    answers, case = [], []
    for line in subprocess.run([tool], input=text, capture_output=True, text=True, check=True).stdout.splitlines():
        if line == "end":
            answers.append(case)
            case = []
        else:
            words = line.split()
            case.append((int(words[0]), int(words[1], 16), int(words[2]), [int(word, 16) for word in words[3:]]))
    return answers


def pythons_of(torch, init, growth, backoff, interval, steps):
    """As ours_of() of one case, by PyTorch's own scaler between backward() and step() of an optimizer."""
    scaler = torch.amp.GradScaler("cpu", init_scale=init, growth_factor=growth, backoff_factor=backoff, growth_interval=interval)
    parameters = [torch.nn.Parameter(torch.zeros(count)) for count in (2, 6)]
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    steps_taken = []
    optimizer.register_step_post_hook(lambda *_: steps_taken.append(True))
    case = []
    for row in steps:
        scaler.scale(torch.zeros(1))  # it makes its state at the first loss
        gradient = torch.tensor(struct.unpack("<8f", struct.pack("<8I", *row)))
        parameters[0].grad, parameters[1].grad = gradient[:2].clone(), gradient[2:].clone()
        scaler.unscale_(optimizer)
        left = [number for parameter in parameters for number in parameter.grad.tolist()]
        taken = len(steps_taken)
        scaler.step(optimizer)
        scaler.update()
        case.append((int(len(steps_taken) == taken), bits_of(scaler.get_scale()), scaler._get_growth_tracker(), [bits_of(number) for number in left]))
    return case


def same_numbers(ours, pythons):
    """The same bits; any NaN for any other."""
    is_nan = [[bits & 0x7fffffff > 0x7f800000 for bits in row] for row in (ours, pythons)]
    return all(x == y or (a and b) for x, y, a, b in zip(ours, pythons, *is_nan))


def pythons_torch():
    """With torch.amp.GradScaler, if there is one."""
    try:
        import torch
    except ImportError:
        return None
    return torch if hasattr(torch.amp, "GradScaler") else None


def scales_of_rule(scale, interval, overflows):
    """The scale after each update, by the documentation of torch.cuda.amp.GradScaler: half of it where gradients are not all
    finite, twice as much after `interval` updates without that."""
    good, scales = 0, []
    for overflow in overflows:
        good = 0 if overflow else good + 1
        if overflow:
            scale *= 0.5
        elif good == interval:
            scale, good = scale * 2, 0
        scales.append(scale)
    return scales


def scales_of_torch(torch, scale, interval, overflows):
    """The same by PyTorch's own scaler."""
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scales = []
    for overflow in overflows:
        scaler.scale(torch.zeros(1))
        parameter.grad = torch.tensor([float("inf") if overflow else 1.0])
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def skips_and_scales(events, updates):
    """Of a run that reports after each update."""
    reports = {event["updates"]: event for event in events if event["event"] == "report"}
    if sorted(reports) != list(range(1, updates + 1)):
        sys.exit(f"{len(reports)} reports of {updates} updates")
    counts = [0, *(reports[update]["skipped_updates"] for update in sorted(reports))]
    return [after > before for before, after in zip(counts, counts[1:])], [reports[update]["loss_scale"] for update in sorted(reports)]


def check_scales(args, torch, rng):
    cases = list(planted_cases(rng, args.cases))
    tool = args.tool or pathlib.Path(args.train).resolve().parent.parent / "tests/optim/scaler_tool"
    steps = skips = 0
    for number, (case, ours) in enumerate(zip(cases, ours_of(tool, cases), strict=True)):
        pythons = pythons_of(torch, *case)
        for step, (mine, theirs) in enumerate(zip(ours, pythons, strict=True)):
            if mine[:3] != theirs[:3] or not same_numbers(mine[3], theirs[3]):
                print(f"scales: case {number} {case[:4]}, step {step}: ours {mine}, PyTorch's {theirs}")
                return False
            steps += 1
            skips += mine[0]
    print(f"scales: {len(cases)} cases, {steps} updates, {skips} of them skipped: scale, tracker and gradients of "
          f"torch.amp.GradScaler {torch.__version__}, bit for bit")
    return True


def train(args, run, options):
    words = [args.train, "--run-dir", str(run), "--device", "cpu", "--quiet", *options]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} ended with {ended.returncode}:\n{ended.stderr}")
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def planted_targets(folder, overflows, batch):
    """Batches of images that follow each other in files.csv; those of `overflows` hold one target that is far off (1), or one
    above and one below (2)."""
    rng = random.Random(1)
    (folder / "images").mkdir(parents=True)
    for split, kinds in (("train", overflows), ("val", [0])):
        lines = ["path,brightness"]
        for i in range(batch * len(kinds)):
            value, name = rng.random(), f"images/{split}-{i:04}.png"
            (folder / name).write_bytes(made_images.png(12, made_images.noise(rng, 12, int(120 * value))))
            far_off = {(1, 3): 1e6, (2, 3): 1e6, (2, 5): -1e6}.get((kinds[i // batch], i % batch))
            lines.append(f"{name},{far_off or value}")
        (folder / f"{split}.csv").write_text("".join(line + "\n" for line in lines))


def check_planted(args, torch, work):
    # By itself, in a row, before the scale is due to grow, as it is due, right after it grew, at the end.
    updates, interval = 80, 4
    overflows = [0] * updates
    for update, kind in {3: 1, 4: 2, 8: 1, 12: 2, 13: 1, 14: 1, 15: 2, 20: 1, 33: 2, 38: 1, 60: 1, 61: 2, 80: 1}.items():
        overflows[update - 1] = kind
    data = work / "planted"
    planted_targets(data, overflows, batch=8)
    # Neighbours are shuffled one at a time: not at all.
    events = train(args, work / "planted-run", ["--data-dir", str(data), "--task", "regression", "--loss", "l2", "--target-mean",
        "0", "--target-scale", "1", "--model", "small_cnn", "--width", "8", "--img-size", "12", "--batch-size", "8", "--shuffle-buffer",
        "1", "--epochs", "1", "--lr", "1e-4", "--optimizer", "sgd", "--sched", "constant", "--amp", "float16",
        "--loss-scale", f"64,{interval}", "--report-every", "1u", "--threads", "1", "--save-every", "never"])
    skipped, scales = skips_and_scales(events, updates)
    expected = {"the rule's": scales_of_rule(64.0, interval, overflows)}
    if torch:
        expected["PyTorch's"] = scales_of_torch(torch, 64.0, interval, overflows)
    for update, (skip, scale) in enumerate(zip(skipped, scales)):
        theirs = {whose: of_all[update] for whose, of_all in expected.items()}
        if skip != bool(overflows[update]) or any(one != scale for one in theirs.values()):
            print(f"planted: update {update + 1}: skipped {skip}, scale after it {scale}; planted {overflows[update]}, {theirs}")
            return False
    print(f"planted: {sum(skipped)} of {updates} updates overflow, those that should and no other; the scale, between {min(scales):g} and "
          f"{max(scales):g}, is {' and '.join(expected)} after each of them" + ("" if torch else " (no torch.amp.GradScaler here)"))
    return True


def check_run(args, torch, data, work):
    events = train(args, work / "run", ["--data-dir", str(data), "--model", "small_cnn", "--width", "8", "--img-size", "12",
                                        "--batch-size", "16", *FLOAT16[:-1], "1e12,5", "--epochs", "100", "--max-updates", "300",
                                        "--report-every", "1u", "--threads", "1", "--save-every", "never"])
    skipped, scales = skips_and_scales(events, 300)
    pythons = scales_of_torch(torch, 1e12, 5, skipped)
    for update, (ours, theirs) in enumerate(zip(scales, pythons), 1):
        if ours != theirs:
            print(f"run: scale after update {update}: ours {ours}, PyTorch's {theirs}")
            return False
    grown = sum(after > before for before, after in zip([1e12, *pythons], pythons))
    print(f"run: {sum(skipped)} of 300 updates skipped, {grown} times grown, from 1e12 to {pythons[-1]:g}: every scale is PyTorch's")
    return True


def check_learn(args, data, work):
    options = ["--data-dir", str(data), "--model", "small_cnn", "--width", "16", "--epochs", str(args.epochs), "--batch-size",
               "32", "--threads", str(args.threads), "--report-every", "10u", "--seed", "1"]
    accuracy = {}
    for name, more in (("float32", ["--no-amp"]), ("bfloat16", ["--amp", "bfloat16"]), ("float16", FLOAT16)):
        events = train(args, work / name, [*options, *more])
        reports = [event for event in events if event["event"] == "report"]
        accuracy[name] = [event["eval_top1"] for event in events if event["event"] == "epoch"][-1]
        skips = [event["skipped_updates"] for event in reports]
        skipped = f", {skips[-1]} of {reports[-1]['updates']} updates skipped, the last before update " \
               f"{reports[skips.index(skips[-1])]['updates']}" if name == "float16" else ""
        print(f"learn: {name}: {accuracy[name]:.2f} %{skipped}", flush=True)
    recovered = skips[-1] > 0 and skips[-1] == skips[len(skips) // 2]
    return recovered and accuracy["float16"] >= accuracy["bfloat16"] - args.tolerance


def check_kills(args, work):
    folder = work / "tiny"
    folder.mkdir()
    made_idx.write_idx(folder, "train", 500, side=12, seed=1)
    made_idx.write_idx(folder, "t10k", 120, side=12, seed=2)
    options = ["--data-dir", str(folder), "--device", "cpu", "--epochs", "12", "--batch-size", "16", "--model", "small_cnn",
               "--width", "8", "--num-workers", "2", "--threads", "1", "--lr", "0.05", "--model-ema", "--save-every", "5u",
               "--report-every", "3u", *FLOAT16[:-1], "1e12,4"]
    events = train(args, work / "whole", options)
    scales = [event["loss_scale"] for event in events if event["event"] == "report"]
    moves = sum(one != next_one for one, next_one in zip(scales, scales[1:]))
    print(f"kills: from one report to the next, 3 updates later, the scale moves {moves} of {len(scales) - 1} times", flush=True)
    words = [sys.executable, HERE / "kill_anywhere.py", "--train", args.train, "--trials", str(args.trials), "--seed", str(args.seed)]
    ended = subprocess.run([*words, "--", *options], capture_output=True, text=True, check=False)
    print("kills: " + (ended.stdout.strip().replace("\n", "\nkills: ") + ended.stderr).strip(), flush=True)
    return ended.returncode == 0 and moves > len(scales) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--tool", help="default: tests/optim/scaler_tool of the same build")
    parser.add_argument("--data-dir", help="images to learn, Fashion-MNIST say")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=1, help="percentage points below bfloat16's accuracy")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("checks", nargs="*", help="of scales, planted, run, learn, kills; all of them by default")
    args = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="stoker-float16-") as name:
        work = pathlib.Path(name)
        data = pathlib.Path(args.data_dir) if args.data_dir else work / "made"
        if not args.data_dir:
            data.mkdir()
            made_idx.write_idx(data, "train", 4000, side=28, seed=1)
            made_idx.write_idx(data, "t10k", 500, side=28, seed=2)
        torch = pythons_torch()
        checks = {"scales": lambda: check_scales(args, torch, random.Random(args.seed)),
                  "planted": lambda: check_planted(args, torch, work), "run": lambda: check_run(args, torch, data, work),
                  "learn": lambda: check_learn(args, data, work), "kills": lambda: check_kills(args, work)}
        asked = args.checks or list(checks)
        left_out = [] if torch else [check for check in asked if check in ("scales", "run")]
        for check in asked:
            if check in left_out:
                print(f"{check}: left out, Python has no torch.amp.GradScaler (python3-torch of 2.3 or later)")
            elif not checks[check]():
                failed.append(check)
    print(f"failed: {', '.join(failed)}" if failed else "all passed" if not left_out else f"left out: {', '.join(left_out)}")
    return 1 if failed else 77 if left_out == asked else 0


if __name__ == "__main__":
    sys.exit(main())
