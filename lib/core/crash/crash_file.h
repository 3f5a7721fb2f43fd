// SPDX-License-Identifier: Apache-2.0
// A file that records how a process ended, prepared in advance: the handler of a crash can allocate nothing.
#pragma once

#include <string>

namespace stoker::core {

struct CrashFile {
  std::string path, temporary;  ///< what is replaced, and by the rename of what
  std::string begin;            ///< start of its content; the rest is added by the crash
};

/// From now on a crash replaces `path` by a file that begins with `begin`. Instead of what was prepared before.
void prepare_crash_file(const std::string& path, const std::string& begin);
/// A crash writes none any more.
void drop_crash_file();
/// For a signal handler, which then owns it: no other code changes or frees it. nullptr: none is prepared.
const CrashFile* take_crash_file();

}  // namespace stoker::core
