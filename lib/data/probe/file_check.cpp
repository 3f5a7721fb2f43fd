// SPDX-License-Identifier: Apache-2.0
#include "data/probe/file_check.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"

namespace stoker::data {
namespace {

/// "" or why a sample is bad.
std::string look_at(const Source& source, int64_t index, const DecodeLimits& limits, std::vector<uint8_t>& buffer,
                    ImageBuffer& image) {
  SampleContent content;
  if (std::string reason = source.read(index, buffer, content); !reason.empty() || content.is_pixels()) return reason;
  try {
    return decode_image(content.bytes, content.size, 3, limits, image);
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data) throw;
    return error.what();  // took too long to decode
  }
}

class Check {
 public:
  Check(const Source& source, const FileCheckSettings& settings) : source_(source), settings_(settings) {
    const int64_t size = source.size();
    wanted_ = settings.at_most == 0 ? size : std::min(size, settings.at_most);
    for (int64_t i = 0; i < size; ++i) {
      if (stored_bytes(source, i) == 0) bad_.emplace(i, "empty file");
    }
  }

  FileCheck run() {
    std::vector<std::thread> threads;
    const int64_t count = std::clamp<int64_t>(settings_.threads, 1, std::max<int64_t>(1, wanted_));
    try {
      for (int64_t i = 1; i < count; ++i) threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // with those that the system gives
    }
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    core::throw_if_stopped();
    FileCheck check;
    check.samples = source_.size();
    check.looked_at = wanted_;
    check.bad = static_cast<int64_t>(bad_.size());
    for (const auto& [index, reason] : bad_) {
      if (check.first_bad.size() == kShownBad) break;
      check.first_bad.push_back(core::printable(source_.name(index)) + ": " + reason);
    }
    return check;
  }

 private:
  void work() {
    std::vector<uint8_t> buffer;
    ImageBuffer image;
    try {
      for (int64_t i = next_++; i < wanted_ && !core::stop_requested(); i = next_++) {
        const int64_t index = i * source_.size() / wanted_;
        const std::string reason = look_at(source_, index, settings_.limits, buffer, image);
        if (reason.empty()) continue;
        const std::lock_guard<std::mutex> lock(mutex_);
        bad_.emplace(index, reason);
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = std::current_exception();
      next_ = wanted_;
    }
  }

  const Source& source_;
  const FileCheckSettings& settings_;
  int64_t wanted_ = 0;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::map<int64_t, std::string> bad_;  ///< by sample
  std::exception_ptr failure_;
};

}  // namespace

FileCheck check_files(const Source& source, const FileCheckSettings& settings) { return Check(source, settings).run(); }

std::string file_check_text(const FileCheck& check, const std::string& what) {
  const std::string bad = check.bad == 0 ? "none bad" : core::count_text(check.bad) + " bad";
  if (check.looked_at == check.samples)
    return core::format("all {} {} read, {}", core::count_text(check.samples), what, bad);
  return core::format("{} of {} {} read, {}", core::count_text(check.looked_at), core::count_text(check.samples), what,
                      bad);
}

}  // namespace stoker::data
