// SPDX-License-Identifier: Apache-2.0
// Results on their way out: unlike news for the console, they must arrive whole or be missed loudly, unless their
// reader has left.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system/file.h"

namespace stoker::train {

/// A job started with closed descriptors would otherwise get its checkpoint as stdout: they are /dev/null from now on.
void reopen_standard_descriptors();

/// Writes a page such as --help to standard output. A reader that has seen enough (`| head`) is not an error: false is
/// returned. Throws io.
bool write_page(const std::string& text);

/// Writes to standard output when `path` is empty or "-", as write_page() does (on a terminal as
/// core::terminal_text()), through a device or pipe of that name when there is one, else replaces the file in one step.
/// False: its reader has left. Throws io, cannot_create or permission.
bool write_result(const std::string& path, const std::string& content);

/// Throws cannot_create or permission where the file or folder of that name cannot be written; "-" and devices can.
void require_file_output(const std::string& path);
void require_folder_output(const std::string& path);

/// The file that an output named `path` becomes: what a link leads to. Empty: standard output, a device or a pipe.
std::string output_file(const std::string& path);

/// Refuses to replace what is read: throws Error{usage} where the output named `path` is one of `inputs` ("@FILE" is a
/// list), or a file in a folder among them, but for those that end as one of `results`: earlier outputs.
void refuse_output_over_input(const std::string& path, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& results);

/// Output of a command that is written piece by piece: each piece leaves at once on standard output, a device or a
/// pipe; a file gets its name when all is written, and what a killed process left beside it is removed.
class ResultStream {
 public:
  /// As write_result(). Throws cannot_create, permission, io.
  explicit ResultStream(const std::string& path);
  ~ResultStream();
  ResultStream& operator=(ResultStream&&) = delete;  // not copied, not moved

  /// False: its reader has left, and nobody will see more.
  bool write(const std::string& text);
  void finish();  ///< the last call

 private:
  struct Closer {
    void operator()(std::FILE* stream) const { std::fclose(stream); }
  };

  const std::string path_, temporary_;
  std::unique_ptr<std::FILE, Closer> device_;
  std::unique_ptr<core::CheckedWriter> file_;
};

/// From now on all messages go to standard error, so that results on standard output can be piped.
void log_to_stderr();

// The machine-readable last line of the program, also where a process must end without running destructors.

/// Writes `line` to stderr, behind everything in the log.
void write_last_line(const std::string& line);
/// Logs the error, writes the last line and ends the process without running a destructor.
[[noreturn]] void leave(const core::Error& error);

/// Converts exceptions of the standard library to the one exception that users read; a core::Error stays as it is.
core::Error plain_error_of(const std::exception& exception);
/// `text`, or the type of the exception where that is empty: cuDNN's errors may have none.
std::string text_or_type(const std::exception& exception, const std::string& text);

}  // namespace stoker::train
