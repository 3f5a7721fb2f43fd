// SPDX-License-Identifier: Apache-2.0
// The presets that are built into the program: the generated table behind preset_text() in config.h.
#pragma once

#include <cstddef>

namespace stoker::config {

struct EmbeddedPreset {
  const char* name;  ///< path below configs/ without .yaml: "bench/fashion_mnist_peer"
  const char* text;
};

/// Sorted by name; defined in a file that embed_presets.cmake writes into the build directory.
extern const EmbeddedPreset kEmbeddedPresets[];
extern const size_t kEmbeddedPresetCount;

}  // namespace stoker::config
