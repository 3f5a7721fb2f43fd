#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a stranger achieves who reaches the ports of a run of several processes: connects, sends garbage, holds 500
connections, joins a second time. A run that ends with 0 must leave what a run without strangers leaves, bit for bit; any
other end must be an exit code that docs/reference/exit-codes.md names, within two minutes, with no process left.

    scripts/strangers.py --train build/release/apps/train             two processes of this machine
    scripts/strangers.py --train build/release/apps/train --machines  two machines (starters/two_machines.sh, as root)

Prints the sockets on which processes of the run listen, and a table. With python3-torch of the same release as the
program's LibTorch, --machines also tries what a client of the TCPStore can do. Ends with 1 when a number was wrong.
"""
import argparse
import collections
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import kill_anywhere
import made_idx

TWO_MACHINES = pathlib.Path(__file__).resolve().parent / "starters" / "two_machines.sh"
DOCUMENTED = {0, 71, 74, 75, 76, 78}
HELD = 500


def processes_of(session):
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == session:
                found.append(int(entry))
        except OSError:
            pass
    return found


def listening(process):
    """(address, port) of each socket that listens in the network that a process sees."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = pathlib.Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[3] != "0A":
                continue
            address, port = words[1].split(":")
            words = [bytes.fromhex(address[k:k + 8])[::-1] for k in range(0, len(address), 8)]
            text = socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))
            found.add((text, int(port, 16)))
    return found


class Stranger:
    """Does one thing to each port of a run as soon as it is there, until the run ends."""

    def __init__(self, what, host):
        self.what, self.host, self.held, self.tries = what, host, [], 0
        self.rng = random.Random(what)

    def reach(self, address, port):
        target = address.removeprefix("::ffff:")
        if target in ("0.0.0.0", "::"):
            target = self.host
        return socket.create_connection((target, port), timeout=0.5)

    def visit(self, address, port):
        self.tries += 1
        if self.what == "holds 500 connections":
            while len(self.held) < HELD:
                self.held.append(self.reach(address, port))
            return
        with self.reach(address, port) as connection:
            if self.what == "sends garbage":
                connection.sendall(self.rng.randbytes(65536))
            elif self.what == "sends half a request":
                connection.sendall(b"\x00\x08\x00\x00\x00\x00\x00\x00\x00ab")
                self.held.append(connection.dup())
            elif self.what == "joins as a peer of Gloo":  # who connects sends the number of the awaited pair that it is
                connection.sendall(struct.pack("<q", self.tries % 8))
                self.held.append(connection.dup())

    def work(self, process, before, ended):
        while not ended.is_set():
            for address, port in listening(process) - before:
                if ended.is_set():
                    return
                try:
                    if self.what == "writes the store's keys":  # in a process: the client's threads may end it
                        self.tries += subprocess.run([sys.executable, __file__, "--train", "", "--write-keys-to", str(port)],
                                                     stderr=subprocess.DEVNULL).returncode == 0
                    else:
                        self.visit(address, port)
                except Exception:  # the port is gone, full, or another one than thought: the next
                    pass
            time.sleep(0.001)


def run(commands, what, host, log):
    ports, ended = set(), threading.Event()
    before = listening("self")
    stranger = Stranger(what, host)
    started = [subprocess.Popen(command, env={**os.environ, **variables}, stdout=log, stderr=log, start_new_session=True)
               for command, variables in commands]
    threads = [threading.Thread(target=stranger.work, args=(process.pid, before, ended), daemon=True) for process in started
               if what != "nobody"]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 120
    while any(process.poll() is None for process in started) and time.monotonic() < deadline:
        for process in started:
            ports |= listening(process.pid) - before
        time.sleep(0.002)
    hung = [process for process in started if process.poll() is None]
    ended.set()
    for process in hung:
        os.killpg(process.pid, 9)
    time.sleep(1)
    left = [pid for process in started for pid in processes_of(process.pid)]
    for connection in stranger.held:
        connection.close()
    return [None if process in hung else process.returncode for process in started], ports, stranger.tries, left


def commands_of(args, program, data, run_dir, host):
    train = [str(program), "--data-dir", str(data), "--model", "small_cnn", "--epochs", "3", "--batch-size", "16",
             "--threads", "1", "--num-workers", "1", "--replicas", "2", "--no-report", "--run-dir", str(run_dir)]
    if not args.machines:
        return [(train + ["--devices", "2"], {})]
    return [(([] if rank == 0 else ["nsenter", "--net=/run/netns/stoker-b"]) + train + ["--listen", host],
             {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": host,
              "MASTER_PORT": "29500"}) for rank in range(2)]


def write_keys(port):
    """What a client of the store does to the keys of two ranks."""
    import datetime
    import torch.distributed
    store = torch.distributed.TCPStore("10.77.0.1", port, is_master=False, timeout=datetime.timedelta(seconds=3),
                                       wait_for_workers=False)
    ours = f"stoker/{store.get('job').decode()}/"
    for rank in range(2):
        store.set(f"{ours}sign/{rank}", "9999 3 1")
        store.add(f"{ours}here/{rank}", 1)
        store.set(f"{ours}{rank}", "no address")
    store.set(f"{ours}cause", "a cause from a stranger")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--machines", action="store_true")
    parser.add_argument("--only", help="this stranger")
    parser.add_argument("--rounds", type=int, default=3, help="runs for each stranger")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write-keys-to", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write_keys_to:
        return write_keys(args.write_keys_to)
    program = args.train.resolve()
    strangers = ["nobody", "connects and leaves", "sends garbage", "sends half a request", "holds 500 connections",
                 "joins as a peer of Gloo"]
    host = "127.0.0.1"
    if args.machines:
        host = "10.77.0.1"
        strangers.append("writes the store's keys")
        if not args.inside:
            subprocess.run([str(TWO_MACHINES), "start"], check=True)
            try:
                return subprocess.run([str(TWO_MACHINES), "in", "a", sys.executable, *sys.argv, "--inside"]).returncode
            finally:
                subprocess.run([str(TWO_MACHINES), "stop"], check=True)
    wrong, right, sockets = 0, None, set()
    with tempfile.TemporaryDirectory(prefix="stoker-strangers-") as folder:
        folder = pathlib.Path(folder)
        (folder / "data").mkdir()
        made_idx.write_idx(folder / "data", "train", 400, side=28, seed=1)
        made_idx.write_idx(folder / "data", "t10k", 100, side=28, seed=2)
        print(f"{'a stranger':26} {'reached':>8}  how runs ended", flush=True)
        for what in strangers:
            if args.only not in (None, what) and what != "nobody":
                continue
            ends, reached = collections.Counter(), 0
            for number in range(1 if what == "nobody" else args.rounds):
                run_dir = folder / f"{what}-{number}"
                with open(f"{run_dir}.log", "w", encoding="utf-8") as log:
                    codes, ports, tries, left = run(commands_of(args, program, folder / "data", run_dir, host), what, host, log)
                reached += tries
                if what == "nobody":
                    right, sockets = kill_anywhere.digest(run_dir), ports
                sockets |= ports
                end = "/".join(map(str, codes))
                if set(codes) == {0}:
                    end = "the same bytes" if kill_anywhere.digest(run_dir) == right else "OTHER BYTES"
                elif not set(codes) <= DOCUMENTED:
                    end += " NOT DOCUMENTED"
                    print("\n".join(pathlib.Path(f"{run_dir}.log").read_text().splitlines()[-12:]), flush=True)
                if left:
                    end += " PROCESSES LEFT"
                ends[end] += 1
                wrong += end != end.lower()
            print(f"{what:26} {reached:8}  " + ", ".join(f"{count} x {end}" for end, count in ends.most_common()), flush=True)
        print("sockets that listen:", ", ".join(f"{address}:{port}" for address, port in sorted(sockets)) or "none")
    print(f"strangers: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
