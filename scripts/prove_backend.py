#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether stoker-prove finds libraries that compute wrongly, and calls none wrong that computes correctly.

    scripts/prove_backend.py --build build/release --seeds 20

Three modes:

    (none)          plants each kind of fault of tests/faulty_library in oneDNN's convolutions and matrix multiplications, and
                    has stoker-prove try the operations of networks with it. A fault that changed something must be found: an
                    operation called wrong, a crash or a hang. Beside that it counts for each operation whether it was
                    changed, and whether it was called wrong then, or although it was not changed
    --train         `train` itself on a tiny data set under each fault: it must refuse (exit code 83) or warn and take a remedy
                    with which it learns what it learns without the fault, to a thousandth (bfloat16: a hundredth)
    --false-alarms  every network without a fault: in five runs each value of each factor (oneDNN's and LibTorch's processor
                    limit, layout, precision, number of threads), in other combinations for each network; all combinations
                    for three networks; no operation may be called wrong

Exits 1 when a fault was missed, trained wrong or a right operation was called wrong.
"""
import argparse
import collections
import concurrent.futures
import csv
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

import made_idx

KINDS = ["relative", "quarter", "channel", "border", "nan", "unstable", "flicker", "threads2", "batch5", "weight", "behind", "SIGFPE",
         "SIGILL", "SIGSEGV", "abort", "hang", "cache1"]
PLACES = ["convolution", "product"]
NO_REMEDY = {"answers_cache_sizes": False, "isa": "", "onednn_off": False, "ways": {}}
CODE_REFUSED = 83
# Without these oneDNN leaves bfloat16 convolutions and products to LibTorch, whose sums are bfloat16: called wrong, as they are.
HAS_AVX512 = {"avx512bw", "avx512vl", "avx512dq"} <= set(pathlib.Path("/proc/cpuinfo").read_text().split())
AUTOCASTS = ("", "bfloat16") if HAS_AVX512 else ("",)
TOLERANCES = {"float32": 1e-3, "bfloat16": 1e-2}  # of training: a slow one, so that differences of rounding stay small


def request_of(name, channels, side, passes, classes=10, **more):
    """`passes`: (trains, images, autocast, channels_last, threads)."""
    network = {"name": name, "in_chans": channels, "num_classes": classes, "img_size": {"height": side, "width": side}, "width": 32,
               "backbone": "mobilenet_v3_small", "lstm_channels": 64, "drop_rate": 0, "drop_path_rate": 0,
               "zero_init_residual": False, "same_padding": False}
    keys = ("trains", "images", "autocast", "channels_last", "threads")
    shape = [channels, side, side]
    return {"network": network, "network_digest": "", "whole_process": False, "freeze": "", "low_rank": 0, "teachers": [], "teacher_digest": "", "trusts_network_file": False, "input": more.get("input", shape), "device": "cpu",
            "deterministic": False, "tf32": False, "passes": [dict(zip(keys, one)) for one in passes]}


def of_threads(count):
    """Threads that wait do not spin: several programs run side by side."""
    return {"OMP_NUM_THREADS": str(count), "OMP_WAIT_POLICY": "passive"}


class Attempt:
    """The output of one process of stoker-prove. `end`: done, error, hang, or the name of a signal."""
    def __init__(self):
        self.operations = {}  # by id: text, library, right, fault, ratio, changes
        self.end, self.error, self.where = "", "", ""
        self.was_changed = False
        self.crashed_in_pass = False


def lines_until(process, patience):
    """Its lines; ends it where none comes for `patience` seconds, and then yields a last None."""
    hangs = threading.Event()

    def end():
        hangs.set()
        process.kill()
    for_line = threading.Timer(patience, end)
    for_line.start()
    for line in process.stdout:
        for_line.cancel()
        yield line
        for_line = threading.Timer(patience, end)
        for_line.start()
    for_line.cancel()
    if hangs.is_set():
        yield None


def logged(path, pid):
    """Numbers of changes at each line that the process wrote, and whether there was any change at all."""
    at_lines, changed = [], False
    for line in path.read_text().splitlines() if path.exists() else []:
        writer, changes, when = line.split()
        if int(writer) != pid:
            continue
        changed = changed or int(changes) > 0
        if when == "flush":
            at_lines.append(int(changes))
    return at_lines, changed


def attempted(prover, order, environment, patience, log):
    attempt = Attempt()
    process = subprocess.Popen([prover], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, **environment, "STOKER_FAULT_LOG": str(log)})
    process.stdin.write(json.dumps(order))
    process.stdin.close()
    begun, pass_text, spans, hangs = "", "", {}, False
    for number, line in enumerate(lines_until(process, patience)):
        if line is None:
            hangs = True
            break
        event = json.loads(line)
        if "pass" in event:
            pass_text = event["pass"]
        elif "operations" in event:
            pass_text = ""
        elif "begin" in event:
            begun = event["begin"]
            attempt.operations[begun] = {"text": event["text"], "library": event["library"], "right": None, "fault": "",
                                         "ratio": 0, "changes": 0, "key": begun}
            spans[begun] = [number, None]
        elif "end" in event:
            attempt.operations[begun].update({key: event[key] for key in ("right", "fault", "ratio")})
            spans[begun][1] = number
            begun = ""
        elif "refused" in event:  # by LibTorch: as training will be
            del attempt.operations[begun], spans[begun]
            begun = ""
        elif "error" in event:
            attempt.end, attempt.error = "error", event["error"]
        elif "done" in event:
            attempt.end = "done"
    process.wait()
    if not attempt.end:
        attempt.end = "hang" if hangs else signal.Signals(-process.returncode).name if process.returncode < 0 else "error"
        attempt.error = attempt.error or f"exit code {process.returncode}"
    attempt.crashed_in_pass = attempt.end != "done" and not begun
    attempt.where = attempt.operations[begun]["text"] if begun else pass_text or "the network"
    at_lines, attempt.was_changed = logged(log, process.pid)
    for id, (begin, end) in spans.items():
        known = end is not None and end < len(at_lines)
        attempt.operations[id]["changes"] = at_lines[end] - at_lines[begin] if known else 0
    return attempt


def proven(args, request, environment, patience, log, most_crashes=1, remedy=None):
    """As Trial of lib/proof: again without oneDNN in the passes where those crash, and without what crashed. A list of
    attempts. Without `remedy` the one that every start applies on a processor that hides its caches."""
    order = {"request": request, "compares_all": args.all_elements, "skip": [], "only": [], "untried_kinds": [],
             "without_onednn": False, **({"remedy": remedy} if remedy else {})}
    attempts = []
    while True:
        attempt = attempted(args.prover, order, environment, patience, log)
        attempts.append(attempt)
        if attempt.end in ("done", "error"):
            return attempts
        if attempt.crashed_in_pass:
            if order["without_onednn"]:
                return attempts
            order["without_onednn"] = True
        else:
            if sum(not one.crashed_in_pass for one in attempts) >= most_crashes:
                return attempts
            order["skip"] += list(attempt.operations)


def plant(args, kind, place, network, seed, folder):
    name, channels, side = network
    threads = 2 if kind == "threads2" else 1
    passes = [(trains, images, autocast, seed % 2 == 1, threads)
              for autocast in AUTOCASTS for trains, images in ((True, 8), (True, 5), (False, 8))]
    request = request_of(name, channels, side, passes)
    environment = {"LD_PRELOAD": str(args.library), "STOKER_FAULT": kind, "STOKER_FAULT_IN": place,
                   "STOKER_FAULT_SEED": str(seed), **of_threads(threads)}
    return proven(args, request, environment, args.patience, folder / f"{kind}-{place}-{name}-{seed}",
                  remedy=NO_REMEDY if kind == "cache1" else None)


class Tally:
    def __init__(self):
        self.runs = self.effective = self.found = self.changed = self.changed_found = self.false_alarms = 0
        self.first, self.missed, self.missed_operations = collections.Counter(), [], collections.Counter()
        self.odd = []

    def add(self, seed, attempts, knows_operations):
        self.runs += 1
        self.effective += any(attempt.was_changed for attempt in attempts)
        first = ""
        for attempt in attempts:
            for operation in attempt.operations.values():
                is_wrong = operation["right"] is False
                if not knows_operations:
                    self.changed_found += is_wrong
                elif operation["changes"] > 0:
                    self.changed += 1
                    self.changed_found += is_wrong
                    if not is_wrong:
                        self.missed_operations[operation["text"]] += 1
                elif is_wrong:
                    self.false_alarms += 1
                    self.odd.append(f"seed {seed}: called wrong though not changed: {operation['key']}: {operation['fault']}")
                if is_wrong and not first:
                    first = operation["text"]
            if attempt.end not in ("done", "error"):
                first = first or f"{attempt.end} in {attempt.where}"
            if attempt.end == "error":
                self.odd.append(f"seed {seed}: {attempt.error}")
        was_changed = any(attempt.was_changed for attempt in attempts)
        if first and was_changed:
            self.found += 1
            self.first[first.split(",")[0]] += 1
        elif first and knows_operations:
            self.odd.append(f"seed {seed}: {first}, though nothing was changed")
        elif was_changed:
            self.missed.append(seed)


def plants(args, folder):
    networks = [tuple(text.split(":")) for text in args.networks.split(",")]
    networks = [(name, int(channels), int(side)) for name, channels, side in networks]
    print(f"{'kind':9} {'in':12} {'network':10} {'seeds':>5} {'effect':>6} {'found':>5} {'missed':>6}  {'operations':>14} "
          f"{'false':>5}  first named", flush=True)
    bad, missed_operations = False, collections.Counter()
    for network, kind, place in itertools.product(networks, args.kinds, args.places):
        tally = Tally()
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            runs = pool.map(lambda seed: plant(args, kind, place, network, seed, folder), range(args.seeds))
            for seed, attempts in enumerate(runs):
                tally.add(seed, attempts, knows_operations=kind != "cache1")
        named = ", ".join(f"{text} {count}" for text, count in tally.first.most_common(3))
        print(f"{kind:9} {place:12} {network[0]:10} {tally.runs:5} {tally.effective:6} {tally.found:5} {len(tally.missed):6}  "
              f"{tally.changed_found:6} of {tally.changed:5} {tally.false_alarms:5}  {named or '-'}"
              + (f"  MISSED seeds {tally.missed}" if tally.missed else ""), flush=True)
        for text in tally.odd[:5]:
            print(f"    {text}", flush=True)
        for text, count in tally.missed_operations.items():
            missed_operations[f"{kind} in {text}"] += count
        bad = bad or tally.missed or tally.false_alarms
    if missed_operations:
        print("operations that were changed and not called wrong:")
        for text, count in missed_operations.most_common(40):
            print(f"  {count:4} {text}")
    return not bad


def trained(args, data, run, cache, environment):
    words = [args.train, "--data-dir", data, "--run-dir", run, "--model", "small_cnn", "--width", "8", "--epochs", "2",
             "--batch-size", "16", "--num-workers", "1", "--threads", "1", "--seed", "1", "--device", "cpu", "--lr", "0.002",
             *args.options]
    log = run.with_suffix(".log")
    try:
        ended = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                               timeout=args.train_patience,
                               env={**os.environ, "XDG_CACHE_HOME": str(cache), "STOKER_PROVE_PATIENCE": str(args.patience),
                                    "STOKER_FAULT_LOG": str(log), **environment})
    except subprocess.TimeoutExpired:
        return "hang", "", [], log.exists()
    warning = next((line for line in ended.stderr.splitlines() if "computes wrongly" in line or "error:" in line), "")
    results = []
    summary = run / "summary.csv"
    if ended.returncode == 0 and summary.exists():
        for row in csv.DictReader(summary.read_text().splitlines()):
            results.append({key: float(value) for key, value in row.items()
                            if any(word in key for word in ("loss", "top1")) and value})
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    message = warning or (ended.stderr.strip().splitlines() or [""])[-1]
    return ended.returncode, message, results, any(int(line[1]) for line in lines)


def are_close(left, right, tolerance):
    """Losses within the tolerance, relative; accuracies within two images of sixty, which such a difference may turn over."""
    if len(left) != len(right) or not left:
        return False
    return all(row.keys() == other.keys() and
               all(abs(row[key] - other[key]) <= (4 if "top1" in key else tolerance * abs(row[key])) for key in row)
               for row, other in zip(left, right))


def trains(args, folder):
    data = folder / "data"
    data.mkdir()
    made_idx.write_idx(data, "train", 200, side=28, seed=1)
    made_idx.write_idx(data, "t10k", 60, side=28, seed=2)
    is_good = True
    precisions = {"float32": ["--no-amp"], "bfloat16": ["--amp", "bfloat16"]}
    given = args.options
    for precision in args.precisions:
        args.options = given + precisions[precision]
        code, line, right, _ = trained(args, data, folder / f"right-{precision}", folder / "cache-right", {})
        if code != 0 or not right:
            sys.exit(f"without a fault it ended with {code}: {line}")
        print(f"{precision}: without a fault: {right[-1]}; {line}", flush=True)

        def planted(case):
            kind, place, seed = case
            name = f"{precision}-{kind}-{place}-{seed}"
            environment = {"LD_PRELOAD": str(args.library), "STOKER_FAULT": kind, "STOKER_FAULT_IN": place,
                           "STOKER_FAULT_SEED": str(seed)}
            return trained(args, data, folder / name, folder / f"cache-{name}", environment)

        tolerance = TOLERANCES[precision]
        cases = list(itertools.product(args.kinds, args.places, range(args.seeds)))
        verdicts = collections.defaultdict(collections.Counter)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for (kind, place, seed), (code, line, results, changed) in zip(cases, pool.map(planted, cases)):
                same = "the same" if results == right else \
                    f"the same to {tolerance}" if are_close(right, results, tolerance) else f"OTHERS {results[-1:]}"
                good = code == CODE_REFUSED or (code == 0 and not same.startswith("OTHERS")) or not changed
                is_good = is_good and good
                verdict = "not in effect" if not changed else "refused" if code == CODE_REFUSED else \
                    f"exit {code}, results: {same}"
                verdicts[kind, place][verdict if good else "BAD"] += 1
                print(f"{precision:8} {kind:9} {place:12} seed {seed}: {'' if good else 'BAD: '}{verdict}: {line[:args.width]}",
                      flush=True)
        for (kind, place), counts in verdicts.items():
            print(f"{precision:8} {kind:9} {place:12} {sum(counts.values())} seeds: "
                  + "; ".join(f"{verdict} {count}" for verdict, count in counts.most_common()), flush=True)
    return is_good


SMALLEST = {"small_cnn": (1, 28), "tiny_cnn": (1, 28), "resnet9": (3, 32), "vit_s_16": (3, 32), "vit_b_16": (3, 32)}
CROSSED = ["small_cnn", "resnet18", "vit_s_16"]
ISAS = ["", "SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16"]
CAPABILITIES = ["", "default", "avx2", *(["avx512"] if HAS_AVX512 else [])]


def is_tried_with(isa, autocast):
    return not autocast or isa not in ("SSE41", "AVX2")  # as above


def alarm_cases(args):
    """(network, precision, channels_last, threads, isa, capability)."""
    names = args.models.split(",") if args.models else \
        subprocess.run([args.train, "list", "models"], capture_output=True, text=True, check=True).stdout.split()
    for number, name in enumerate(names):
        if name in CROSSED and not args.once:
            yield from (case for case in itertools.product([name], AUTOCASTS, [False, True], [1, 2], ISAS, CAPABILITIES)
                        if is_tried_with(case[4], case[1]))
            continue
        for run, isa in enumerate(ISAS):
            autocast = AUTOCASTS[(number + run) % len(AUTOCASTS)]
            yield (name, autocast if is_tried_with(isa, autocast) else "", (number + run) % 2 == 1, 1 + (number // 2 + run // 2) % 2,
                   isa, CAPABILITIES[(number // 3 + run) % len(CAPABILITIES)])


def tried_without_fault(args, case, folder, number):
    name, autocast, channels_last, threads, isa, capability = case
    channels, side = SMALLEST.get(name, (3, 64))
    more = {"input": [4, channels, side, side]} if name == "two_stream_convlstm" else {}
    passes = [(trains, images, autocast, channels_last, threads) for trains, images in ((True, 4), (False, 5))]
    environment = of_threads(threads)
    if isa:
        environment["ONEDNN_MAX_CPU_ISA"] = isa
    if capability:
        environment["ATEN_CPU_CAPABILITY"] = capability
    return case, proven(args, request_of(name, channels, side, passes, **more), environment, 10 * args.patience,
                        folder / str(number), most_crashes=40)


def false_alarms(args, folder):
    cases = list(alarm_cases(args))
    runs = operations = alarms = 0
    refused = collections.Counter()
    by_network = collections.defaultdict(lambda: [0, 0, 0, 0.0])
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, attempts in pool.map(lambda item: tried_without_fault(args, item[1], folder, item[0]), enumerate(cases)):
            runs += 1
            counts = by_network[case[0]]
            counts[0] += 1
            conditions = dict(zip(("network", "autocast", "channels_last", "threads", "isa", "capability"), case))
            for attempt in attempts:
                for operation in attempt.operations.values():
                    operations += 1
                    counts[1] += 1
                    if operation["right"]:
                        counts[3] = max(counts[3], operation["ratio"])
                        continue
                    alarms += 1
                    counts[2] += 1
                    print(f"FALSE ALARM {conditions}\n  {operation['key']}\n  ratio {operation['ratio']:.3g}: "
                          f"{operation['fault'] or attempt.end}", flush=True)
                if attempt.end == "error" and case[1]:  # not for every network and processor
                    refused[f"{case[0]}: {attempt.error}"] += 1
                elif attempt.end != "done":
                    alarms += 1
                    print(f"ended with {attempt.end} {attempt.error} {conditions} {attempt.where}", flush=True)
            if counts[0] == sum(other[0] == case[0] for other in cases):
                print(f"{case[0]}: {counts[0]} runs, {counts[1]} operations, {counts[2]} called wrong, worst ratio {counts[3]:.3f}",
                      flush=True)
    print(f"{runs} runs, {operations} operations, {alarms} called wrong or not tried")
    for text, count in refused.items():
        print(f"{count} runs in bfloat16 refused: {text}")
    return alarms == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--prover", help="default: apps/stoker-prove of the build")
    parser.add_argument("--library", help="default: tests/faulty_library/libstoker_faulty.so of the build")
    parser.add_argument("--train", nargs="?", const="", help="this mode; the program, by default apps/train of the build")
    parser.add_argument("--false-alarms", action="store_true", help="this mode")
    parser.add_argument("--all-elements", action="store_true", help="compare every element instead of a sample")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kinds", default=KINDS, type=lambda text: text.split(","))
    parser.add_argument("--places", default=PLACES, type=lambda text: text.split(","))
    parser.add_argument("--networks", default="small_cnn:1:28,resnet18:3:64", help="name:channels:side of those with plants")
    parser.add_argument("--models", default="", help="with --false-alarms: these instead of all")
    parser.add_argument("--once", action="store_true", help="with --false-alarms: no combinations")
    parser.add_argument("--precisions", default=["float32", "bfloat16"], type=lambda text: text.split(","), help="with --train")
    parser.add_argument("--options", default=[], type=lambda text: text.split(), help="with --train: more options of it")
    parser.add_argument("--patience", type=float, default=30, help="seconds without a line after which a process hangs")
    parser.add_argument("--train-patience", type=float, default=300, help="seconds for a whole run of train")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--width", type=int, default=160, help="of what is shown of a line of train")
    args = parser.parse_args()
    args.prover = args.prover or args.build / "apps/stoker-prove"
    args.library = pathlib.Path(args.library or args.build / "tests/faulty_library/libstoker_faulty.so").resolve()
    if not HAS_AVX512:
        print("no AVX-512: float32 alone is tried")
    mode = false_alarms if args.false_alarms else plants if args.train is None else trains
    args.train = args.train or args.build / "apps/train"
    with tempfile.TemporaryDirectory(prefix="stoker-backend-") as folder:
        sys.exit(0 if mode(args, pathlib.Path(folder)) else 1)


if __name__ == "__main__":
    main()
