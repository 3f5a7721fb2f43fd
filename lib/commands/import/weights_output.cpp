// SPDX-License-Identifier: Apache-2.0
#include "commands/import/weights_output.h"

#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "engine/saved/safetensors.h"
#include "train/failure/result_output.h"

namespace stoker::train {

void write_weights(const std::string& path, const std::vector<model::NamedTensor>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  if (const std::string file = output_file(path); !file.empty()) {
    return engine::replace_safetensors(file, tensors, metadata);
  }
  const std::string temporary = core::temporary_of(core::temporary_folder() + "/stoker-weights");  // for a stream
  engine::write_safetensors(temporary, tensors, metadata);
  const std::string content = core::read_file(temporary, std::numeric_limits<uint64_t>::max());
  core::posix_file_system().remove(temporary);
  write_result(path, content);
}

}  // namespace stoker::train
