// SPDX-License-Identifier: Apache-2.0
#include "proof/remedy/cache_sizes.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// The name under which oneDNN 3 exports it; `level` is 1 to 3, the result in bytes.
namespace dnnl::impl::cpu::platform {
[[gnu::visibility("default")]] unsigned get_per_core_cache_size(int level);
}  // namespace dnnl::impl::cpu::platform

namespace {

std::atomic<bool> answers{false};

using CacheSize = unsigned (*)(int);
/// oneDNN's own; null where it has none that can be seen.
CacheSize real_cache_size() {
  static const auto function =
      reinterpret_cast<CacheSize>(::dlsym(RTLD_NEXT, "_ZN4dnnl4impl3cpu8platform23get_per_core_cache_sizeEi"));
  return function;
}

unsigned usual_size(int level) {
  constexpr unsigned kKiB = 1024;
  return level == 1 ? 32 * kKiB : level == 2 ? 512 * kKiB : 1024 * kKiB;
}

/// An AMD processor whose caches cannot be seen.
bool hides_caches() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (::__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  char vendor[12];
  std::memcpy(vendor, &ebx, 4);
  std::memcpy(vendor + 4, &edx, 4);
  std::memcpy(vendor + 8, &ecx, 4);
  if (std::memcmp(vendor, "AuthenticAMD", sizeof vendor) != 0) return false;
  constexpr unsigned kCacheLeaf = 0x8000001D, kCacheType = 0x1F;
  return ::__get_cpuid_count(kCacheLeaf, 0, &eax, &ebx, &ecx, &edx) == 0 || (eax & kCacheType) == 0;
#else
  return false;
#endif
}

}  // namespace

unsigned dnnl::impl::cpu::platform::get_per_core_cache_size(int level) {
  const CacheSize real = real_cache_size();
  return answers || real == nullptr ? usual_size(level) : real(level);
}

namespace stoker::proof {

bool cache_sizes_are_wrong() {
  constexpr unsigned kSmallest = 4096;  // bytes; no processor has a smaller first cache
  const CacheSize real = real_cache_size();
  return real != nullptr && (real(1) < kSmallest || hides_caches());
}

void override_cache_sizes(bool answer) { answers = answer; }

}  // namespace stoker::proof
