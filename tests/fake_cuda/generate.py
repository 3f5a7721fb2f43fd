#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes and compiles the libraries of the fake CUDA: every function that LibTorch and the program want of them and that
runtime.cpp and libraries.cpp do not have, with its declaration from CUDA's headers. Each answers success; functions that
create write a handle, those that ask for a size write 0.

    generate.py OUT PROGRAM LIBRARY...     the program, and the libraries of LibTorch that use CUDA
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Prefix of functions: library, headers, status of a lack of memory, status of any other failure.
LIBRARIES = {
    "cublasLt": ("libcublasLt", ["cublasLt.h"], 3, 13),
    "cublas": ("libcublas", ["cublas_v2.h", "cublasXt.h"], 3, 13),
    "cudnn": ("libcudnn", ["cudnn.h"], 4002, 5000),
    "cusparse": ("libcusparse", ["cusparse.h"], 2, 6),
    "cusolver": ("libcusolver", ["cusolverDn.h", "cusolverSp.h"], 2, 6),
    "cufft": ("libcufft", ["cufft.h", "cufftXt.h"], 2, 6),
    "curand": ("libcurand", ["curand.h"], 102, 201),
    "nccl": ("libnccl", ["nccl.h"], 2, 1),
    "nvrtc": ("libnvrtc", ["nvrtc.h"], 1, 11),
    "nvJitLink": ("libnvJitLink", [], 1, 1),
    "cupti": ("libcupti", [], 1, 1),
    "nvtx": ("libnvToolsExt", [], 0, 0),
    "nvml": ("libnvidia-ml", [], 999, 999),
    "cuda": ("libcudart", ["cuda_runtime_api.h"], 2, 700),
    "cu": ("libcuda", ["cuda.h"], 2, 700),
}
ASKS = re.compile(r"Get|get|Create|create|[sS]ize|Version|Query|Estimate|Make")
NOISE = re.compile(r'''__attribute__\s*\(\((?:"[^"]*"|[^()"]|\((?:"[^"]*"|[^()"])*\))*\)\)|\[\[(?:"[^"]*"|[^]"])*\]\]|extern "C"''')
HEAD = '''// Written by generate.py.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
{includes}
#include "call.h"
namespace {{
template <typename T>
void answer(T* out, bool creates) {{
  if (out == nullptr) return;
  if constexpr (std::is_same_v<T, const char*>) {{
    *out = "an error of the fake";
  }} else if constexpr (std::is_pointer_v<T> && !std::is_const_v<T>) {{
    if (creates) *out = static_cast<T>(std::calloc(1, 4096));
  }} else if constexpr (std::is_integral_v<T> && !std::is_const_v<T>) {{
    if (sizeof(T) > 1) *out = 0;
  }}
}}
template <typename T>
void answer(const T&, bool) {{}}
}}
#define API extern "C" [[gnu::visibility("default")]]
'''


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted(files):
    """Name -> version of functions that are wanted of CUDA's libraries, also by name at run time; the sonames of these."""
    symbols, names = {}, set()
    for file in files:
        for line in run("nm", "-D", "--undefined-only", "--with-symbol-versions", file).splitlines():
            name, _, version = line.split()[-1].partition("@")
            if re.match(r"(__)?cuda|" + "|".join(f"{prefix}[A-Z]" for prefix in LIBRARIES), name) and "GLIBC" not in version:
                symbols[name] = version.lstrip("@") or symbols.get(name, "")
        for found in re.finditer(rb"\0(cu[A-Z]\w+|nvml[A-Z]\w+)(?=\0)", pathlib.Path(file).read_bytes()):  # for dlsym()
            symbols.setdefault(found[1].decode(), "")
        names.update(re.findall(r"NEEDED.*\[(lib(?:cu|nv|nccl)[^\]]*)\]", run("readelf", "-dW", file)))
    return symbols, names


def split(parameters):
    """At commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for letter in parameters:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    parts.append(part.strip())
    return [] if parts in ([""], ["void"]) else parts


def declaration(text, name):
    """The type of the result and the parameters of a function."""
    for candidate in (name, re.sub(r"(_v\d+)?(_ptsz)?$", "", name)):
        for found in re.finditer(rf"\b{candidate}\s*\(", text):
            end, depth = found.end(), 1
            while depth > 0:
                depth += (text[end] == "(") - (text[end] == ")")
                end += 1
            start = max(text.rfind(letter, 0, found.start()) for letter in ";{}") + 1
            result = " ".join(text[start:found.start()].split())
            if text[end:end + 20].lstrip().startswith(";") and re.fullmatch(r"[\w *]+", result) and "return" not in result:
                return result, split(text[found.end():end - 1])
    return None


def definition(name, text, memory, failure):
    found = declaration(text, name)
    start = f'  const int fault = fake_cuda_call("{name}");\n'
    if "Destroy" in name:  # frees memory of the host, also where the device is lost: LibTorch does so in destructors
        start = f'  fake_cuda_call("{name}");\n  const int fault = 0;\n'
    if not found:
        return f'API int {name}() {{\n{start}  return fault == 0 ? 0 : fault == 1 ? {memory} : {failure};\n}}\n', False
    result = re.sub(r"\bextern\b", "", found[0]).strip()
    parameters, answers = [], []
    for index, parameter in enumerate(found[1]):
        parameter = re.sub(r"\s*=.*|__dv\(.*?\)", "", parameter)
        array = re.search(r"(\w+)?\s*((\[\w*\])+)$", parameter)
        if array:
            parameters.append(parameter[:array.start()] + f" p{index}" + array[2])
        else:
            bare = re.fullmatch(r"(.*[\s*])(\w+)", parameter)
            known = re.fullmatch(r"(const\s+)?(void|int|unsigned|size_t|char|float|double)", parameter)
            parameters.append((bare[1] if bare and not known else parameter) + f" p{index}")
        if ASKS.search(name) and not array:
            creates = "true" if re.search(r"Create|create|Init|MakePlan|GetCurrent", name) else "false"
            answers.append(f"  answer(p{index}, {creates});\n")
    value = f"fault == 0 ? 0 : fault == 1 ? {memory} : {failure}"
    value = '"CUDA_FAKE"' if "char" in result else f"static_cast<{result}>({value})"
    ends = "" if result == "void" else f"  return {value};\n"
    body = start + "".join(answers) + ("  (void)fault;\n" if not ends or "FAKE" in value else "") + ends
    return f"API {result} {name}({', '.join(parameters)}) {{\n{body}}}\n", True


def main():
    out, files = pathlib.Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    symbols, sonames = wanted(files)
    sonames |= {"libcuda.so.1", "libcudart.so.12", "libnvidia-ml.so.1"}
    compile_it = ["g++", "-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-I", str(HERE), "-w"]
    by_hand = {"libcudart": ["runtime.cpp"], "libcudnn": ["libraries.cpp"], "libcublasLt": ["libraries.cpp"],
               "libnccl": ["libraries.cpp"], "libnvidia-ml": ["../observe/fake_nvml.cpp"]}
    texts = {}
    counts = []
    for soname in sorted(sonames, key=lambda name: (not name.startswith("libcudart"), name)):
        stem = soname.split(".so")[0]
        objects, defined = [], set()
        for source in by_hand.get(stem, []):
            objects.append(str(out / f"{stem}.hand.o"))
            visible = ["-fvisibility=default"] if "nvml" in source else []
            subprocess.run(compile_it + visible + [f"-DFAKE_{stem[3:].upper()}", "-c", str(HERE / source), "-o", objects[-1]], check=True)
            defined |= {line.split()[-1] for line in run("nm", "--defined-only", "-g", objects[-1]).splitlines()}
        prefix = next((prefix for prefix, row in LIBRARIES.items() if row[0] == stem), None)
        headers, memory, failure = LIBRARIES[prefix][1:] if prefix else ([], 1, 1)
        if prefix and stem not in texts:
            preprocessed = subprocess.run(["g++", "-std=c++17", "-E", "-P", "-x", "c++", "-"], text=True, capture_output=True,
                                          input="".join(f"#include <{header}>\n" for header in headers)).stdout
            texts[stem] = NOISE.sub("", preprocessed)
        own = {name: version for name, version in symbols.items()
               if prefix and re.sub("^__", "", name).startswith(prefix) and
               prefix == max((p for p in LIBRARIES if re.sub("^__", "", name).startswith(p)), key=len)}
        bodies, unknown = [], []
        for name in sorted(set(own) - defined):
            body, known = definition(name, texts[stem], memory, failure)
            bodies.append(body)
            if not known:
                unknown.append(name)
        source = out / f"{stem}.cpp"
        source.write_text(HEAD.format(includes="".join(f"#include <{header}>\n" for header in headers)) + "\n".join(f"#undef {name}\n{body}" for name, body in zip(sorted(set(own) - defined), bodies)))
        nodes = {}
        for name, version in own.items():
            nodes.setdefault(version or "", []).append(name)
        script = out / f"{stem}.map"
        script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in sorted(nodes.items()) if version))
        options = [f"-Wl,--version-script={script}"] if any(nodes) else []
        subprocess.run(compile_it + ["-shared", f"-Wl,-soname,{soname}", *options, str(source), *objects, "-o", str(out / soname)] +
                       ([] if stem == "libcudart" else [f"-L{out}", "-l:libcudart.so.12"]), check=True)
        answered = len(set(own) & defined)
        counts.append(f"{soname:24} {answered:4} by hand {len(bodies):4} generated" +
                      (f", without a declaration: {' '.join(unknown)}" if unknown else ""))
    print("\n".join(counts))


main()
