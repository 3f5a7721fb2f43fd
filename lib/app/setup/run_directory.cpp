// SPDX-License-Identifier: Apache-2.0
#include "app/setup/run_directory.h"

#include "core/error.h"
#include "core/log.h"
#include "engine/files/checkpoint_files.h"

namespace stoker::app {

RunDirectory::RunDirectory(const std::string& path) : path_(path) {
  core::make_directories(path_);
  lock_ = std::make_unique<core::LockFile>(path_ + "/.lock");
}

std::string find_checkpoint(const std::string& path, const std::string& which) {
  if (core::file_exists(path + "/manifest.json")) return path;
  const engine::CheckpointFiles files(path + "/checkpoints");
  for (const std::string& name : {which, std::string("last")}) {
    const int64_t updates = files.pointed(name);
    if (updates < 0) continue;
    if (name != which) core::log_info("{} has no {} checkpoint yet: taking {}", path, which, name);
    return files.path_of(updates);
  }
  throw core::Error(core::ErrorKind::no_input, "no checkpoint in " + core::printable(path),
                    "name a run directory (it holds checkpoints/) or a checkpoint (it holds manifest.json)");
}

}  // namespace stoker::app
