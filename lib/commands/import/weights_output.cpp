// SPDX-License-Identifier: Apache-2.0
#include "commands/import/weights_output.h"

#include "core/error.h"
#include "core/format.h"
#include "core/system/file_system.h"
#include "engine/saved/safetensors.h"

namespace stoker::train {

void replace_safetensors(const std::string& path, const std::vector<model::NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  core::FileSystem& files = core::posix_file_system();
  const std::string temporary = path + ".part";
  files.remove(temporary);
  engine::write_safetensors(temporary, tensors, metadata, files);
  if (const int error_number = files.rename(temporary, path); error_number != 0) {
    files.remove(temporary);
    throw core::errno_error(error_number, "replace", core::printable(path), core::ErrorKind::cannot_create);
  }
}

}  // namespace stoker::train
