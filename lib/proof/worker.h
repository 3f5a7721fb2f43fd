// SPDX-License-Identifier: Apache-2.0
// The process in which operations are tried: a crash or a hang there is a result. Reads one request, writes a line of
// JSON for each step.
#pragma once

#include <cstdio>
#include <string>

namespace stoker::proof {

/// `order`: {"request", "remedy", "compares_all", "skip", "only", "without_onednn"}, see tried(); without "remedy"
/// caches are answered for where oneDNN misreads them (cache_sizes.h). Lines that are written to `out`, in order:
///   {"pass": text}     an operation of a pass is about to be computed while the passes are looked through
///   {"operations": n}  how many distinct ones there are
///   {"begin": id, "family", "text", "ways", "library", "calls"}  one of them is about to be computed
///   {"alive": true}    a part of the work on it is done
///   {"end": id, "right", "fault", "ratio", "seconds"}
///   {"refused": id, "why": text}  instead: LibTorch throws, as it will in training, where everybody sees it
///   {"error": text, "out_of_memory"}  LibTorch refused it, or the passes
///   {"done": true, "peak_bytes": n}
/// Returns the exit code.
int work(const std::string& order, std::FILE* out);

}  // namespace stoker::proof
