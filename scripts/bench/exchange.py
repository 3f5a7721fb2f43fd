#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the exchange of gradients costs, and how much of it the backward pass hides:

    scripts/bench/exchange.py --train build/release/apps/train --processes 2,4
    scripts/bench/exchange.py --train build/release/apps/train --processes 2 --two-machines

Trains ResNet-18 on synthetic images in three ways, in turn, --rounds times: exact with and without --overlap-exchange, and fast.
The last epoch of each is read: how long an update takes, what of that the ranks wait for their sums (the rank that waits
least: what others wait longer is for slower ranks), and the bytes that rank 0 sends. Hidden is 1 - (what is waited for with
overlap) / (what is waited for without). The bytes of a ring are 2 (W - 1) / W of the gradients'. Medians of the rounds.

--two-machines: the processes on two network namespaces joined by 1 ms and 1 Gbit/s (scripts/starters/two_machines.sh, as
root). --cpus 0,1 gives process k the CPU of that place alone.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TWO_MACHINES = HERE.parent / "starters" / "two_machines.sh"
sys.path.insert(0, str(HERE.parent))
import made_images  # noqa: E402

WAYS = {"exact, overlapped": ["--exchange", "exact", "--overlap-exchange"],
        "exact, not overlapped": ["--exchange", "exact", "--no-overlap-exchange"],
        "fast, overlapped": ["--exchange", "fast", "--overlap-exchange"]}


def started(args, options, processes):
    """One process for each rank, with the variables of a starter, so that each can have a machine and a CPU."""
    cpus = args.cpus.split(",") if args.cpus else []
    ranks = []
    for rank in range(processes):
        command = [str(args.train), *options]
        half = max(1, processes // 2)
        local, address = rank, "127.0.0.1"
        if args.two_machines:
            address, local = "10.77.0.1", rank % half
            command = [str(TWO_MACHINES), "in", "ab"[rank // half], *command, "--listen", address]
        if cpus:
            command = ["taskset", "-c", cpus[rank % len(cpus)], *command]
        variables = {"RANK": rank, "WORLD_SIZE": processes, "LOCAL_RANK": local,
                     "LOCAL_WORLD_SIZE": half if args.two_machines else processes, "MASTER_ADDR": address,
                     "MASTER_PORT": args.port}
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        ranks.append(subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT))
    return ranks


def measured(args, folder, processes, way):
    run = folder / "run"
    options = ["--data-dir", str(folder / "data"), "--run-dir", str(run), "--model", args.model, "--img-size", str(args.size),
               "--batch-size", str(args.batch), "--replicas", str(processes), "--epochs", str(args.epochs), "--no-amp",
               "--threads", "1", "--num-workers", "1", "--lr", "0.01", "--val-every", "1000e", "--save-every", "never",
               "--no-plan-check", "--no-report", "--fresh", *WAYS[way]]
    ranks = started(args, options, processes)
    texts = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"exchange: {way} with {processes} processes ended with {[rank.returncode for rank in ranks]}:\n"
                 + "\n".join(text[-1500:] for text in texts))
    epochs = [line for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()) if line["event"] == "epoch"]
    last = epochs[-1]
    return {"update": last["times"]["update"]["mean_seconds"], "waited": min(rank["exchange_seconds"] for rank in last["ranks"]["each"]),
            "bytes": last["times"]["exchange"]["bytes_sent"]}


def gradient_bytes(args, folder):
    text = subprocess.run([str(args.train), "--data-dir", str(folder / "data"), "--model", args.model, "--img-size",
                           str(args.size), "--batch-size", str(args.batch), "--dry-run", "--no-plan-check", "--threads", "1",
                           "--no-amp", "--run-dir", str(folder / "dry")], capture_output=True, text=True, check=True).stdout
    words = next(line for line in text.splitlines() if line.startswith("model ")).split()
    return 4 * int(words[words.index("parameters") - 1].replace(",", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--processes", default="2,4")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=160)
    parser.add_argument("--batch", type=int, default=16, help="images of each process in an update")
    parser.add_argument("--updates", type=int, default=8, help="of an epoch")
    parser.add_argument("--epochs", type=int, default=2, help="of which the last is read")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--port", type=int, default=29533)
    parser.add_argument("--cpus")
    parser.add_argument("--two-machines", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-exchange-") as folder:
        folder = pathlib.Path(folder)
        for processes in map(int, args.processes.split(",")):
            subprocess.run(["rm", "-rf", str(folder / "data")], check=True)
            made_images.write_images(folder / "data" / "train", args.updates * args.batch * processes, 40, seed=1)
            made_images.write_images(folder / "data" / "val", 8, 40, seed=2)
            seen = {way: [] for way in WAYS}
            for _ in range(args.rounds):
                for way in WAYS:
                    seen[way].append(measured(args, folder, processes, way))
                print("  " + "; ".join(f"{way}: update {1000 * of_way[-1]['update']:.1f} ms, waits {1000 * of_way[-1]['waited']:.1f} ms"
                                       for way, of_way in seen.items()), flush=True)

            def median(way, key):
                return statistics.median(one[key] for one in seen[way])
            ring = 2 * (processes - 1) / processes * gradient_bytes(args, folder)
            for way in WAYS:
                print(f"{processes} processes, {way}: update {1000 * median(way, 'update'):.1f} ms, waits "
                      f"{1000 * median(way, 'waited'):.1f} ms for its sums, sends {median(way, 'bytes') / 1e6:.3f} MB, "
                      f"{median(way, 'bytes') / ring:.4f} of a ring's", flush=True)
            hidden = statistics.median(1 - with_it["waited"] / without["waited"] for with_it, without in
                                       zip(seen["exact, overlapped"], seen["exact, not overlapped"]))
            cost = statistics.median(exact["update"] / fast["update"] - 1 for exact, fast in
                                     zip(seen["exact, overlapped"], seen["fast, overlapped"]))
            print(f"{processes} processes: {hidden:.0%} of the exchange hidden; exact takes {cost:+.1%} of an update against fast",
                  flush=True)


if __name__ == "__main__":
    main()
