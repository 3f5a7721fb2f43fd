#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings, bytes and faults over the fake CUDA, one line each; LD_LIBRARY_PATH has its libraries. Its devices compute
nothing, so that weights stay as they were drawn: what is compared is what the host does.

    cases.py TRAIN HOOKS OUT [trainings] [bytes] [faults N]     N: calls of each function that fail, evenly spread
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import made_idx  # noqa: E402

TRAIN, HOOKS, OUT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
COMMON = ["--data-dir", str(OUT / "data"), "--width", "8", "--threads", "1", "--num-workers", "1", "--batch-size", "16",
          "--prove-backend", "off", "--no-report"]
SMALL = ["--model", "small_cnn"]
LAST_LINE = re.compile(r"train: exit=(\d+) reason=\S+")
failed = 0


def say(fine, name, text):
    global failed
    failed += not fine
    print(f"{'ok' if fine else 'FAILS'}  {name}: {text}", flush=True)


def environment(**variables):
    return {**os.environ, "STOKER_FAKE_CUDA_DEVICES": "2", **{f"STOKER_FAKE_CUDA_{key}": str(value) for key, value in variables.items()}}


class Run:
    """What became of a program: its exit code, what it printed, what it left behind."""

    def __init__(self, program, options, env, stop_after=0, patience=240):
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.stopped = 0
        begin = time.monotonic()
        process = subprocess.Popen([program, *options], env={**env, "STOKER_FAKE_CUDA_CASE": mark}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        patience = stop_after or patience
        while True:
            try:
                self.output = process.communicate(timeout=patience)[0]
                break
            except subprocess.TimeoutExpired:  # as a person would: Ctrl-C, Ctrl-C, kill
                self.stopped += 1
                process.send_signal(signal.SIGINT if self.stopped < 3 else signal.SIGKILL)
                patience = 2
        self.seconds = time.monotonic() - begin
        self.code = process.returncode
        lines = self.output.strip().splitlines()
        last = LAST_LINE.match(lines[-1]) if lines else None
        self.last_line = lines[-1] if last else ""
        self.is_told = bool(last) and int(last[1]) == self.code
        self.left = []
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark.encode() in (place / "environ").read_bytes():
                    self.left.append(int(place.name))
            except OSError:
                pass
        for pid in self.left:
            os.kill(pid, signal.SIGKILL)

    def error(self):
        return next((line for line in self.output.splitlines() if line.startswith("error")), self.last_line)


def train(name, options, keep=False, program=TRAIN, device="cuda", stop_after=0, **variables):
    folder = OUT / "runs" / name
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    run = Run(program, [*COMMON, "--device", device, "--run-dir", str(folder), *options], environment(**variables), stop_after)
    run.folder = folder
    (OUT / f"{name}.log").write_text(run.output)
    return run


def weights(folder):
    run = subprocess.run(["sha256sum", folder / "checkpoints" / "last" / "model.safetensors"], capture_output=True, text=True)
    return run.stdout[:16]


def must_end(name, run, code=0, text=""):
    fine = run.code == code and run.is_told and not run.left and text in run.output
    say(fine, name, f"{run.seconds:.1f} s, {run.last_line or run.output[-200:]}" + (f", left {run.left}" if run.left else ""))
    return fine


# Trainings

def trainings():
    three = ["--max-updates", "3"]
    for model in ("small_cnn", "resnet18"):
        for amp in (["--no-amp"], ["--amp", "bfloat16"], ["--amp", "float16", "--min-scale", "0"]):
            must_end(f"{model} {' '.join(amp)}", train("amp", ["--model", model, *amp, *three]))
    for options in (["--accumulation-steps", "2"], ["--model-ema"], ["--opt", "adamw", "--clip-grad", "1"], ["--graphs", "on"],
                    ["--feed", "resident"], ["--feed", "resident", "--graphs", "on", "--accumulation-steps", "2", "--model-ema"],
                    ["--grad-checkpointing"], ["--deterministic"], ["--no-pin-memory"], ["--device", "cuda:1"],
                    ["--devices", "2"], ["--devices", "2", "--exchange", "fast"], ["--model", "resnet18", "--devices", "2"]):
        must_end(" ".join(options), train("options", [*SMALL, *three, *options]))
    # Kernels that do nothing are found: by the proof, and not as a failure of the proof.
    run = train("proof", [*SMALL, "--max-updates", "1", "--prove-backend", "auto"])
    must_end("proof", run, 83, "computes wrongly on this machine")
    six = [*SMALL, "--max-updates", "6", "--save-every", "2u", "--model-ema"]
    whole = train("whole", six)
    must_end("6 updates", whole)
    for seed in (1, 2):
        run = train("delayed", six, DELAY=seed)
        must_end(f"6 updates, delays {seed}", run)
        say(weights(run.folder) == weights(whole.folder), f"6 updates, delays {seed}", f"weights {weights(run.folder)}")
    train("resumed", [*SMALL, "--max-updates", "3", "--save-every", "2u", "--model-ema"])
    run = train("resumed", six, keep=True)
    must_end("resumed after 3 of 6", run)
    say(weights(run.folder) == weights(whole.folder), "resumed after 3 of 6", f"weights {weights(run.folder)}")
    shown = Run(TRAIN, ["eval", str(whole.folder), "--device", "cpu", "--threads", "1"], environment())
    must_end("its checkpoint on the CPU", shown)
    shown = Run(TRAIN, ["eval", str(whole.folder), "--device", "cuda", "--threads", "1", "--prove-backend", "off"], environment())
    must_end("its checkpoint on the card", shown)
    events = [json.loads(line) for line in (whole.folder / "metrics.jsonl").read_text().splitlines()]
    say('"gpu' in json.dumps(events), "monitor", "metrics.jsonl has figures of the card")
    # Memory
    small = 24 << 20
    run = train("memory", ["--model", "resnet18", "--width", "64", "--batch-size", "64", "--max-updates", "2", "--no-amp"],
                BYTES=small)
    must_end("24 MiB of memory", run, 81, "memory")
    # Signals
    stopped = train("stopped", [*SMALL, "--epochs", "1000000", "--save-every", "1000u"], stop_after=8)
    must_end("SIGINT", stopped, 130)
    on = train("stopped", [*SMALL, "--epochs", "1000000"], keep=True, stop_after=12)
    must_end("and on from there", on, 130, "update=")
    must_end("check", Run(TRAIN, ["check", "--device", "cuda"], environment()), 69, "a library that computes correctly")
    for words in (["plan"], ["bench", "step"]):
        must_end(" ".join(words), Run(TRAIN, [*words, "--device", "cuda", *SMALL, *COMMON[:12]], environment()))


# Bytes: what lies on the card after each copy is what the same run on the CPU has in its batches.

def lines_of(path):
    return path.read_text().split("\n")[:-1] if path.exists() else []


def bytes_of(name, options, **variables):
    batches, copies = OUT / "batches", OUT / "copies"
    for path in (batches, copies):
        path.unlink(missing_ok=True)
    os.environ["STOKER_TEST_BATCHES"] = str(batches)
    first = train("bytes-cpu", options, program=HOOKS, device="cpu")
    del os.environ["STOKER_TEST_BATCHES"]
    second = train("bytes", options, COPIES=copies, **variables)
    wanted, there = lines_of(batches), lines_of(copies)
    rest = iter(there)
    missing = [line for line in wanted if line not in rest]  # in this order
    fine = first.code == second.code == 0 and len(wanted) > 0 and not missing
    say(fine, name, f"{len(wanted)} buffers of {sum(int(line.split()[0]) for line in wanted)} bytes, in order among "
                    f"{len(there)} copies; {len(missing)} differ" + ("" if fine else f" {first.last_line} {second.last_line}"))


def compare_bytes():
    two = [*SMALL, "--epochs", "2", "--train-crop", "padded", "--hflip", "0.5"]
    for feed in ("loader", "resident"):
        for seed in ("", 1, 2, 3):
            bytes_of(f"bytes, {feed}, delays {seed or 'none'}", [*two, "--feed", feed], **({"DELAY": seed} if seed else {}))
    bytes_of("bytes, not pinned, delays 4", [*two, "--no-pin-memory"], DELAY=4)
    bytes_of("bytes, 4 workers, delays 5", [*two, "--num-workers", "4"], DELAY=5)


# Faults

OPTIONS = [*SMALL, "--save-every", "2u", "--model-ema", "--amp", "bfloat16"]


def states(folder):
    """Names and sizes of what checkpoints have."""
    return sorted((str(path.relative_to(folder)), path.stat().st_size) for path in (folder / "checkpoints").rglob("*"))


def faults(each):
    trace = OUT / "trace"
    start = train("start", [*OPTIONS, "--max-updates", "2"])
    trace.unlink(missing_ok=True)
    shutil.rmtree(OUT / "runs" / "traced", ignore_errors=True)
    shutil.copytree(start.folder, OUT / "runs" / "traced", symlinks=True)
    train("traced", [*OPTIONS, "--max-updates", "6"], keep=True, TRACE=trace)
    calls = {}
    for line in lines_of(trace):
        number, name = line.split()
        calls.setdefault(name, []).append(int(number))
    print(f"{sum(map(len, calls.values()))} calls of {len(calls)} functions in a run from update 2 to 6")
    table, before, seen_ends = {}, states(start.folder), {}
    for kind in ("memory", "illegal", "lost", "hang"):
        for name, numbers in calls.items():
            some = min(len(numbers), each)
            if kind in ("lost", "hang") and not name.startswith(("cuda", "nccl")):
                continue  # the libraries report every kind as they report an illegal address
            for number in sorted({numbers[(2 * i + 1) * len(numbers) // (2 * some)] for i in range(some)}):
                folder = OUT / "runs" / "fault"
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(start.folder, folder, symlinks=True)
                run = train("fault", [*OPTIONS, "--max-updates", "6"], keep=True, FAULT=f"{number}:{kind}",
                            stop_after=8 if kind == "hang" else 90)
                row = table.setdefault(kind, {"calls": 0, "codes": {}, "missing": 0, "left": 0, "broken": 0})
                row["calls"] += "fake CUDA: call" in run.output
                row["codes"][run.code] = row["codes"].get(run.code, 0) + 1
                row["missing"] += not run.is_told
                row["left"] += bool(run.left)
                seen = 0  # a checkpoint of before is known to be whole
                if states(folder) != before:
                    seen = Run(TRAIN, ["eval", str(folder), "--device", "cpu", "--threads", "1"], environment()).code
                row["broken"] += seen != 0
                end = (kind, run.code, re.sub(r"\d[\d.]*", "N", run.error()[:120]))
                odd = not run.is_told or run.left or seen != 0 or run.code in (70, 139, 134, -9, -6, -11)
                if odd or end not in seen_ends:
                    hit = re.search(r"fake CUDA: call \d+, (\w+)", run.output)
                    print(f"{kind} at {number} ({hit[1] if hit else 'not reached'}): {run.code} in {run.seconds:.0f} s, stopped {run.stopped}, "
                          f"eval {seen}{', left' if run.left else ''}: {run.error()[:400]}", flush=True)
                seen_ends[end] = 1
        row = table[kind]
        say(row["missing"] == row["left"] == row["broken"] == 0, f"faults, {kind}",
            f"{row['calls']} calls, ends by code {row['codes']}, last lines missing {row['missing']}, "
            f"processes left {row['left']}, checkpoints broken {row['broken']}")


def main():
    (OUT / "data").mkdir(parents=True, exist_ok=True)
    made_idx.write_idx(OUT / "data", "train", 200, 12, 1)
    made_idx.write_idx(OUT / "data", "t10k", 60, 12, 2)
    wanted = sys.argv[4:] or ["trainings", "bytes", "faults", "3"]
    if "trainings" in wanted:
        trainings()
    if "bytes" in wanted:
        compare_bytes()
    if "faults" in wanted:
        faults(int(wanted[wanted.index("faults") + 1]))
    print(f"{failed} fail")
    sys.exit(1 if failed else 0)


main()
