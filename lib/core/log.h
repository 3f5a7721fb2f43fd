// SPDX-License-Identifier: Apache-2.0
// Log lines to the console and to the run's train.log. Behind this header stands spdlog; no other
// file includes it for logging. Library code logs through here and never prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/format.h"

namespace stoker::core {

enum class LogLevel { debug, info, warning, error };

/// The least severe level that reaches the console. The file always gets everything from debug up.
void set_console_level(LogLevel level);
/// Appends every later line, with UTC time and level, to `path`. Throws Error{cannot_create, permission, io or
/// os}, also for a pipe that nobody reads, and for a link unless it may be one: what lies in a run directory may be
/// from somebody else. A line that cannot be written later is lost, which one warning on the console reports.
void open_log_file(const std::string& path, bool may_be_link = true);
/// "warning: ", "error: ", or nothing: what stands before a line on the console.
const char* console_prefix(LogLevel level);
/// Replaces how console lines are shown (a progress display clears its line first); nullptr restores the
/// default: info to stdout, warnings and errors to stderr. `line` has no newline at its end. `live`: how
/// show_live_line() is shown; without it, by none.
void set_console_writer(std::function<void(LogLevel level, std::string_view line)> writer,
                        std::function<bool(std::string_view line)> live = nullptr);
/// Whether standard output is a terminal that can replace a line.
bool terminal_can_rewrite();
/// Shows a line below the log that the next one replaces; an empty one takes it away. False where none can be shown.
bool show_live_line(std::string_view line);
/// Flushes the file; called before exit.
void flush_log();

/// Bytes of `line` that would steer a terminal are shown as text: names come from files of anybody.
/// Safe from any thread. Repeated identical warnings beyond 20 in a run are counted, not shown.
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::debug, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace stoker::core
