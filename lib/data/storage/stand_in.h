// SPDX-License-Identifier: Apache-2.0
// Files that came in place of the one that was fetched.
#pragma once

#include <string>
#include <string_view>

namespace stoker::data {

/// The step where a server sent something else.
inline constexpr char kFetchAgain[] =
    "fetch it again: a server answered with a page, such as one to log in, not with the file";

/// Throws Error{data} where `begin`, the first bytes of the file `name`, are those of a pointer of Git LFS, of HTML or
/// of XML; `wanted` is what it should be: "a tar archive".
void refuse_stand_in(const std::string& name, std::string_view begin, const char* wanted);

}  // namespace stoker::data
