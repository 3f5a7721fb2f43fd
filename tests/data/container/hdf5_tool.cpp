// SPDX-License-Identifier: Apache-2.0
// Writes what the program reads of a split, for scripts/parity/hdf5_parity.py:
//   hdf5_tool DATA_DIR SPLIT TASK OUT
// OUT.numbers has all samples [N, H, W, C] of their element, OUT.labels all labels or targets as float32.
#include <cstdio>
#include <fstream>

#include "config/task_facts.h"
#include "core/error.h"
#include "data/open_datasets.h"

int main(int argc, char** argv) {
  using namespace stoker;
  if (argc != 5) return 64;
  try {
    config::DataOptions options;
    options.dataset = config::DatasetType::hdf5;
    options.data_dir = argv[1];
    for (const auto& [name, task] : config::task_choices()) {
      if (name == argv[3]) options.task = task;
    }
    const auto source = data::open_split(options, argv[2]);
    const std::string out = argv[4];
    std::ofstream numbers(out + ".numbers", std::ios::binary), labels(out + ".labels", std::ios::binary);
    std::vector<uint8_t> buffer;
    std::vector<float> learned(static_cast<size_t>(std::max<int64_t>(1, source->num_targets())));
    for (int64_t i = 0; i < source->size(); ++i) {
      data::SampleContent content;
      const std::string cause = source->read(i, buffer, content);
      if (!cause.empty()) throw core::Error(core::ErrorKind::data, cause);
      numbers.write(reinterpret_cast<const char*>(content.bytes), static_cast<std::streamsize>(content.size));
      if (source->num_targets() > 0) {
        source->targets(i, learned.data());
      } else {
        learned[0] = static_cast<float>(source->label(i));
      }
      labels.write(reinterpret_cast<const char*>(learned.data()),
                   static_cast<std::streamsize>(learned.size() * sizeof(float)));
    }
    return numbers.flush() && labels.flush() ? 0 : 74;
  } catch (const core::Error& error) {
    std::fprintf(stderr, "hdf5_tool: %s\n%s\n", error.what(), error.hint().c_str());
    return core::exit_code(error.kind());
  }
}
