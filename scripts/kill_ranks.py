#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ends runs of several processes at random moments, by SIGKILL to one rank, SIGKILL to all, or SIGTERM, and continues with
another number of processes each time, until the run ends. What is left must be what a run that was never interrupted
leaves, bit for bit: weights, their average, the optimizer's state, summary.csv less its clock columns.

    scripts/kill_ranks.py --train build/release/apps/train --kills 100

After SIGKILL to one rank the command must end with 76 and leave no rank behind; after SIGTERM with 75 and a checkpoint
that verifies. Every rerun resumes by one of the forms that --resume has. With --starter torchrun several ranks are started
by that, which ends them by SIGTERM in either case and has exit codes of its own. With --at-checkpoints the moment is when a
checkpoint of a random update is there, and not a time: then nothing depends on how fast the machine is.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import kill_anywhere

DEVICES = (1, 2, 4)
HOWS = ("one rank", "all", "TERM")
PEER_LOST = 76
UPDATES_BETWEEN_SAVES = 5


def children_of(process):
    """Ids of the ranks that a command has started."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def is_there(process):
    try:
        return ") Z " not in pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def fail_left_behind(ranks, seconds):
    """No rank outlives its command for more than some seconds."""
    deadline = time.monotonic() + seconds
    while any(is_there(rank) for rank in ranks):
        if time.monotonic() > deadline:
            sys.exit(f"kill_ranks: ranks {[rank for rank in ranks if is_there(rank)]} are still there")
        time.sleep(0.05)


def last_saved(run_dir):
    """The newest update that a checkpoint holds; -1: there is none."""
    saved = [int(path.name.split("-")[1]) for path in (run_dir / "checkpoints").glob("step-*") if path.name[5:].isdigit()]
    return max(saved, default=-1)


class Trials:
    def __init__(self, args, folder):
        self.args, self.rng, self.folder = args, random.Random(args.seed), folder
        (folder / "data").mkdir()
        self.options = [*kill_anywhere.tiny_options(folder / "data", 0), "--replicas", "4", "--accumulation-steps", "1",
                        "--save-every", f"{UPDATES_BETWEEN_SAVES}u", "--no-report"]
        kill_anywhere.complete(args.train, self.options, folder / "unbroken")
        self.wanted = kill_anywhere.digest(folder / "unbroken")
        self.updates = last_saved(folder / "unbroken")
        self.seconds = {} if args.at_checkpoints else {devices: self.timed(devices) for devices in DEVICES}
        self.kills = collections.Counter()

    def timed(self, devices):
        begin = time.monotonic()
        run_dir = self.folder / f"timed-{devices}"
        kill_anywhere.wait_for_success(self.start(run_dir, devices), run_dir, 600)
        return time.monotonic() - begin

    def start(self, run_dir, devices):
        """With one of the forms of --resume that can be used where the run stands."""
        forms = ["auto"]
        if (run_dir / "checkpoints" / "last").exists():
            forms += ["last", str((run_dir / "checkpoints" / "last").resolve())]
        options = [*self.options, "--resume", self.rng.choice(forms)]
        if self.args.starter == "torchrun" and devices > 1:
            ranks = ["--no_python", "--standalone", "-r", "1", "-t", "1", "--log_dir", str(self.folder / "log"),
                     "--nproc_per_node", str(devices)]
            return kill_anywhere.start("torchrun", [*ranks, self.args.train, *options], run_dir)
        return kill_anywhere.start(self.args.train, [*options, "--devices", str(devices)], run_dir)

    def wait_for_moment(self, process, run_dir, devices):
        """False when the run ended before."""
        if self.args.at_checkpoints:
            step = self.rng.randrange(last_saved(run_dir) + 1, self.updates + 1)
            while last_saved(run_dir) < step:
                if process.poll() is not None:
                    return False
                time.sleep(0.005)
            return process.poll() is None
        try:
            process.wait(self.rng.uniform(0, self.seconds[devices]))
            return False
        except subprocess.TimeoutExpired:
            return True

    def is_ended(self, run_dir, devices, how):
        """Starts the run and ends it; False when it was done before."""
        begins_before = kill_anywhere.begins(run_dir)
        process = self.start(run_dir, devices)
        if not self.wait_for_moment(process, run_dir, devices):
            kill_anywhere.wait_for_success(process, run_dir, 600)
            return False
        ranks = children_of(process.pid)
        if how == "TERM":
            process.terminate()
        elif how == "one rank" and ranks:
            kill(self.rng.choice(ranks))
        else:
            for one in [process.pid, *ranks]:
                kill(one)
        _, errors = process.communicate(timeout=120)
        code = process.returncode
        by_torchrun = self.args.starter == "torchrun" and devices > 1
        if how == "TERM" and not by_torchrun:
            kill_anywhere.check_ended_in_order(self.args.train, run_dir, code, errors, begins_before)
        elif how == "one rank" and ranks and code not in (0, PEER_LOST) and not by_torchrun:
            kill_anywhere.fail(run_dir, code, errors, "a run that lost a rank did not end with 76")
        fail_left_behind(ranks, 60 if by_torchrun else 10)
        return code != 0

    def run_one(self, number):
        """One run until its end, whose kills count once it has had one; what differs from the unbroken one."""
        run_dir = self.folder / f"trial-{number}"
        devices = self.rng.choice(DEVICES)
        for _ in range(self.rng.randrange(1, 3)):
            how = HOWS[sum(self.kills.values()) % len(HOWS)]
            if not self.is_ended(run_dir, devices, how):
                break
            self.kills[how] += 1
            devices = self.rng.choice([other for other in DEVICES if other != devices])
        kill_anywhere.wait_for_success(self.start(run_dir, devices), run_dir, 600)
        got = kill_anywhere.digest(run_dir)
        shutil.rmtree(run_dir)
        return [key for key in self.wanted if got.get(key) != self.wanted[key]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--at-checkpoints", action="store_true")
    parser.add_argument("--starter", choices=["devices", "torchrun"], default="devices", help="of several ranks")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-ranks-") as name:
        trials = Trials(args, pathlib.Path(name))
        print("unbroken run: " + ", ".join(f"{seconds:.1f} s with {devices}" for devices, seconds in trials.seconds.items()),
              flush=True)
        same = runs = 0
        while sum(trials.kills.values()) < args.kills:
            different = trials.run_one(runs)
            runs += 1
            same += not different
            if different:
                print(f"run {runs}: differs in {', '.join(different)}", flush=True)
            print(f"{sum(trials.kills.values())} kills in {runs} runs, {same} the same bytes", flush=True)
        counts = ", ".join(f"{how} {trials.kills[how]}" for how in HOWS)
        print(f"kill_ranks: {sum(trials.kills.values())} kills ({counts}) in {runs} runs: {same} of {runs} identical to the "
              "unbroken run")
        return 0 if same == runs else 1


if __name__ == "__main__":
    sys.exit(main())
