#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes only go from a room to rooms on its left, and that each library is met in its own room."""
import pathlib
import re
import sys

ROOMS = {  # room: rooms it may include from besides itself
    "core": [],
    "config": ["core"],
    "data": ["core", "config"],
    "model": ["core", "config"],
    "optim": ["core", "config"],
    "engine": ["core", "config", "data", "model", "optim"],
    "observe": ["core", "config"],
    "app": ["core", "config", "data", "model", "optim", "engine", "observe"],
}
SINGLE_HEADERS = {"observe": ["data/loader/loader_stats.h", "engine/run/events.h"]}
LIBRARIES = {  # a pattern of outside headers: rooms that may include them
    r"spdlog/|fmt/|xxhash|nlohmann/": ["core"],
    r"CLI/|yaml-cpp/": ["config"],
    r"opencv2/|jpeglib|zlib\.h|hdf5\.h|matio\.h": ["data"],
    r"torch/nn/modules": ["model"],
    r"torch/|ATen/|c10/": ["data", "model", "optim", "engine", "app"],
    r"cuda": ["engine"],
}


def check(lib):
    problems = []
    for path in sorted(lib.rglob("*.h")) + sorted(lib.rglob("*.cpp")):
        room = path.relative_to(lib).parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not match:
                continue
            header, where = match.group(1), f"{path}:{number}"
            target = header.split("/")[0]
            if '"' in line and target in ROOMS:
                if target not in [room] + ROOMS[room] and header not in SINGLE_HEADERS.get(room, []):
                    problems.append(f"{where}: {room} may not include {header}: {target} is not to its left")
                continue
            for pattern, rooms in LIBRARIES.items():
                if re.match(pattern, header):
                    if room not in rooms:
                        problems.append(f"{where}: {header} belongs to {' and '.join(rooms)}, not to {room}")
                    break
    return problems


def main():
    lib = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "lib"
    problems = check(lib)
    print("\n".join(problems) or "layers: every include goes in one direction")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
