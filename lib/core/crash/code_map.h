// SPDX-License-Identifier: Apache-2.0
// Which file the code at an address comes from: for signal handlers, by system calls alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::core {

/// The code that this process has mapped from files. Large: a static object.
class CodeMap {
 public:
  /// Reads /proc/self/maps. The code of the file `program` is called `name`. What does not fit is left out.
  void read(const char* program, const char* name);
  /// Name of the file without its folder; nullptr: the address is in the code of no file.
  const char* file_of(uintptr_t address) const;

 private:
  struct Mapping {
    uintptr_t begin = 0, end = 0;
    char file[112] = "";
  };
  void take_line(char* line, const char* program, const char* name);

  static constexpr size_t kMost = 1024;
  Mapping mappings_[kMost];
  size_t count_ = 0;
};

/// Copies memory of this process that may not be there. Returns how many bytes were, from the first on.
size_t copy_if_there(uintptr_t address, void* to, size_t bytes);

}  // namespace stoker::core
