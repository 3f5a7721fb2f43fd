// SPDX-License-Identifier: Apache-2.0
// Bytes as a video file: our walk over its parts, the list of its frames, seeks. FFmpeg's libraries are not
// instrumented.
#include <memory>
#include <vector>

#include "data/storage/tree_walk.h"
#include "data/video/video_reader.h"
#include "fuzz_target.h"

using namespace stoker::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static stoker::fuzz::MemoryFile file;
  file.fill(bytes, size);
  VideoLimits limits;
  limits.max_megapixels = 0.0625;
  const VideoPlace place{file.path(), "", stamp_of(file.path())};
  const auto index = std::make_shared<const VideoIndex>(VideoReader::index_of(place, limits));
  if (!index->cause.empty()) return 0;
  FUZZ_CHECK(index->frames >= 1);
  FUZZ_CHECK(index->times.empty() || index->times.size() == static_cast<size_t>(index->frames));
  for (size_t i = 1; i < index->times.size(); ++i) FUZZ_CHECK(index->times[i - 1] < index->times[i]);
  FUZZ_CHECK(!index->keys.empty() && index->keys.front().frame == 0);
  for (size_t i = 1; i < index->keys.size(); ++i) {
    FUZZ_CHECK(index->keys[i - 1].frame < index->keys[i].frame && index->keys[i].frame < index->frames);
  }
  VideoReader reader;
  reader.take(place, limits, index);
  std::vector<uint8_t> rgb;
  for (const int64_t frame : {index->frames - 1, int64_t{0}, index->frames / 2}) {
    int height = 0, width = 0;
    if (!reader.read(frame, rgb, height, width).empty()) continue;
    FUZZ_CHECK(height > 0 && width > 0 && size_problem(width, height, limits).empty());
    FUZZ_CHECK(rgb.size() >= static_cast<size_t>(height) * static_cast<size_t>(width) * 3);
  }
  return 0;
}
