// SPDX-License-Identifier: Apache-2.0
// A source of pixels that are held in memory, whatever kind of file they came out of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace stoker::data {

struct HeldPixels {
  std::string kind;  ///< "idx": part of the fingerprint
  std::string path;  ///< path of the file; its samples are called path#0, path#1, ...
  int height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;  ///< [samples, height, width, channels]
  std::vector<int32_t> labels;  ///< [samples]
};

/// Throws Error{data} that names `labels_path` where a label is not below the number of classes.
std::shared_ptr<const Source> make_pixel_source(HeldPixels held, const std::string& labels_path,
                                                std::vector<std::string> class_names);

/// Before that many bytes of a file's content are read into memory. Throws Error{out_of_memory} where less is free.
void require_free_memory(const std::string& path, uint64_t bytes);

/// "0" to "<classes - 1>".
std::vector<std::string> numbered_classes(int64_t classes);

/// [N, C, H, W] to [N, H, W, C].
std::vector<uint8_t> channels_last(const uint8_t* planes, int64_t images, int channels, int64_t area);

}  // namespace stoker::data
