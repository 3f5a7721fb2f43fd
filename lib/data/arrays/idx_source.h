// SPDX-License-Identifier: Apache-2.0
// IDX files of MNIST and its kin, plain or gzipped, held in memory as pixels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace stoker::data {

/// The path of `<directory>/<split>-<kind>-ubyte`, plain or with .gz, also with a dot before "idx", in a folder of its
/// own name, or behind the name of a data set ("emnist-letters-"); "" when there is none. `kind` is "images-idx3" or
/// "labels-idx1". Throws Error{no_input} when several data sets have one.
std::string find_idx_file(const std::string& directory, const std::string& split, const std::string& kind);

/// Fashion-MNIST's class names when the folder is named after it, else "0".."<classes - 1>".
std::vector<std::string> idx_class_names(const std::string& directory, int64_t classes);

/// Reads and checks one split. Throws Error{no_input} when a file is missing, Error{data} when the magic is
/// wrong, a file is cut short or too long, counts differ, or a label is not below the number of classes.
std::shared_ptr<const Source> open_idx_split(const std::string& directory, const std::string& split,
                                             std::vector<std::string> class_names);

}  // namespace stoker::data
