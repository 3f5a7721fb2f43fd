#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loses one of several processes that train together, at random moments, and looks at what becomes of the others.

    scripts/lose_ranks.py --train build/release/apps/train --trials 100
    scripts/lose_ranks.py --train build/release/apps/train --trials 20 --way stop --at validation

    --way kill     one rank gets SIGKILL: all are gone within 5 s, with 76 and a message that names it
    --way stop     one rank gets SIGSTOP: all are gone within --timeout (during start-up 5 s later: the others have to come
                   first), with 76 and a message that names it
    --way starter  the command that started the ranks gets SIGKILL: none is left after 10 s
    --at           when: anywhere (start-up and the first seconds of training), start-up, validation (a run that does
                   little else), save (a run that does little else)

Each trial begins a run of its own with synthetic images and looks in the end whether another run can continue in its directory
(every tenth trial: --go-on). Ends with 1 when a trial went wrong, and prints which.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import kill_anywhere
import made_idx

GONE_SECONDS = {"kill": 5, "starter": 10}
WAYS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "starter": signal.SIGKILL}
PLACES = {  # images to train and to validate on, more options, the longest wait before the blow
    "anywhere": (400, 100, ["--save-every", "3u"], 6),
    "start-up": (400, 100, ["--save-every", "never"], 1.5),
    "validation": (32, 6000, ["--save-every", "never", "--val-every", "1e"], 6),
    "save": (400, 20, ["--save-every", "1u", "--width", "192"], 6),
}


def options_of(folder, place, args):
    train, val, more, _ = PLACES[place]
    made_idx.write_idx(folder, "train", train, side=12, seed=1)
    made_idx.write_idx(folder, "t10k", val, side=12, seed=2)
    return ["--data-dir", str(folder), "--epochs", "100000", "--batch-size", "8", "--model", "small_cnn", "--width", "8",
            "--num-workers", "1", "--lr", "0.01", "--no-plan-check", "--no-space-check", "--replicas", str(args.ranks),
            "--devices", str(args.ranks), "--exchange-timeout", f"{args.timeout}s", *more]


def ranks_of(starter):
    """rank -> process id of those that have been started."""
    ranks = {}
    try:
        for child in pathlib.Path(f"/proc/{starter}/task/{starter}/children").read_text().split():
            variables = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            ranks.update({int(word[5:]): int(child) for word in variables if word.startswith(b"RANK=")})
    except OSError:
        pass
    return ranks


def is_there(process):
    try:
        return ") Z " not in pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def wait_until(is_true, seconds):
    """Returns the seconds that it took; None: it did not come true."""
    begin = time.monotonic()
    while not is_true():
        if time.monotonic() - begin > seconds:
            return None
        time.sleep(0.01)
    return time.monotonic() - begin


def lose_one(args, options, run_dir, rng, longest):
    """Returns what went wrong (empty: nothing), the seconds until all were gone, and what was seen."""
    starter = kill_anywhere.start(args.train, options, run_dir)
    try:
        if wait_until(lambda: len(ranks_of(starter.pid)) == args.ranks or starter.poll() is not None, 60) is None:
            return "the ranks were not started within 60 s", 0, ""
        time.sleep(rng.uniform(0, longest))
        ranks = ranks_of(starter.pid)
        if len(ranks) != args.ranks:
            return f"the run ended by itself with {starter.wait()}: {starter.stderr.read()[-2000:]}", 0, ""
        lost = rng.randrange(args.ranks)
        has_trained = (run_dir / "metrics.jsonl").exists()
        os.kill(starter.pid if args.way == "starter" else ranks[lost], WAYS[args.way])
        allowed = GONE_SECONDS.get(args.way, args.timeout + (0 if has_trained else 5)) + args.slack
        everyone = [starter.pid, *ranks.values()]
        seconds = wait_until(lambda: starter.poll() is not None and not any(map(is_there, everyone)), allowed + 60)
        errors = starter.stderr.read() if seconds is not None else ""
        seen = f"rank {lost}, {'training' if has_trained else 'start-up'}"
        if seconds is None:
            return f"{seen}: processes were left: {[one for one in everyone if is_there(one)]}", 0, seen
        if seconds > allowed:
            return f"{seen}: all were gone after {seconds:.1f} s only: {errors}", seconds, seen
        if args.way == "starter":
            return "", seconds, seen
        if starter.returncode != 76:
            return f"{seen}: it ended with {starter.returncode}: {errors}", seconds, seen
        named = {"kill": f"rank {lost} (process {ranks[lost]}) was killed by signal 9",
                 "stop": f"rank {lost} has sent no heartbeat"}[args.way]
        if args.way == "stop" and not has_trained:  # perhaps it had not joined the others by then
            errors = errors.replace(f"rank {lost} of {args.ranks} did not come within", named)
        if named not in errors:
            return f"{seen}: the message lacks '{named}': {errors}", seconds, seen
        if errors.strip().splitlines()[-1] != "train: exit=76 reason=error":
            return f"{seen}: another last line: {errors}", seconds, seen
        return "", seconds, seen
    finally:
        for process in ranks_of(starter.pid).values():
            os.kill(process, signal.SIGKILL)
        starter.kill()
        starter.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="build/release/apps/train")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--way", choices=list(WAYS), default="kill")
    parser.add_argument("--at", choices=list(PLACES), default="anywhere")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--timeout", type=int, default=10, help="seconds: --exchange-timeout")
    parser.add_argument("--go-on", type=int, default=10, help="each N-th trial continues the run; 0: never")
    parser.add_argument("--slack", type=float, default=0, help="seconds more than promised, for a busy machine")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    failures, times, in_training = [], [], 0
    with tempfile.TemporaryDirectory(prefix="stoker-lose-") as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        options = options_of(folder / "data", args.at, args)
        for trial in range(args.trials):
            run_dir = folder / f"trial-{trial}"
            problem, seconds, seen = lose_one(args, options, run_dir, rng, PLACES[args.at][3])
            times.append(seconds)
            in_training += seen.endswith("training")
            if problem:
                failures.append(trial)
                print(f"trial {trial}: {problem}", flush=True)
            if args.go_on and trial % args.go_on == 0:
                again = subprocess.run([args.train, *options, "--run-dir", str(run_dir), "--max-updates", "1"],
                                       capture_output=True, text=True, check=False)
                if again.returncode != 0:
                    failures.append(trial)
                    print(f"trial {trial}: continuing ended with {again.returncode}: {again.stderr}", flush=True)
            shutil.rmtree(run_dir, ignore_errors=True)
    print(f"lose_ranks: --way {args.way} --at {args.at}: {args.trials - len(set(failures))} of {args.trials} as promised; "
          f"{in_training} behind the start-up; gone after {statistics.median(times):.2f} s "
          f"(median), {max(times):.2f} s (most)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
