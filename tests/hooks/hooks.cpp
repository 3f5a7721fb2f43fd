// SPDX-License-Identifier: Apache-2.0
// The hooks of train_with_hooks, by variables of the environment: STOKER_TEST_SLOW_COPY for
// scripts/bench/bottlenecks.py, STOKER_TEST_BATCHES for scripts/fake_cuda.sh, STOKER_TEST_UNINSTRUMENTED_TURNS for
// scripts/bench/overhead.py. sync_errors.cpp has STOKER_TEST_SYNC.
#include "train/setup/hooks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include "core/format.h"
#include "tests/hooks/overhead_turns.h"

namespace stoker::train {
namespace {

/// Seconds per byte by which copying from memory that is not page-locked is slower: the variable is in microseconds per
/// megabyte. No machine without a GPU has slow copies.
double slow_copy_seconds_per_byte(const config::ResolvedLoaderOptions& options) {
  const char* const text = std::getenv("STOKER_TEST_SLOW_COPY");
  return text && !options.pin_memory ? 1e-12 * std::max(0.0, std::atof(text)) : 0;
}

/// As tests/fake_cuda/runtime.cpp writes copies to a device: bytes, and FNV-1a of them.
void write_bytes(std::ostream& out, const torch::Tensor& tensor) {
  if (tensor.nbytes() == 0) return;
  uint64_t hash = 0xcbf29ce484222325;
  const auto* const bytes = static_cast<const uint8_t*>(tensor.data_ptr());
  for (size_t i = 0; i < tensor.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  out << core::format("{} {:016x}\n", tensor.nbytes(), hash) << std::flush;
}

}  // namespace

void hook_feed(const config::ResolvedLoaderOptions& options, data::FeedSettings& settings) {
  if (const char* const path = std::getenv("STOKER_TEST_BATCHES")) {
    settings.on_copy = [out = std::make_shared<std::ofstream>(path, std::ios::app)](const data::HostBatch& batch) {
      write_bytes(*out, batch.images);
      write_bytes(*out, batch.labels);
      write_bytes(*out, batch.targets);
    };
  }
  const double seconds_per_byte = slow_copy_seconds_per_byte(options);
  if (seconds_per_byte == 0) return;
  settings.on_copy = [seconds_per_byte](const data::HostBatch& batch) {
    const double bytes = static_cast<double>(batch.images.nbytes());
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_per_byte * bytes));
  };
}

void hook_facts(const config::ResolvedLoaderOptions& options, observe::DiagnosisFacts& facts) {
  if (slow_copy_seconds_per_byte(options) > 0) facts.pin_memory = options.pin_memory;
}

std::unique_ptr<engine::Observer> hook_observers(engine::Observer& observers) {
  const int64_t updates = hooks::updates_of_a_turn();
  return updates > 0 ? std::make_unique<hooks::OverheadTurns>(observers, updates) : nullptr;
}

}  // namespace stoker::train
