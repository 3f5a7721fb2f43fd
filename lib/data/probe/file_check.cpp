// SPDX-License-Identifier: Apache-2.0
#include "data/probe/file_check.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"
#include "data/storage/byte_reader.h"

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

}  // namespace

FileCheck check_files(const Source& source, const FileCheckSettings& settings) {
  const int64_t size = source.size();
  const int64_t wanted = settings.at_most == 0 ? size : std::min(size, settings.at_most);
  std::mutex mutex;
  std::map<int64_t, std::string> bad;  // by sample
  for (int64_t i = 0; i < size; ++i) {
    const int64_t bytes = stored_bytes(source, i);
    if (bytes == 0) bad.emplace(i, "empty file");
    if (bytes >= 0 || source.stored() == nullptr) continue;
    SampleContent content;  // a file that is not there, or a sample whose size is not known
    std::vector<uint8_t> buffer;
    const std::string reason = source.read(i, buffer, content);
    if (reason.empty()) break;
    bad.emplace(i, reason);
  }
  core::for_each_index(wanted, settings.threads, [&] {
    return [&, buffer = std::vector<uint8_t>(), image = ImageBuffer()](int64_t i) mutable {
      const int64_t index = i * size / wanted;
      const std::string reason = look_at(source, index, settings.limits, buffer, image);
      if (reason.empty()) return;
      const std::lock_guard<std::mutex> lock(mutex);
      bad.emplace(index, reason);
    };
  });
  core::throw_if_stopped();  // a stop during the last samples, too
  FileCheck check;
  check.samples = size;
  check.looked_at = wanted;
  check.bad = static_cast<int64_t>(bad.size());
  for (const auto& [index, reason] : bad) {
    if (check.first_bad.size() == kShownBad) break;
    check.first_bad.push_back(bad_file_text(source.name(index), reason));
  }
  return check;
}

std::string file_check_text(const FileCheck& check, const std::string& what) {
  const std::string bad = check.bad == 0 ? "none bad" : core::count_text(check.bad) + " bad";
  if (check.looked_at == check.samples)
    return core::format("all {} {} read, {}", core::count_text(check.samples), what, bad);
  return core::format("{} of {} {} read, {}", core::count_text(check.looked_at), core::count_text(check.samples), what,
                      bad);
}

}  // namespace stoker::data
