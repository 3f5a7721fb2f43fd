# SPDX-License-Identifier: Apache-2.0
"""Tiny runs of `train` for the scripts that prove replay, diff and verify: how they are made, killed and forged."""
import ctypes
import ctypes.util
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys

import made_images

COMMON = ["--model", "small_cnn", "--width", "4", "--img-size", "12", "--batch-size", "12", "--num-workers", "1", "--threads",
          "1", "--no-amp", "--device", "cpu", "--lr", "0.05", "--keep-last", "1000", "--report-every", "1s", "--quiet"]


class Digest(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3_128(content):
    """As the program writes it."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or sys.exit("this needs libxxhash0"))
    library.XXH3_128bits.restype = Digest
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    digest = library.XXH3_128bits(content, len(content))
    return f"{digest.high:016x}{digest.low:016x}"


def make_images(folder, seed, torn=(), shares=(1, 1, 1), train=96, val=24):
    made_images.write_images(folder / "train", train, side=12, seed=seed, torn=torn, shares=shares)
    made_images.write_images(folder / "val", val, side=12, seed=seed + 10_000)


def command(train, data, run, options):
    return [str(train), "--data-dir", str(data), "--run-dir", str(run), *COMMON, *options]


def complete(train, data, run, options):
    ended = subprocess.run(command(train, data, run, options), capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"training in {run} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")


def complete_with_kills(train, data, run, options, kills, rng):
    """SIGKILL at random times until it was hit so often, then to its end. Returns how often it was."""
    hit = 0
    for _ in range(8 * kills):
        if hit == kills:
            break
        process = subprocess.Popen(command(train, data, run, options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=rng.uniform(0.5, 3))
            break  # it was done before
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            hit += 1
    complete(train, data, run, options)
    return hit


def ask(train, words, may_fail=False):
    """The JSON output of a command, its exit code and its standard error."""
    ended = subprocess.run([str(train), *map(str, words), "--json", "--num-workers", "1"], capture_output=True, text=True,
                           check=False)
    if ended.returncode != 0 and not may_fail:
        sys.exit(f"train {' '.join(map(str, words))} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    try:
        return json.loads(ended.stdout), ended.returncode, ended.stderr
    except json.JSONDecodeError:
        return None, ended.returncode, ended.stderr


def checkpoints(run):
    return sorted(path for path in (run / "checkpoints").iterdir() if path.name.startswith("step-") and not path.is_symlink())


def recorded(run):
    """Update -> its digests, those that count: a resume leaves behind what came after its checkpoint."""
    digests = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] in ("start", "resume"):
            digests = {update: value for update, value in digests.items() if update <= event["updates"]}
        elif event["event"] == "digest":
            digests[event["updates"]] = (event["weights"], event["images"])
    return digests


def forget_records(run, keep=lambda update: False):
    """Takes digests of updates out of metrics.jsonl."""
    path = run / "metrics.jsonl"
    lines = [line for line in path.read_text().splitlines()
             if json.loads(line)["event"] != "digest" or keep(json.loads(line)["updates"])]
    path.write_text("".join(line + "\n" for line in lines))


def sign(checkpoint):
    """Makes the manifest agree with the files, as a forger would."""
    path = checkpoint / "manifest.json"
    manifest = json.loads(path.read_text())
    for name, record in manifest["files"].items():
        content = (checkpoint / name).read_bytes()
        record["bytes"], record["xxh3_128"] = len(content), xxh3_128(content)
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def change_weight(checkpoint, rng, bit=None):
    """Flips a bit of one weight; returns the name of its tensor. The state names the digest of the weights it now has."""
    path = checkpoint / "model.safetensors"
    content = bytearray(path.read_bytes())
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    names = [name for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32"
             and not name.startswith("running")]
    name = rng.choice(names)
    begin, end = header[name]["data_offsets"]
    at = 8 + size + begin + 4 * rng.randrange((end - begin) // 4)
    bit = rng.randrange(22) if bit is None else bit  # of the mantissa: it stays finite
    content[at + bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(content))
    state_path = checkpoint / "state.json"
    state = json.loads(state_path.read_text())
    state["digests"]["weights"] = weights_digest(checkpoint)
    state_path.write_text(json.dumps(state, indent=1) + "\n")
    sign(checkpoint)
    return name


def weights_digest(checkpoint):
    """As lib/engine/digest/tensor_digest has it."""
    types = {"F32": 6, "I64": 4}  # numbers of c10::ScalarType
    content = (checkpoint / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    text = b""
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        head = f"{len(name)} {name} {types[entry['dtype']]} {len(entry['shape'])}:" + "".join(f"{n}," for n in entry["shape"])
        text += head.encode() + content[8 + size + begin:8 + size + end]
    return xxh3_128(text)


def copied(run, target):
    shutil.copytree(run, target, symlinks=True)
    return pathlib.Path(target)


def seeded(seed):
    return random.Random(seed)
