// SPDX-License-Identifier: Apache-2.0
// Which seconds of a sound file a row of a CSV list names.
#include <charconv>
#include <string>

#include "core/format.h"
#include "data/dataset/csv_manifest.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

SoundPart CsvManifest::part() const {
  SoundPart part;
  if (!has_sound_name(path())) return part;
  const auto seconds_in = [&](size_t column, double& seconds) {
    if (column >= header_.size() || field(column).empty()) return;
    const std::string& text = field(column);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds < 1e9)) {
      fail(core::format("{} '{}' is no number of seconds", core::printable(header_[column]), core::printable(text)));
    }
  };
  seconds_in(begin_column_, part.begin);
  seconds_in(end_column_, part.end);
  if (end_column_ < header_.size() && !field(end_column_).empty() && part.end <= part.begin) {
    fail(core::format("the sound ends at {} s and begins at {} s", part.end, part.begin));
  }
  return part;
}

}  // namespace stoker::data
