#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Damages every file of a run directory and lets eval, predict, export, runs, inspect and libstoker read it: each must end
within --seconds and below --megabytes of memory, by no signal, not with 70 and without a finding of a sanitizer.

    scripts/mutate_runs.py --train build/release/apps/train
    scripts/mutate_runs.py --train build/asan/apps/train --library build/asan/tests/embed/classify_c
    scripts/mutate_runs.py --train build/release/apps/train --mutations 40 --only state.json --commands eval,predict

Bytes are flipped, cut, repeated and made up; values of JSON, YAML and CSV become numbers out of range, other types, long
texts, text that is no UTF-8, escape sequences; keys are left out and doubled; files become links, folders and pipes. Half
of what is done to a file of a checkpoint is entered in its manifest, as anybody can do who hands a run on. Everything is
drawn from --seed: a failure names the number of its mutation, which --first repeats. Each mutation is read by one
command, in turn, or with --all by each of them.
"""
import argparse
import concurrent.futures
import ctypes
import ctypes.util
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import made_idx

NUMBERS = [0, -1, 1, 3, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -2**63, 1e-308, 1e308,
           0.5, -0.0]
TEXTS = ["", "x", "../../../../etc/passwd", "/dev/zero", "a" * 100000, "\x1b]0;owned\x07\x1b[2J", "\u009b31m", "\x00",
         "$(touch owned)", "multiclass", "binary", "multilabel", "regression", "head-pose", "float32", "cuda:99"]
FOUND = 99  # exit code that sanitizers are given
OTHERS = [None, True, False, [], {}, [[]], [1, 2, 3], {"a": 1}, [0] * 100000]


def xxh3_128(data):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")

    class Digest(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    library.XXH3_128bits.restype = Digest
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    digest = library.XXH3_128bits(data, len(data))
    return f"{digest.high:016x}{digest.low:016x}"


def places(value, path=()):
    """Paths of all values below a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from places(below, (*path, key))


def changed_json(text, rng):
    """A JSON text with one value, key or type changed; None where the text is no JSON."""
    try:
        root = json.loads(text)
    except ValueError:
        return None
    path = rng.choice(list(places(root)))
    value = rng.choice([rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(OTHERS)])
    if not path:
        return json.dumps(value)
    parent = root
    for key in path[:-1]:
        parent = parent[key]
    how = rng.randrange(5)
    if how == 0:
        del parent[path[-1]]
    elif how == 1 and isinstance(parent, dict):
        old, new = json.dumps(path[-1]), json.dumps("twice")
        parent["twice"] = parent[path[-1]]
        return json.dumps(root).replace(new, old)
    elif how == 2 and isinstance(parent[path[-1]], (int, float)):
        parent[path[-1]] = parent[path[-1]] * rng.choice([-1, 2, 10, 1000, 1e6, 1e12]) + rng.choice([0, 1, 0.5])
    else:
        parent[path[-1]] = value
    text = json.dumps(root)
    return text.replace("Infinity", "1e999")


def changed_bytes(data, rng):
    data = bytearray(data)
    at = rng.randrange(len(data) + 1)
    how = rng.randrange(9)
    if how == 0 and data:
        data[at % len(data)] ^= 1 << rng.randrange(8)
    elif how == 1:
        del data[at:]
    elif how == 2:
        data[at:at] = data[:rng.randrange(1, 4096)] * rng.choice([1, 100])
    elif how == 3:
        data[at:at + rng.randrange(1, 64)] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 64)))
    elif how == 4:
        data[at:at] = rng.choice([b"\xff\xfe", b"\xc3", b"\x1b[31m", b"\x00", b"\n", b"9" * 400, b"[" * 100000])
    elif how == 5:
        data[:] = b""
    elif how == 6:
        data[:8] = rng.choice([b"\xff" * 8, b"\x00" * 8, (1 << 40).to_bytes(8, "little")])
    elif how == 7:
        data[:] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 4096)))
    else:
        del data[at:at + rng.randrange(1, 4096)]
    return bytes(data)


def changed_text(data, rng):
    """One number or word of YAML, CSV or JSON lines."""
    matches = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?|\"[^\"]*\"|[a-z_]+", data))
    if not matches:
        return changed_bytes(data, rng)
    match = rng.choice(matches)
    new = str(rng.choice(NUMBERS + TEXTS)).encode("utf-8", "replace")[:5000]
    return data[:match.start()] + new + data[match.end():]


def changed_safetensors(data, rng):
    length = int.from_bytes(data[:8], "little")
    header = changed_json(data[8:8 + length].decode(), rng)
    encoded = header.encode("utf-8", "replace")
    return len(encoded).to_bytes(8, "little") + encoded + data[8 + length:]


def replace_by_something(path, rng):
    """A link, a folder or a pipe in place of a file."""
    path.unlink()
    how = rng.randrange(8)
    if how == 0:
        os.mkfifo(path)
    elif how == 1:
        path.mkdir()
    elif how == 2:
        path.symlink_to(path.name)
    elif how < 7:
        path.symlink_to(["/dev/zero", "/dev/full", "/nowhere", "/etc/passwd"][how - 3])
    # 7: nothing is left of it


def mutate(run, name, rng):
    path = run / name
    if rng.random() < 0.08:
        replace_by_something(path, rng)
        return
    data = path.read_bytes()
    if name.endswith(".safetensors"):
        new = changed_safetensors(data, rng) if rng.random() < 0.6 else changed_bytes(data, rng)
    elif name.endswith(".json") and rng.random() < 0.8:
        new = changed_json(data.decode(), rng).encode("utf-8", "replace")
    elif name.endswith(".jsonl") and rng.random() < 0.6:
        lines = data.decode().splitlines()
        which = rng.randrange(len(lines))
        lines[which] = changed_json(lines[which], rng) or "x"
        new = ("\n".join(lines) + "\n").encode("utf-8", "replace")
    else:
        new = changed_text(data, rng) if rng.random() < 0.6 else changed_bytes(data, rng)
    path.write_bytes(new)
    manifest = path.parent / "manifest.json"
    if path != manifest and manifest.exists() and rng.random() < 0.5:
        content = json.loads(manifest.read_text())
        content["files"][path.name] = {"bytes": len(new), "xxh3_128": xxh3_128(new)}
        manifest.write_text(json.dumps(content, indent=1))


def files_of(run):
    """Relative names of all files of a run; of its checkpoints the newest alone."""
    newest = (run / "checkpoints" / "last").resolve()
    names = []
    for path in sorted(run.rglob("*")):
        is_of_checkpoint = run / "checkpoints" in path.parents
        if path.is_file() and not path.is_symlink() and (not is_of_checkpoint or newest in path.parents):
            names.append(str(path.relative_to(run)))
    return names


def commands_of(train, library, run, images, folder):
    common = ["--threads", "1", "--num-workers", "1"]
    return {"eval": [train, "eval", run, *common], "predict": [train, "predict", run, images, "--which", "last", *common],
            "export": [train, "export", run, "--which", "last", "-o", f"{folder}/x.onnx"],
            "runs": [train, "runs", run], "runs-html": [train, "runs", run, "--html", "-o", f"{folder}/x.html"],
            "verify": [train, "inspect", "verify", run, *common], "blame": [train, "inspect", "blame", run, *common],
            "replay": [train, "inspect", "replay", run, "--update", "5", "-o", f"{folder}/replay", *common],
            "diff": [train, "inspect", "diff", run, run, *common], "resume": [train, "--resume", run, "--epochs", "3", *common],
            "library": [library, run, f"{images}/a.png"]}


def gray_png(side):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"\x00" * (side * (side + 1)))) + chunk(b"IEND", b""))


def end_of(words, seconds, folder):
    """Exit code (negative: a signal; None: too slow), seconds, megabytes of memory, and what it printed."""
    begin = time.monotonic()
    with open(folder / "printed", "w+b") as printed:
        process = subprocess.Popen(words, stdout=printed, stderr=printed, stdin=subprocess.DEVNULL, cwd=folder,
                                   start_new_session=True)
        status = None
        while time.monotonic() - begin < seconds:
            pid, ended, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                status = os.waitstatus_to_exitcode(ended)
                break
            time.sleep(0.02)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0  # waited for
        printed.seek(0)
        return status, time.monotonic() - begin, usage.ru_maxrss / 1024, printed.read().decode(errors="replace")[-1500:]


def attempt(args, original, name, number, command):
    rng = random.Random(f"{args.seed}/{name}/{number}")
    with tempfile.TemporaryDirectory(prefix="stoker-mutate-") as scratch:
        folder = pathlib.Path(scratch)
        shutil.copytree(original, folder / "w", symlinks=True)
        run = folder / "w" / "run"
        mutate(run, name, rng)
        words = commands_of(args.train, args.library, "run", "images", str(folder))[command]
        status, seconds, megabytes, printed = end_of(words, args.seconds, folder / "w")
    bad = ("too slow" if status is None else "ended by a signal" if status < 0 or status >= 128 and status != 130 else
           "ended with 70" if status == 70 else
           "a sanitizer found something" if status == FOUND or "runtime error: " in printed else
           "too much memory" if megabytes > args.megabytes else "")
    return name, number, command, status, seconds, megabytes, bad, printed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--library", help="the example docs/examples/c/classify.c, built",
                        type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--mutations", type=int, default=400, help="of each file")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose name ends so")
    parser.add_argument("--commands", default="eval,predict,export,runs,runs-html,verify,blame,replay,diff,resume")
    parser.add_argument("--all", action="store_true", help="each mutation by every command")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["ASAN_OPTIONS"] = f"exitcode={FOUND}:detect_leaks=0:quarantine_size_mb=8:allocator_may_return_null=1:malloc_context_size=2"
    os.environ["UBSAN_OPTIONS"] = f"exitcode={FOUND}:print_stacktrace=1"
    commands = args.commands.split(",") + (["library"] if args.library else [])
    with tempfile.TemporaryDirectory(prefix="stoker-mutate-") as scratch:
        original = pathlib.Path(scratch)
        (original / "data").mkdir()
        made_idx.write_idx(original / "data", "train", 64, side=8, seed=1)
        made_idx.write_idx(original / "data", "t10k", 20, side=8, seed=2)
        (original / "images").mkdir()
        (original / "images" / "a.png").write_bytes(gray_png(8))
        words = [args.train, "--data-dir", "data", "--run-dir", "run", "--epochs", "2", "--batch-size", "16", "--model",
                 "small_cnn", "--width", "4", "--threads", "1", "--num-workers", "1", "--no-amp", "--save-every", "1e",
                 "--model-ema", "--digest-every", "1"]
        subprocess.run(words, cwd=original, check=True, stdout=subprocess.DEVNULL)
        tasks = []
        for name in files_of(original / "run"):
            if not name.endswith(args.only):
                continue
            for number in range(args.first, args.first + args.mutations):
                for command in commands if args.all else [commands[number % len(commands)]]:
                    tasks.append((name, number, command))
        codes, failures, most = {}, 0, 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for done, result in enumerate(pool.map(lambda task: attempt(args, original, *task), tasks), 1):
                name, number, command, status, seconds, megabytes, bad, printed = result
                codes[status] = codes.get(status, 0) + 1
                most = max(most, megabytes)
                if bad:
                    failures += 1
                    print(f"FAIL {name} mutation {number} {command}: {bad} (exit {status}, {seconds:.1f} s, "
                          f"{megabytes:.0f} MB)\n{printed}", flush=True)
                if done % 100 == 0:
                    print(f"{done} of {len(tasks)}, {failures} failed", flush=True)
    print(f"{len(tasks)} reads of damaged runs, {failures} failed; most memory {most:.0f} MB; exit codes "
          f"{dict(sorted(codes.items(), key=str))}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
