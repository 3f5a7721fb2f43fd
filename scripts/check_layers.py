#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every include and every link list below lib/ goes along an edge of the picture in lib/README.md, that each
edge is used, and that each third-party library is included by its own modules only. A module is a folder; a file belongs
to the deepest folder that is a module. A file has at most 500 lines, a module at most 32 files. Each file has a row in the
README.md of its top-level module, each source and test one in a CMakeLists.txt."""
import collections
import pathlib
import re
import sys

MOST_LINES, MOST_FILES = 500, 32

# Module: the modules that it may include from besides itself; "data*" stands for data and all modules inside it.
MODULES = {
    "core": "",
    "core/text": "core",
    "core/crash": "core",
    "core/system": "core core/crash",
    "core/time": "core core/text",

    "config": "core*",
    "config/table": "core* config",
    "config/yaml": "core* config config/table",
    "config/read": "core* config config/table config/yaml",
    "config/resolve": "core* config config/table",
    "config/preprocess": "core* config config/table",
    "config/render": "core* config config/table config/read",

    "statistics": "core* config",

    "kernels": "core",

    "data": "core* config config/table",
    "data/storage": "core*",
    "data/container": "core* data data/storage",
    "data/archive": "core* data/storage",
    "data/image/pixels": "data/storage",
    "data/image/jpeg": "core data/image/pixels",
    "data/image/tiff": "core data/storage",
    "data/image": "core data/storage data/image/pixels data/image/jpeg data/image/tiff",
    "data/bands": "core* data data/storage data/image/tiff",
    "data/sound": "core* config data data/storage",
    "data/video": "core* config data data/storage",
    "data/resample": "kernels data/storage data/image",
    "data/transform": "core* config kernels data data/image* data/resample",
    "data/dataset": "core* config data data/storage data/container data/bands data/sound data/video",
    "data/arrays": "core* data data/storage data/archive data/image/pixels",
    "data/shard": "core* data data/storage data/container data/image data/sound",
    "data/pack": "core* config data data/storage data/container data/image* data/resample data/shard",
    "data/cache": "core* config data data/image",
    "data/loader": "core* data data/image* data/resample data/transform",
    "data/feed": "core* data/image/pixels data/loader",
    "data/probe": "core* data data/image* data/storage data/transform data/loader",

    "data/audit": "core* data data/image* data/resample",

    "model": "core* config",
    "model/layers": "kernels",
    "model/script": "core* model",
    "torchscript": "model/script",
    "model/networks": "core* model model/layers",

    "optim": "core* config kernels",

    "engine/run": "core* config",
    "engine/files": "core*",
    "engine/device": "core* model engine/run",
    "engine/memory": "",
    "engine/task": "core* config statistics data/feed model engine/run engine/device engine/memory",
    "engine/step": "core* config data/loader data/feed model optim engine/run engine/device engine/memory engine/task "
                   "engine/group",
    "engine/digest": "core* model engine/step engine/group",
    "engine/saved": "core* config model engine/run engine/files",
    "engine/checkpoint": "core* config config/table data/loader model engine/run engine/files engine/device engine/saved engine/step "
                         "engine/digest",
    "engine/probe": "core* engine/device engine/memory engine/task engine/step",
    "engine/group": "core*",
    "engine/group/c10d": "core* engine/group",
    "engine/loop": "core* config data/audit data/loader data/feed optim engine/run engine/device engine/memory engine/task "
                   "engine/saved engine/checkpoint engine/step engine/digest engine/group",

    "proof/rules": "core",
    "proof/operation": "core engine/device proof/rules",
    "proof/remedy": "core* engine/device proof/operation",
    "proof": "core* model model/script engine/device proof/operation proof/remedy proof/rules",

    "weights/file": "core* data/storage data/archive engine/files",
    "weights/names": "core",
    "weights/load": "core* model weights/file weights/names",

    "deploy/inference": "core* config* data/transform engine/device engine/saved engine/task model* proof",
    "deploy/onnx": "core*",
    "deploy/trace": "core* model",
    "deploy/translate": "core* deploy/onnx deploy/trace",

    "plan": "core* config engine/memory",

    "observe/resources": "core* engine/run",
    "observe/diagnosis": "core* engine/run observe/resources",
    "observe/observers": "core* config engine/run observe/resources observe/diagnosis",
    "observe/report": "core* config/yaml observe/diagnosis",
    "observe/runs": "core* observe/report",

    "train": "train/process core* config* train/launch train/failure train/setup",
    "train/launch": "train/failure core* engine/run engine/group engine/group/c10d",
    "train/setup": "core* config* data* model* optim* engine* weights* deploy/inference plan proof observe/diagnosis train/launch",
    "train/observers": "core* config* data* model* engine* observe* train/setup",
    "train/failure": "core* config*",
    "train/process": "core* config* engine/device engine/memory train/failure",
    "commands/*": "core* config* statistics data* model* optim* engine* weights* deploy* plan proof observe* train* commands",
    "commands/train": "commands/runs",
    "commands/eval": "commands/train",
    "commands/predict": "commands/eval",
    "commands/check": "commands/plan commands/train",
    "commands/export": "commands/eval commands/import",
    "commands/audit": "commands/eval",
    "commands": "core* config* model train*",
    "embed": "core* data* model* engine/device engine/task deploy/inference",
}
MODULES = {module: modules.split() for module, modules in MODULES.items()}
# The top floor: a folder of a command may include all that is below; its row has the commands that it includes besides.
OF_COMMANDS = MODULES.pop("commands/*")
LIB = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "lib"
for path in filter(pathlib.Path.is_dir, sorted((LIB / "commands").iterdir())):
    MODULES.setdefault(f"commands/{path.name}", []).extend(OF_COMMANDS)
# Headers that a module includes although it may include nothing else of the folder they lie in.
SINGLE_HEADERS = {
    "engine/run": ["data/loader/loader_stats.h"],
    "train/failure": ["train/outcome.h"],
    "optim": ["model/buffers.h"],
    "engine/step": ["model/layers/batch_norm.h", "model/layers/random_source.h"],
    "plan": ["data/loader/batch_ring.h"],  # the size of a ring of batch buffers has one formula
}
# Files at the root of a module that include from the modules inside it: the front door.
FRONT_DOORS = {
    "config/config.h": "config/table",
    "data/detect_layout.cpp": "data*",
    "data/open_datasets.cpp": "data*",
    "data/open_labelled.cpp": "data*",
    "data/open_loose.cpp": "data*",
    "model/model.cpp": "model*",
    "commands/app.cpp": "commands*",
    "commands/registry.cpp": "commands*",
}
LIBRARIES = {  # a pattern of third-party headers: modules that may include them
    r"spdlog/|fmt/|xxhash|openssl/": "core",
    r"nlohmann/": "core/text",
    r"CLI/": "config/read",
    r"yaml-cpp/": "config/yaml",
    r"opencv2/": "data/image data/sound",
    r"jpeglib|jerror|jpegint": "data/image/jpeg",
    r"hdf5\.h|matio\.h": "data/container",
    r"sndfile\.h|soxr\.h|mpg123\.h": "data/sound",
    r"libav\w+/|libswscale/": "data/video",
    r"tiffio\.h": "data/image/tiff",
    r"png\.h|gif_lib\.h": "data/image",
    r"zlib\.h": "data/container data/archive data/image data/image/tiff data/arrays",
    r"torch/nn/modules": "model* weights/load",
    r"torch/csrc/distributed|gloo/": "engine/group/c10d",
    r"torch/script\.h|torch/csrc/jit/serialization": "torchscript",
    r"torch/|ATen/|c10/": "data/transform data/loader data/feed data/probe model* optim engine/device engine/memory engine/task "
                          "engine/saved engine/checkpoint engine/step engine/digest engine/group* engine/probe engine/loop proof* weights/load "
                          "deploy/inference deploy/trace deploy/translate torchscript embed train* commands*",
    r"\w+mmintrin\.h": "kernels",
    r"cuda|driver_types": "engine/device engine/group/c10d",
    r"nccl": "engine/group/c10d",
}


def module_of(path):
    """The module of a file, given relative to lib/; None for a file in no module."""
    folder = path.rpartition("/")[0]
    while folder and folder not in MODULES:
        folder = folder.rpartition("/")[0]
    return folder or None


def is_among(module, modules):
    return any(module == name or (name.endswith("*") and (module + "/").startswith(name[:-1] + "/")) for name in modules)


def sources_of(lib):
    return sorted(lib.rglob("*.h")) + sorted(lib.rglob("*.cpp"))


def circle_among_modules():
    """A chain of modules that ends where it starts; None when the picture has a direction."""
    done = set()

    def walk(module, chain):
        if module in chain:
            return chain[chain.index(module):] + [module]
        if module in done:
            return None
        for below in MODULES:
            if below != module and is_among(below, MODULES[module]):
                found = walk(below, chain + [module])
                if found:
                    return found
        done.add(module)
        return None

    return next(filter(None, (walk(module, []) for module in MODULES)), None)


def problem_of_own(file, module, header):
    """What is wrong with the include of a header of ours; empty: nothing."""
    target = module_of(header)
    if target is None:
        return f"{header} is in no module of scripts/check_layers.py"
    allowed = [module] + MODULES[module] + [FRONT_DOORS.get(file, module)]
    if is_among(target, allowed) or header in SINGLE_HEADERS.get(module, []):
        return ""
    return f"{module} may not include {header}: {target} is not among the modules that it builds on"


def problem_of_library(module, header):
    for pattern, modules in LIBRARIES.items():
        if re.match(pattern, header):
            modules = modules.split()
            return "" if is_among(module, modules) else f"{header} belongs to {' and '.join(modules)}, not to {module}"
    return ""


def wrong_includes(lib):
    """Includes and loops for particular CPUs against the picture, and edges of the picture that no include goes along."""
    problems, included = [], collections.defaultdict(set)
    for path in sources_of(lib):
        file = path.relative_to(lib).as_posix()
        module = module_of(file)
        if module is None:
            problems.append(f"{path}: lies in no module of scripts/check_layers.py")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r'target\w*\(.*"[\w,.]*(avx|sse\d|fma)', line) and module != "kernels":
                problems.append(f"{path}:{number}: loops for particular CPUs belong to kernels, not to {module}")
            match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if match:
                own, header = match.group(1) == '"', match.group(2)
                if own:
                    included[module].add(module_of(header) or "")
                problem = problem_of_own(file, module, header) if own else problem_of_library(module, header)
                if problem:
                    problems.append(f"{path}:{number}: {problem}")
    return problems + [f"check_layers: {module} includes nothing of {name}, which its row names"
                       for module, names in MODULES.items() for name in names
                       if not (module.startswith("commands/") and name in OF_COMMANDS)
                       and not any(is_among(target, [name]) for target in included[module])]


def wrong_links(lib):
    """Link lists, what stands behind MODULES in a stoker_module() of CMakeLists.txt, that name what the row of the module
    does not. A library with a name of its own (TARGET) is its folder, one without sources all modules in its folder."""
    libraries, folders = [], {}
    for path in sorted(lib.rglob("CMakeLists.txt")):
        for folder, words in re.findall(r"^\s*stoker_module\((\S+)([^)]*)\)", path.read_text(), re.MULTILINE):
            arguments = {}
            for word in words.split():
                if word in ("TARGET", "PART", "SOURCES", "MODULES", "LIBRARIES", "WITHOUT_TORCH"):
                    values = arguments.setdefault(word, [])
                else:
                    values.append(word)
            target = arguments.get("TARGET", ["stoker_" + folder.replace("/", "_")])[0]
            folders[target] = folder if "SOURCES" in arguments else folder + "*"
            if "SOURCES" in arguments:
                libraries.append((path, target, folder, arguments.get("MODULES", [])))
    problems = []
    for path, target, folder, links in libraries:
        allowed = [folder] + MODULES[folder] + [module_of(header) for header in SINGLE_HEADERS.get(folder, [])]
        allowed += [modules for file, modules in FRONT_DOORS.items() if module_of(file) == folder]
        for name in links:
            linked = folders.get("stoker_" + name.replace("/", "_"), name)
            if not is_among(linked, allowed):
                problems.append(f"{path}: {target} may not link {name}: {linked} is not among the modules that it builds on")
    return problems


def too_large(lib):
    lines = {path: len(path.read_text().splitlines()) for path in sources_of(lib)}
    problems = [f"{path}: {count} lines; {MOST_LINES} are allowed" for path, count in lines.items() if count > MOST_LINES]
    modules = collections.Counter(path.parent for path in lines)
    return problems + [f"{module}: {count} files; {MOST_FILES} are allowed" for module, count in sorted(modules.items())
                       if count > MOST_FILES]


def missing_in_readme(lib):
    """Files that neither the README.md of their top-level module nor that of their own folder names: as `name`, `name.cpp`
    or `folder/name`."""
    problems = []
    for path in sources_of(lib):
        top_level = lib / path.relative_to(lib).parts[0]
        readmes = [folder / "README.md" for folder in {top_level, path.parent}]
        text = "\n".join(readme.read_text() for readme in readmes if readme.exists())
        pattern = path.stem.replace(path.parent.name, "<name>", 1)  # one row for what each folder has
        if not re.search(rf"`([\w/]+/)?({path.stem}|{pattern})(\.h|\.cpp)?`", text):
            problems.append(f"{path}: not in {top_level.name}/README.md")
    return problems


def compiled_by_nothing(folder, pattern):
    """Sources that no CMakeLists.txt of `folder` names: nothing compiles them, and a test that is not compiled passes."""
    lists = "\n".join(path.read_text() for path in folder.rglob("CMakeLists.txt"))
    return [f"{path}: in no CMakeLists.txt" for path in sorted(folder.rglob(pattern))
            if not re.search(rf"(?<![\w.-]){re.escape(path.name)}\b", lists)]


def main():
    lib = LIB
    circle = circle_among_modules()
    problems = wrong_includes(lib) + wrong_links(lib) + too_large(lib) + missing_in_readme(lib) + compiled_by_nothing(lib, "*.cpp")
    if (lib.parent / "tests").is_dir():
        problems += compiled_by_nothing(lib.parent / "tests", "*_test.cpp")
    if circle:
        problems = [f"check_layers: the modules include one another in a circle: {' -> '.join(circle)}"]
    print("\n".join(problems) or "layers: every include goes in one direction")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
