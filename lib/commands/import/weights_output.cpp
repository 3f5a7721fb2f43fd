// SPDX-License-Identifier: Apache-2.0
#include "commands/import/weights_output.h"

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "engine/saved/safetensors.h"

namespace stoker::train {

void replace_safetensors(const std::string& path, const std::vector<model::NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  core::FileSystem& files = core::posix_file_system();
  core::remove_temporaries_of(path);
  const std::string temporary = core::temporary_of(path);
  engine::write_safetensors(temporary, tensors, metadata, files);
  if (const int error_number = files.rename(temporary, path); error_number != 0) {
    files.remove(temporary);
    throw core::errno_error(error_number, "replace", core::printable(path), core::ErrorKind::cannot_create);
  }
}

}  // namespace stoker::train
