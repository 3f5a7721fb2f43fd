// SPDX-License-Identifier: Apache-2.0
#include "config/read/presets.h"

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/table/suggest.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kEmbeddedPresetCount; ++i) names.emplace_back(kEmbeddedPresets[i].name);
  return names;
}

const std::string& preset_text(const std::string& name) {
  static const std::map<std::string, std::string> texts = [] {
    std::map<std::string, std::string> map;
    for (size_t i = 0; i < kEmbeddedPresetCount; ++i) map[kEmbeddedPresets[i].name] = kEmbeddedPresets[i].text;
    return map;
  }();
  const auto found = texts.find(name);
  if (found != texts.end()) return found->second;
  const std::vector<std::string> names = preset_names();
  throw core::Error(core::ErrorKind::config, "unknown preset " + core::printable(name) + suggestion(name, names),
                    "presets: " + core::list_text(names, 100) + "; a file of your own is given with -c FILE");
}

}  // namespace stoker::config
