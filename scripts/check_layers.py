#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every include below lib/ goes along an edge of the picture in lib/README.md, and that each outside library
is met in its own room. A room is a folder; a file belongs to the deepest folder that is a room. A file has at most 300
lines, a room at most 30 files: what grows beyond that is two things."""
import collections
import pathlib
import re
import sys

MOST_LINES, MOST_FILES = 300, 30

CORE = ["core", "core/text", "core/system", "core/time"]
CONFIG = ["config"]

# Room: the rooms that it may include from besides itself; "data*" stands for data and all rooms inside it.
ROOMS = {
    "core": [],
    "core/text": ["core", "core/system"],
    "core/system": ["core"],
    "core/time": ["core", "core/text"],

    "config": CORE,
    "config/table": CORE + CONFIG,
    "config/yaml": CORE + CONFIG + ["config/table"],
    "config/read": CORE + CONFIG + ["config/table", "config/yaml"],
    "config/resolve": CORE + CONFIG + ["config/table"],
    "config/preprocess": CORE + CONFIG + ["config/table"],
    "config/render": CORE + CONFIG + ["config/table", "config/read"],

    "statistics": CORE + CONFIG,

    "kernels": CORE,

    "data": CORE + CONFIG,
    "data/storage": CORE,
    "data/container": CORE + ["data", "data/storage"],
    "data/image": CORE + ["data/storage"],
    "data/bands": CORE + ["data", "data/storage"],
    "data/resample": CORE + ["kernels", "data/storage", "data/image"],
    "data/transform": CORE + CONFIG + ["kernels", "data", "data/storage", "data/image", "data/resample"],
    "data/dataset": CORE + CONFIG + ["data", "data/storage", "data/container", "data/bands"],
    "data/shard": CORE + CONFIG + ["data", "data/storage", "data/container", "data/image"],
    "data/pack": CORE + CONFIG + ["data", "data/storage", "data/container", "data/image", "data/resample", "data/shard"],
    "data/cache": CORE + CONFIG + ["data", "data/image"],
    "data/loader": CORE + ["data", "data/image", "data/resample", "data/transform"],
    "data/feed": CORE + ["data", "data/image", "data/transform", "data/loader"],
    "data/probe": CORE + ["data", "data/image", "data/transform", "data/loader"],

    "data/audit": CORE + ["data", "data/storage", "data/image", "data/resample"],

    "model": CORE + CONFIG,
    "model/layers": CORE + ["kernels"],
    "model/script": CORE + ["model"],
    "torchscript": ["model/script"],
    "model/networks": CORE + ["model", "model/layers"],

    "optim": CORE + CONFIG + ["kernels"],

    "engine/run": CORE + CONFIG,
    "engine/files": CORE,
    "engine/device": CORE + ["model", "model/layers", "engine/run"],
    "engine/memory": CORE,
    "engine/task": CORE + CONFIG + ["statistics", "data/feed", "model", "engine/run", "engine/device", "engine/memory"],
    "engine/step": CORE + CONFIG + ["data/loader", "data/feed", "model", "optim", "engine/run", "engine/device",
                                    "engine/memory", "engine/task", "engine/group"],
    "engine/digest": CORE + ["model", "engine/step", "engine/group"],
    "engine/checkpoint": CORE + CONFIG + ["data/loader", "model", "optim", "engine/run", "engine/files", "engine/device",
                                 "engine/step", "engine/digest"],
    "engine/probe": CORE + ["engine/run", "engine/device", "engine/memory", "engine/task", "engine/step"],
    "engine/group": CORE,
    "engine/group/meet": CORE + ["engine/group"],
    "engine/group/c10d": CORE + ["engine/group", "engine/group/meet"],
    "engine/loop": CORE + CONFIG + ["data/loader", "data/feed", "optim", "engine/run", "engine/device", "engine/memory",
                                    "engine/task", "engine/checkpoint", "engine/step", "engine/digest", "engine/group"],

    "weights/file": CORE + ["data/storage", "engine/files"],
    "weights/names": CORE,
    "weights/load": CORE + ["model", "weights/file", "weights/names"],

    "deploy/onnx": CORE,
    "deploy/trace": CORE + ["model"],
    "deploy/translate": CORE + ["deploy/onnx", "deploy/trace"],

    "plan": CORE + CONFIG + ["engine/memory"],

    "observe/resources": CORE + ["engine/run"],
    "observe/diagnosis": CORE + ["engine/run", "observe/resources"],
    "observe/listeners": CORE + CONFIG + ["config/table", "engine/run", "observe/resources", "observe/diagnosis"],
    "observe/report": CORE + ["config/yaml", "observe/diagnosis"],
    "observe/runs": CORE + ["observe/report"],

    "app/network": CORE + CONFIG + ["model/script", "engine/checkpoint"],
    "app/setup": ["app/network", "core*", "config*", "data*", "model*", "optim*", "engine*", "weights*", "plan", "observe/diagnosis",
                  "observe/resources"],
    "app/plan": ["core*", "config*", "data*", "engine*", "plan", "app/setup"],
    "app/launch": ["core*", "engine/run", "engine/group", "engine/group/c10d"],
    "app/bench": ["core*", "config*", "data*", "model*", "optim*", "engine*", "app/setup"],
    "app/listeners": ["core*", "config*", "data*", "engine*", "observe*", "app/output", "app/setup"],
    "app/export": ["core*", "config*", "model", "engine*", "weights*", "deploy*", "app", "app/output", "app/setup"],
    "app/output": ["core*", "config*", "statistics", "engine/run", "data/probe", "engine/device", "engine/probe", "engine/task", "plan"],
    "app/audit": ["core*", "data", "data/audit", "data/image", "data/resample", "observe/report"],
    "app/replay": ["app/network", "core*", "config*", "data*", "model*", "optim*", "engine*", "app", "app/output", "app/setup"],
    "app/verbs": ["app/network", "core*", "config*", "statistics", "data*", "model*", "optim*", "engine*", "weights*", "observe*", "plan", "deploy*", "app", "app/setup", "app/audit", "app/bench", "app/export", "app/launch", "app/listeners", "app/output", "app/plan", "app/replay"],
    "embed": ["core*", "config*", "data*", "model*", "engine*", "app/setup"],
    "app": ["core*", "config*", "model*", "engine/device", "engine/memory", "app/launch", "app/output", "app/setup"],
}
# Headers that a room reads without reaching into the rest of the folder they lie in.
SINGLE_HEADERS = {
    "engine/run": ["data/loader/loader_stats.h"],
    "optim": ["model/buffers.h"],
    "engine/step": ["model/layers/random_source.h"],
    "plan": ["data/loader/batch_ring.h"],  # the size of a ring of batch buffers has one formula
}
# Files at the root of a room that see the rooms inside it: the front door.
FRONT_DOORS = {
    "config/config.h": ["config/table"],
    "data/detect_layout.cpp": ["data*"],
    "data/open_datasets.cpp": ["data*"],
    "data/open_labelled.cpp": ["data*"],
    "data/open_loose.cpp": ["data*"],
    "model/model.cpp": ["model*"],
}
LIBRARIES = {  # a pattern of outside headers: rooms that may include them
    r"spdlog/|fmt/|xxhash|nlohmann/": ["core", "core/text"],
    r"CLI/": ["config/read"],
    r"yaml-cpp/": ["config/yaml"],
    r"opencv2/|jpeglib": ["data/image"],
    r"hdf5\.h|matio\.h": ["data/container"],
    r"tiffio\.h": ["data/bands"],
    r"zlib\.h": ["data/container", "data/image", "data/dataset", "weights/file"],
    r"torch/nn/modules": ["model*", "weights/load"],
    r"torch/csrc/distributed|gloo/": ["engine/group/c10d"],
    r"torch/script\.h|torch/csrc/jit/serialization": ["torchscript"],
    r"torch/|ATen/|c10/": ["data/transform", "data/loader", "data/feed", "data/probe", "model*", "optim", "engine/device",
                           "engine/memory", "engine/task", "engine/checkpoint", "engine/step", "engine/digest", "engine/group*",
                           "engine/probe",
                           "engine/loop", "weights/load", "deploy/trace", "deploy/translate", "torchscript", "embed", "app*"],
    r"\w+mmintrin\.h|oneapi/": ["kernels"],
    r"cuda|driver_types": ["engine/device", "engine/group/c10d"],
    r"nccl": ["engine/group/c10d"],
}


def room_of(path):
    """The room of a file, given relative to lib/; None for a file in no room."""
    folder = path.rpartition("/")[0]
    while folder and folder not in ROOMS:
        folder = folder.rpartition("/")[0]
    return folder or None


def is_among(room, rooms):
    return any(room == name or (name.endswith("*") and (room + "/").startswith(name[:-1] + "/")) for name in rooms)


def circle_among_rooms():
    """A chain of rooms that leads back to its begin; None when the picture has a direction."""
    done = set()

    def walk(room, chain):
        if room in chain:
            return chain[chain.index(room):] + [room]
        if room in done:
            return None
        for below in ROOMS:
            if below != room and is_among(below, ROOMS[room]):
                found = walk(below, chain + [room])
                if found:
                    return found
        done.add(room)
        return None

    return next(filter(None, (walk(room, []) for room in ROOMS)), None)


def problem_of_own(file, room, header):
    """What is wrong with the include of a header of ours; empty: nothing."""
    target = room_of(header)
    if target is None:
        return f"{header} is in no room that scripts/check_layers.py knows"
    allowed = [room] + ROOMS[room] + FRONT_DOORS.get(file, [])
    if is_among(target, allowed) or header in SINGLE_HEADERS.get(room, []):
        return ""
    return f"{room} may not include {header}: {target} is not among the rooms that it builds on"


def problem_of_library(room, header):
    for pattern, rooms in LIBRARIES.items():
        if re.match(pattern, header):
            return "" if is_among(room, rooms) else f"{header} belongs to {' and '.join(rooms)}, not to {room}"
    return ""


def check(lib):
    problems = []
    for path in sorted(lib.rglob("*.h")) + sorted(lib.rglob("*.cpp")):
        file = path.relative_to(lib).as_posix()
        room = room_of(file)
        if room is None:
            problems.append(f"{path}: lies in no room that scripts/check_layers.py knows")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if match:
                own = match.group(1) == '"'
                problem = problem_of_own(file, room, match.group(2)) if own else problem_of_library(room, match.group(2))
                if problem:
                    problems.append(f"{path}:{number}: {problem}")
    return problems


def too_large(lib):
    sources = sorted(lib.rglob("*.h")) + sorted(lib.rglob("*.cpp"))
    lines = {path: len(path.read_text().splitlines()) for path in sources}
    problems = [f"{path}: {count} lines; {MOST_LINES} are allowed" for path, count in lines.items() if count > MOST_LINES]
    rooms = collections.Counter(path.parent for path in sources)
    return problems + [f"{room}: {count} files; {MOST_FILES} are allowed" for room, count in sorted(rooms.items())
                       if count > MOST_FILES]


def main():
    lib = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "lib"
    circle = circle_among_rooms()
    problems = [f"check_layers: the rooms go in a circle: {' -> '.join(circle)}"] if circle else check(lib) + too_large(lib)
    print("\n".join(problems) or "layers: every include goes in one direction")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
