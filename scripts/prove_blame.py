#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants causes of divergence and of spikes in runs, which `train inspect blame` must find.

    scripts/prove_blame.py --train build/release/apps/train

Ten causes, each in a run of its own:

    nan, infinity   one number of one image of an HDF5 file
    huge            one image of an HDF5 file is multiplied by 1e20: its numbers are finite, what is computed of them is not
    target, huge target
                    one target of a regression is 1,000 instead of at most 1: a spike; or 1e25: its square overflows
    label           one image of a class that is learned carries another label
    rate, far rate  the learning rate is multiplied by 100, or is 1e12, from the resume of a stopped run on
    loss scale      a float16 run begins at a scale of 1e25, from which it only skips updates
    weight, momentum
                    while the run is stopped, a bit of the exponent of one number is flipped in its checkpoint

The update is the one that saw the sample (the first of them where the run diverges; replaying shows which these are), the first with
the other learning rate, or that of the changed checkpoint. Besides the update, the sample, the layer or the learning rate must be named.
float16 is left out where LibTorch does not compute it on CPUs (before 2.4).
"""
import argparse
import array
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import audited_runs as runs
import made_hdf5
import made_images

OPTIONS = ["--digest-every", "1", "--save-every", "10u", "--report-every", "1u", "--sched", "constant"]
SPECTROGRAMS = runs.COMMON[:4] + runs.COMMON[6:]  # in their own size
assert runs.COMMON[4:6] == ["--img-size", "12"]
SIDE = 16


def train_run(train, data, run, options, common=None):
    """Ends as it likes."""
    words = runs.command(train, data, run, options)
    if common is not None:
        words = [str(train), "--data-dir", str(data), "--run-dir", str(run), *common, *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def blamed(train, run):
    blame, code, errors = runs.ask(train, ["inspect", "blame", run], may_fail=True)
    if blame is None:
        sys.exit(f"train inspect blame {run} ended with {code}: {errors}")
    return blame["found"] or {"kind": "spike", "update": None, "samples": [], "layer": None, "cause": "nothing was found"}, blame["watched"]


def updates_that_saw(train, run, sample, watched):
    """Among those that were watched, by replaying one after the other."""
    saw = []
    for update in range(watched["from"], watched["to"] + 1):
        out = run / "out"
        runs.ask(train, ["inspect", "replay", run, "--update", update, "--output", out], may_fail=True)
        written = json.loads((out / "replay.json").read_text())
        if any(seen["sample"] == sample for batch in written["batches"] for seen in batch["samples"]):
            saw.append(update)
    return saw


def judge_sample(train, run, sample):
    """Whether update and sample are named."""
    found, watched = blamed(train, run)
    saw = updates_that_saw(train, run, sample, {**watched, "to": max(watched["to"], found["update"] or 0)})
    named = [seen["sample"] for seen in found["samples"]] == [sample]
    return saw if found["kind"] == "spike" else saw[:1], found, named


def spectrograms(folder, rng, change):
    """Three classes that differ in their mean; `change(values)` of one image."""
    folder.mkdir(parents=True)
    sample = rng.randrange(180)
    for split, count in (("train", 180), ("val", 18)):
        labels = [rng.randrange(3) for _ in range(count)]
        values = array.array("f")
        for i, label in enumerate(labels):
            image = [rng.gauss(label, 1) for _ in range(SIDE * SIDE)]
            values.extend(change(image) if split == "train" and i == sample else image)
        made_hdf5.write_hdf5(folder / f"{split}.h5", values, [count, SIDE, SIDE], labels)
    return sample


def hdf5_trial(change):
    def trial(train, work, rng, number):
        data, run = work / "data", work / "run"
        sample = spectrograms(data, rng, lambda image: change(image, rng))
        ended = train_run(train, data, run, [*OPTIONS, "--epochs", "2", "--seed", str(number), "--mean", "1", "--std", "1.3"],
                          SPECTROGRAMS)
        if ended.returncode != 80 or "train inspect blame" not in ended.stderr:
            sys.exit(f"training ended with {ended.returncode}, not 80 with a hint:\n{ended.stderr}")
        return judge_sample(train, run, sample)
    return trial


def one_number(value):
    def change(image, rng):
        image[rng.randrange(len(image))] = value
        return image
    return change


def target_trial(outlier):
    def trial(train, work, rng, number):
        data, run = work / "data", work / "run"
        sample = rng.randrange(288)
        (data / "images").mkdir(parents=True)
        for split, count in (("train", 288), ("val", 12)):
            lines = ["path,brightness"]
            for i in range(count):
                value = rng.random()
                name = f"images/{split}-{i:03}.png"
                (data / name).write_bytes(made_images.png(12, made_images.noise(rng, 12, int(120 * value))))
                lines.append(f"{name},{outlier if split == 'train' and i == sample else value:.4f}")
            (data / f"{split}.csv").write_text("".join(line + "\n" for line in lines))
        train_run(train, data, run, [*OPTIONS, "--epochs", "1", "--task", "regression", "--target-mean", "0", "--target-scale", "1",
                                     "--seed", str(number), "--lr", "1e-4", "--loss", "l2"])
        return judge_sample(train, run, sample)
    return trial


def label_trial(train, work, rng, number):
    """Dark and bright images; one of the dark ones is among the bright ones."""
    data, run = work / "data", work / "run"
    for split, count in (("train", 144), ("val", 12)):
        for i in range(count):
            path = data / split / f"class{i % 2}" / f"{i:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made_images.png(12, made_images.noise(rng, 12, 130 * (i % 2))))
    wrong = data / "train" / "class1" / "200.png"
    wrong.write_bytes(made_images.png(12, made_images.noise(rng, 12, 0)))
    train_run(train, data, run, [*OPTIONS, "--epochs", "3", "--seed", str(number), "--lr", "0.02"])
    return judge_sample(train, run, 144)  # the last of the last class


def scale_trial(train, work, rng, number):
    data, run = work / "data", work / "run"
    runs.make_images(data, number, train=240)
    common = [word for word in runs.COMMON if word != "--no-amp"]
    skipped = rng.randrange(8, 20)
    ended = train_run(train, data, run, [*OPTIONS, "--epochs", "3", "--seed", str(number), "--amp", "float16",
                                         "--loss-scale", "1e25", "--max-skipped", str(skipped)], common)
    if ended.returncode != 80 or "train inspect blame" not in ended.stderr:
        sys.exit(f"training ended with {ended.returncode}, not 80 with a hint:\n{ended.stderr}")
    found, _ = blamed(train, run)
    return [1], found, "loss scale" in found["cause"] and "learning rate" not in found["cause"]


def computes_float16(train):
    with tempfile.TemporaryDirectory(prefix="stoker-blame-") as folder:
        runs.make_images(pathlib.Path(folder) / "data", 1, train=24, val=12)
        words = [train, "--data-dir", f"{folder}/data", "--device", "cpu", "--model", "small_cnn", "--amp", "float16",
                 "--dry-run"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0


def stopped_run(train, work, rng, number):
    data, run = work / "data", work / "run"
    runs.make_images(data, number, train=240)
    at = rng.randrange(22, 38)
    options = [*OPTIONS, "--epochs", "3", "--seed", str(number)]
    runs.complete(train, data, run, [*options, "--max-updates", str(at)])
    return data, run, at, options


def rate_trial(rate):
    def trial(train, work, rng, number):
        data, run, at, options = stopped_run(train, work, rng, number)
        train_run(train, data, run, [*options, "--lr", rate, "--override-resume"])
        found, _ = blamed(train, run)
        return [at + 1], found, "learning rate" in found["cause"]
    return trial


def flip_exponent(path, rng, wanted):
    """Of one float32 of a table of tensors: makes it larger by 2^64 or more. Returns its name."""
    content = bytearray(path.read_bytes())
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    names = [name for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32" and wanted(name)]
    name = rng.choice(sorted(names))
    begin, end = header[name]["data_offsets"]
    places = list(range(8 + size + begin, 8 + size + end, 4))
    rng.shuffle(places)
    for at in places:
        (value,) = struct.unpack("<f", content[at:at + 4])
        if 1e-6 < abs(value) < 1:  # the highest bit of its exponent is 0
            content[at + 3] ^= 0x40
            path.write_bytes(bytes(content))
            return name
    return flip_exponent(path, rng, wanted)


def flip_trial(file, wanted):
    def trial(train, work, rng, number):
        data, run, at, options = stopped_run(train, work, rng, number)
        checkpoint = runs.checkpoints(run)[-1]
        name = flip_exponent(checkpoint / file, rng, wanted)
        state = json.loads((checkpoint / "state.json").read_text())
        state["digests"]["weights"] = runs.weights_digest(checkpoint)
        (checkpoint / "state.json").write_text(json.dumps(state))
        runs.sign(checkpoint)
        train_run(train, data, run, options)
        found, _ = blamed(train, run)
        layer = found["layer"] or "nothing"
        return [at], found, name.startswith(layer + ".") or f".{layer}." in name or layer == name
    return trial


TRIALS = {
    "nan": hdf5_trial(one_number(float("nan"))),
    "rate": rate_trial("5"),
    "target": target_trial(1000),
    "weight": flip_trial("model.safetensors", lambda name: name.endswith("weight") and "conv" in name),
    "huge": hdf5_trial(lambda image, _: [1e20 * value for value in image]),
    "label": label_trial,
    "far rate": rate_trial("1e12"),
    "momentum": flip_trial("optimizer.safetensors", lambda name: "momentum" in name and "weight" in name),
    "huge target": target_trial(1e25),
    "infinity": hdf5_trial(one_number(float("inf"))),
    "loss scale": scale_trial,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--only", help="one cause")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    trials = {name: trial for name, trial in TRIALS.items() if args.only in (None, name)}
    if "loss scale" in trials and not computes_float16(args.train):
        print("loss scale: left out, this LibTorch computes no float16 on CPUs")
        del trials["loss scale"]
    updates, named = 0, 0
    for number, (name, trial) in enumerate(trials.items()):
        with tempfile.TemporaryDirectory(prefix="stoker-blame-") as folder:
            right, found, is_named = trial(args.train, pathlib.Path(folder), rng, args.seed + number)
            updates += found["update"] in right
            named += is_named
            samples = ", ".join(sample["name"] for sample in found["samples"])
            print(f"{name:12} in update {right}: named {found['update']}, {'named' if is_named else 'MISSED'}: {found['cause']}; layer "
                  f"{found['layer']}; samples {samples or 'none'}", flush=True)
    print(f"update right {updates} of {len(trials)}; sample, layer or learning rate right {named} of {len(trials)}")
    sys.exit(0 if updates == len(trials) and 10 * named >= 9 * len(trials) else 1)


if __name__ == "__main__":
    main()
