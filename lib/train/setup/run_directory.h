// SPDX-License-Identifier: Apache-2.0
// The directory of one run: created, proven writable, and held by one process at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/system/file.h"
#include "engine/checkpoint/checkpoint.h"

namespace stoker::train {

class RunDirectory {
 public:
  /// Creates and locks. Throws cannot_create, permission, run_dir_in_use, or config: the directory holds files of
  /// another program that a run would write over.
  explicit RunDirectory(const std::string& path);

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

 private:
  std::string path_;
  std::unique_ptr<core::LockFile> lock_;
};

/// The files and folders of the run that the folder of a checkpoint belongs to: nothing else may be written in their
/// place.
std::vector<std::string> files_of_run(const std::string& checkpoint);

/// `path` with its first "{n}" replaced by the lowest number from 1 of which no file or directory exists; it is made
/// with `make`, by this process alone. As it is without "{n}". Throws Error{cannot_create}, {permission}.
std::string numbered_directory(const std::string& path, bool make);

/// Renames a run directory that holds a run to `path`.old-1, or the next free number; nothing for one that does not.
/// Returns the new path or "". Throws Error{run_dir_in_use}, {cannot_create}.
std::string set_run_aside(const std::string& path);

/// The file that --init-from means: `path` itself; of a run directory or a checkpoint the weights that are evaluated
/// (the best checkpoint's, averaged ones where there are any); of a folder of Hugging Face's layout the weights in it.
/// Anything else, also the name of weights, is returned as it is. Throws Error{no_input} for a run without a
/// checkpoint.
std::string starting_weights(const std::string& path);
/// The class names of the run whose checkpoint, or whose export as safetensors, a file of weights is; empty: of none.
std::vector<std::string> classes_beside(const std::string& weights);
/// Mean and standard deviation that this run normalised with; empty: of none.
std::pair<std::vector<double>, std::vector<double>> normalisation_beside(const std::string& weights);

}  // namespace stoker::train
