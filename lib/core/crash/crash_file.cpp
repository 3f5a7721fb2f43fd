// SPDX-License-Identifier: Apache-2.0
#include "core/crash/crash_file.h"

#include <unistd.h>

#include <atomic>
#include <memory>

#include "core/format.h"

namespace stoker::core {
namespace {

/// Whoever takes the pointer out owns what it points to.
std::atomic<CrashFile*> g_prepared{nullptr};
static_assert(std::atomic<CrashFile*>::is_always_lock_free, "signal handlers may only touch lock-free atomics");

}  // namespace

void prepare_crash_file(const std::string& path, const std::string& begin) {
  auto file = std::make_unique<CrashFile>(CrashFile{path, format("{}.tmp-{}", path, ::getpid()), begin});
  const std::unique_ptr<CrashFile> old(g_prepared.exchange(file.release()));
}

void drop_crash_file() { const std::unique_ptr<CrashFile> old(g_prepared.exchange(nullptr)); }

const CrashFile* take_crash_file() { return g_prepared.exchange(nullptr); }

}  // namespace stoker::core
