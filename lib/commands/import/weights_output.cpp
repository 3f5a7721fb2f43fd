// SPDX-License-Identifier: Apache-2.0
#include "commands/import/weights_output.h"

#include <limits>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "engine/saved/safetensors.h"
#include "train/failure/result_output.h"

namespace stoker::train {

void replace_safetensors(const std::string& path, const std::vector<model::NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  core::FileSystem& files = core::posix_file_system();
  const std::string file = output_file(path);
  const std::string target = file.empty() ? core::temporary_folder() + "/stoker-weights" : file;
  core::remove_temporaries_of(target);
  const std::string temporary = core::temporary_of(target);
  engine::write_safetensors(temporary, tensors, metadata, files);
  if (file.empty()) {  // a stream
    const std::string content = core::read_file(temporary, std::numeric_limits<uint64_t>::max());
    files.remove(temporary);
    write_result(path, content);
  } else if (const int error_number = files.rename(temporary, target); error_number != 0) {
    files.remove(temporary);
    throw core::errno_error(error_number, "replace", core::printable(path), core::ErrorKind::cannot_create);
  }
}

}  // namespace stoker::train
