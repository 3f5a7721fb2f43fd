// SPDX-License-Identifier: Apache-2.0
// Writes the frames that the program reads of a video, for scripts/parity/video_parity.py:
//   video_tool FILE [FRAME...]
// Without frames all of them, in order. The first line is the number of frames, or "bad: " and why. Then for each frame
// a line "FRAME HEIGHT WIDTH" and its RGB bytes, or a line "FRAME bad: " and why.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "data/storage/tree_walk.h"
#include "data/video/video_reader.h"

int main(int argc, char** argv) {
  using namespace stoker::data;
  if (argc < 2) return 64;
  const VideoPlace place{argv[1], "", stamp_of(argv[1])};
  const auto index = std::make_shared<const VideoIndex>(VideoReader::index_of(place, {}));
  if (!index->cause.empty()) {
    std::printf("bad: %s\n", index->cause.c_str());
    return 0;
  }
  std::printf("%lld %zu keys%s%s\n", static_cast<long long>(index->frames), index->keys.size(),
              index->by_storage ? " by-storage" : "", index->times.empty() ? " counted" : "");
  std::vector<int64_t> wanted(argc > 2 ? 0 : static_cast<size_t>(index->frames));
  std::iota(wanted.begin(), wanted.end(), 0);
  for (int i = 2; i < argc; ++i) wanted.push_back(std::atoll(argv[i]));
  VideoReader reader;
  reader.take(place, {}, index);
  std::vector<uint8_t> rgb;
  for (const int64_t frame : wanted) {
    int height = 0, width = 0;
    const std::string cause = reader.read(frame, rgb, height, width);
    if (!cause.empty()) {
      std::printf("%lld bad: %s\n", static_cast<long long>(frame), cause.c_str());
      continue;
    }
    std::printf("%lld %d %d\n", static_cast<long long>(frame), height, width);
    std::fwrite(rgb.data(), 1, static_cast<size_t>(height) * static_cast<size_t>(width) * 3, stdout);
  }
  return 0;
}
