#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sets the updates/s that `train plan --devices 1,2,4` foresees against those that as many processes reach.

    scripts/bench/plan_devices.py --train build/release/apps/train [--rounds 3] [--seconds 12] [--only resnet18]

Synthetic images, float32, one thread and one worker per process, one replica each. Plan and runs take turns in each round; the figures
are medians of all rounds, and what a run does in its first two seconds is left out. Exit 1 where a median is off by more than 15 %.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import made_images  # noqa: E402

MODELS = {
    "small_cnn": ["--img-size", "32", "--batch-size", "256"],
    "resnet18": ["--img-size", "64", "--batch-size", "32"],
    "efficientnet_b0": ["--img-size", "64", "--batch-size", "32"],
}
LIMIT_PERCENT = 15


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode not in (0, 75):  # 75: stopped by --max-time
        sys.exit(f"plan_devices: {' '.join(command)}\n{result.stderr}")
    return result.stdout


def reached(records):
    """Updates/s between the first report after two seconds and the last one."""
    reports = [record for record in map(json.loads, open(records)) if record["event"] == "report"]
    begin = next(report for report in reports if report["elapsed_seconds"] > 2)
    return (reports[-1]["updates"] - begin["updates"]) / (reports[-1]["elapsed_seconds"] - begin["elapsed_seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=12, help="of each run")
    parser.add_argument("--only", choices=list(MODELS))
    args = parser.parse_args()
    found = {}  # (model, devices): predicted, reached
    with tempfile.TemporaryDirectory(prefix="stoker-plan-") as name:
        folder = pathlib.Path(name)
        made_images.write_images(folder / "data" / "train", 1536, 64, seed=1)
        made_images.write_images(folder / "data" / "val", 96, 64, seed=2)
        for turn in range(args.rounds):
            for model in [args.only] if args.only else MODELS:
                options = ["--data-dir", str(folder / "data"), "--model", model, *MODELS[model], "--threads", "1",
                           "--num-workers", "1", "--no-amp", "--no-channels-last", "--lr", "0.001"]
                plan = json.loads(run([args.train, "plan", *options, "--devices", "1,2,4", "--json"]))
                for row in plan["devices"]:
                    run_dir = folder / f"{model}-{row['devices']}-{turn}"
                    run([args.train, *options, "--devices", str(row["devices"]), "--replicas", str(row["replicas"]),
                         "--run-dir", str(run_dir), "--epochs", "100000", "--max-time", f"{args.seconds}s",
                         "--report-every", "1s", "--val-every", "100000e", "--save-every", "100000e", "--no-report"])
                    predicted, got = row["time"]["updates_per_second"], reached(run_dir / "metrics.jsonl")
                    figures = found.setdefault((model, row["devices"]), ([], []))
                    figures[0].append(predicted)
                    figures[1].append(got)
                    print(f"round {turn + 1}  {model:<16} {row['devices']} processes: predicted {predicted:6.2f}, reached {got:6.2f}"
                          f" updates/s, {100 * (predicted / got - 1):+5.1f} %  (load {os.getloadavg()[0]:.1f})", flush=True)
    good = True
    for (model, devices), figures in found.items():
        predicted, got = map(statistics.median, figures)
        off = 100 * (predicted / got - 1)
        good = good and abs(off) <= LIMIT_PERCENT
        print(f"| `{model}` | {devices} | {predicted:.2f} ({min(figures[0]):.2f} to {max(figures[0]):.2f}) | {got:.2f} "
              f"({min(figures[1]):.2f} to {max(figures[1]):.2f}) | {off:+.1f} % |")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
