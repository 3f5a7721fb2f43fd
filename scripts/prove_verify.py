#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Verifies honest and falsified runs with `train inspect verify`.

    scripts/prove_verify.py --train build/release/apps/train --honest 30 --falsified 30

Honest runs, every third of them killed with SIGKILL and resumed, must pass with every segment computed again. Falsified ones
must fail: a bit of a weight, a flipped label, an option, a checkpoint of another run, an epoch that is only claimed, swapped names of
classes, a count or a name in state.json. The forger
makes manifests agree with the files, the state with the weights, and takes records out of metrics.jsonl; the last checkpoint is
forged, which no other one names, so that only computing it again finds it. Last, such a run is verified with one segment
or two drawn at random again and again: it must fail when the forged one is drawn, at no other time, and as often as expected.
"""
import argparse
import json
import math
import pathlib
import random
import sys
import tempfile

import audited_runs as runs

OPTIONS = ["--epochs", "4", "--digest-every", "4", "--save-every", "6u", "--mixup", "0.2", "--on-bad-image", "skip,9"]


def options_of(number):
    more = [[], ["--opt", "adamw", "--lr", "0.005"], ["--model-ema"], ["--class-balanced", "--aa", "rand-m3-n1"],
            ["--accumulation-steps", "2"], ["--clip-grad", "1", "--drop-rate", "0.3"]]
    return [*OPTIONS, "--seed", str(number), *more[number % len(more)]]


def verified(train, run, segments):
    report, code, errors = runs.ask(train, ["inspect", "verify", run, "--segments", segments], may_fail=True)
    if code not in (0, 65):
        sys.exit(f"verify ended with {code}: {errors}")
    return code == 0, report, errors


def hide_traces(run, checkpoint):
    """What else would tell: digests of updates, and other checkpoints' names of it."""
    first = runs.checkpoints(run)[-2]
    forged_from = int(first.name[5:])
    runs.forget_records(run, keep=lambda update: update <= forged_from)
    runs.sign(checkpoint)


def flip_weight(run, rng, _):
    checkpoint = runs.checkpoints(run)[-1]
    name = runs.change_weight(checkpoint, rng)
    hide_traces(run, checkpoint)
    return f"a bit of {name}"


def flip_label(run, rng, data):
    """Moves an image into another class, and makes every checkpoint say that the data was so."""
    images = sorted((data / "train" / "class0").iterdir())
    path = rng.choice(images)
    path.rename(data / "train" / "class1" / path.name)
    return f"label of {path.name}"


def change_option(run, rng, _):
    """The last checkpoint claims another weight decay, in its options and in its manifest."""
    checkpoint = runs.checkpoints(run)[-1]
    path = checkpoint / "manifest.json"
    manifest = json.loads(path.read_text())
    value = manifest["extra"]["training_options"]["weight-decay"]
    other = str(float(value) * rng.choice([2, 3]) + 0.001)
    manifest["extra"]["training_options"]["weight-decay"] = other
    path.write_text(json.dumps(manifest))
    config = checkpoint / "config.yaml"
    lines = [f"  weight-decay: {other}" if line.strip().startswith("weight-decay:") else line
             for line in config.read_text().splitlines()]
    config.write_text("".join(line + "\n" for line in lines))
    hide_traces(run, checkpoint)
    return f"weight-decay {value} -> {other}"


def foreign_checkpoint(run, rng, _, other):
    """Weights and optimizer of another run."""
    checkpoint, foreign = runs.checkpoints(run)[-1], runs.checkpoints(other)[-1]
    for name in ("model.safetensors", "optimizer.safetensors"):
        (checkpoint / name).write_bytes((foreign / name).read_bytes())
    state = json.loads((checkpoint / "state.json").read_text())
    state["digests"]["weights"] = runs.weights_digest(checkpoint)
    (checkpoint / "state.json").write_text(json.dumps(state))
    hide_traces(run, checkpoint)
    return "a foreign checkpoint"


def skip_epoch(run, rng, _):
    """The last checkpoint is that of an epoch before, and claims to be the last."""
    saved = runs.checkpoints(run)
    last, older = saved[-1], rng.choice(saved[1:-2])
    for name in ("model.safetensors", "optimizer.safetensors"):
        (last / name).write_bytes((older / name).read_bytes())
    state = json.loads((last / "state.json").read_text())
    state["digests"]["weights"] = runs.weights_digest(last)
    (last / "state.json").write_text(json.dumps(state))
    hide_traces(run, last)
    return f"{older.name} as {last.name}"


def swap_classes(run, rng, _):
    """The names of two classes in preprocess.json, which predict prints; half the times as if it had been calibrated."""
    checkpoint = runs.checkpoints(run)[-1]
    path = checkpoint / "preprocess.json"
    fields = json.loads(path.read_text())
    names = fields["class_names"]
    names[0], names[-1] = names[-1], names[0]
    as_saved = json.loads((checkpoint / "manifest.json").read_text())["files"]["preprocess.json"]
    path.write_text(json.dumps(fields))
    hide_traces(run, checkpoint)
    if rng.random() < 0.5:
        manifest = json.loads((checkpoint / "manifest.json").read_text())
        manifest["extra"]["as_saved"] = {"preprocess.json": as_saved}
        (checkpoint / "manifest.json").write_text(json.dumps(manifest))
    return "names of classes"


def change_state(run, rng, _):
    """A field of the last checkpoint's state.json that no later checkpoint proves."""
    checkpoint = runs.checkpoints(run)[-1]
    path = checkpoint / "state.json"
    state = json.loads(path.read_text())
    field = rng.choice(["optimizer_steps", "ema_updates", "class_names", "bad_samples", "epoch_images", "learning_rate",
                        "pieces", "options", "data"])
    if field in ("options", "data"):
        state["digests"][field] = "0" * len(state["digests"][field])
    elif field in state["train"]:
        state["train"][field] += 1
    elif field == "class_names":
        state[field].reverse()
    elif field == "bad_samples":
        state[field] = [] if state[field] else [{"sample": 1, "name": "x", "reason": "y"}]
    else:
        state[field] += 1
    path.write_text(json.dumps(state))
    hide_traces(run, checkpoint)
    return f"{field} of the state"


FORGERIES = [flip_weight, flip_label, change_option, foreign_checkpoint, skip_epoch, swap_classes, change_state]


def check_honest(train, work, count, rng):
    passed, killed = 0, 0
    for number in range(count):
        data, run = work / f"data-{number}", work / f"run-{number}"
        runs.make_images(data, number, torn=(3,), train=72, val=12)
        if number % 3 == 0:
            killed += runs.complete_with_kills(train, data, run, options_of(number), 2, rng)
        else:
            runs.complete(train, data, run, options_of(number))
        is_good, _, errors = verified(train, run, "all")
        passed += is_good
        if not is_good:
            print(f"honest run {number} ({' '.join(options_of(number))}) fails: {errors}", flush=True)
    print(f"honest: {passed} of {count} pass; {killed} kills among them", flush=True)
    return passed == count


def check_falsified(train, work, count, honest, forgeries, rng):
    found = 0
    by_kind = {}
    for number in range(count):
        source = number % honest
        run, data = runs.copied(work / f"run-{source}", work / f"forged-{number}"), work / f"data-{source}"
        forge = forgeries[number % len(forgeries)]
        if forge is flip_label:
            data = runs.copied(data, work / f"forged-data-{number}")
        extra = [work / f"run-{(source + 6) % honest}"] if forge is foreign_checkpoint else []
        what = forge(run, rng, data, *extra)
        report, code, errors = runs.ask(train, ["inspect", "verify", run, "--segments", "all", "--data-dir", data], may_fail=True)
        fails = code == 65
        found += fails
        name = forge.__name__
        by_kind[name] = (by_kind.get(name, (0, 0))[0] + fails, by_kind.get(name, (0, 0))[1] + 1)
        if not fails:
            print(f"forged run {number} ({what}) is not noticed: ended with {code} {errors}", flush=True)
    print(f"falsified: {found} of {count} fail; " + ", ".join(f"{kind} {n} of {all}" for kind, (n, all) in by_kind.items()),
          flush=True)
    return found == count


def check_draws(train, work, draws, rng):
    """Only the last segment shows it. It is found when it is drawn, and at no other time."""
    run = runs.copied(work / "run-1", work / "drawn")
    flip_weight(run, rng, None)
    all_right = True
    for at_once in (1, 2):
        failures, shows, share = 0, 0, 0
        for _ in range(draws):
            is_good, report, _ = verified(train, run, at_once)
            failures += not is_good
            shows += any(segment["to"] == report["updates"] for segment in report["segments_computed"])
            share += report["updates_computed"] / report["updates"]
            if is_good == any(segment["to"] == report["updates"] for segment in report["segments_computed"]):
                sys.exit(f"prove_verify: {report['segments_computed']} were drawn, and it {'holds' if is_good else 'fails'}")
        expected = at_once / report["segments"]
        spread = math.sqrt(draws * expected * (1 - expected))
        print(f"draws of {at_once}: the forged segment was drawn {shows} times of {draws} and found {failures} times; 1 of "
              f"{report['segments']} segments shows it, so {draws * expected:.1f} +- {spread:.1f} were expected; mean share of updates "
              f"computed {100 * share / draws:.1f}%", flush=True)
        all_right = all_right and failures == shows and abs(failures - draws * expected) <= 3 * spread
    return all_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--honest", type=int, default=30)
    parser.add_argument("--falsified", type=int, default=30)
    parser.add_argument("--draws", type=int, default=100, help="of one segment, and as many of two; 0: none")
    parser.add_argument("--kinds", default="all", help="of forgeries: " + ",".join(forge.__name__ for forge in FORGERIES))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    forgeries = [forge for forge in FORGERIES if args.kinds == "all" or forge.__name__ in args.kinds.split(",")]
    with tempfile.TemporaryDirectory(prefix="stoker-verify-") as folder:
        work = pathlib.Path(folder)
        good = [check_honest(args.train, work, args.honest, rng),
                check_falsified(args.train, work, args.falsified, args.honest, forgeries, rng)]
        if args.draws > 0:
            good.append(check_draws(args.train, work, args.draws, rng))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
