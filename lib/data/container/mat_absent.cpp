// SPDX-License-Identifier: Apache-2.0
// MAT-files in a build without matio: stands in for mat_file.cpp.
#include "core/error.h"
#include "core/format.h"
#include "data/container/mat_file.h"

namespace stoker::data {

struct MatFile::Impl {};

MatFile::MatFile() = default;
MatFile::~MatFile() = default;

std::string MatFile::open(const std::string& path) {
  throw core::Error(core::ErrorKind::unavailable,
                    core::format("cannot read {}: this program was built without matio", core::printable(path)),
                    "install libmatio-dev and build again; cmake says whether it found matio");
}

// Never reached: there is no open file.
std::string MatFile::read_array(const std::string&, MatArray&) { return "not open"; }

}  // namespace stoker::data
