// SPDX-License-Identifier: Apache-2.0
#include "data/storage/stand_in.h"

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {

void refuse_stand_in(const std::string& name, std::string_view begin, const char* wanted) {
  const auto begins_with = [&](std::string_view bytes) { return begin.substr(0, bytes.size()) == bytes; };
  const bool is_pointer = begins_with("version https://git-lfs");
  if (!is_pointer && !begins_with("<") && !begins_with("\xEF\xBB\xBF<")) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("{} is {}, not {}", core::printable(name),
                                 is_pointer ? "a pointer of Git LFS" : "HTML or XML", wanted),
                    is_pointer ? "get the files that it stands for: git lfs pull" : kFetchAgain);
}

}  // namespace stoker::data
