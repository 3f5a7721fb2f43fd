// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "core/error.h"

namespace stoker::core {
namespace {

constexpr int kRepeatsShown = 20;

struct LogState {
  std::mutex mutex;
  LogLevel console_level = LogLevel::info;
  std::function<void(LogLevel, std::string_view)> console_writer;
  std::function<bool(std::string_view)> live_writer;
  std::string live_line;  ///< that stands on the terminal now, where there is no writer
  std::vector<std::shared_ptr<spdlog::logger>> files;
  std::string file_failure;  ///< why a line could not be written to a file, until it was logged
  bool file_failure_logged = false;
  std::unordered_map<std::string, int> warnings_seen;
};

/// Never destroyed: log lines may come while other statics go.
LogState& log_state() {
  static LogState* const state = new LogState;
  return *state;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// Opens `path` for as long as spdlog needs to open it too, which would wait for a reader of a pipe for ever.
class LogFileProbe {
 public:
  LogFileProbe(const std::string& path, bool may_be_link) {
    const int more = may_be_link ? 0 : O_NOFOLLOW;
    do {
      fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | more, 0666);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ >= 0) return;
    if (errno == ELOOP && !may_be_link) {
      throw Error(
          ErrorKind::cannot_create,
          "cannot open the log file " + printable(path) + ": it is a symbolic link, which may lead out of the run",
          "remove it");
    }
    if (errno != ENXIO) throw errno_error(errno, "open the log file", printable(path), ErrorKind::cannot_create);
    throw Error(ErrorKind::cannot_create,
                "cannot open the log file " + printable(path) + ": it is a pipe that nobody reads",
                "remove it, or name another file");
  }
  ~LogFileProbe() { ::close(fd_); }
  LogFileProbe& operator=(LogFileProbe&&) = delete;  // not copied, not moved

 private:
  int fd_ = -1;
};

void write_console(LogLevel level, std::string_view line) {
  std::FILE* const stream = level >= LogLevel::warning ? stderr : stdout;
  // A console that went away is not a reason to stop: the result is not looked at.
  std::fprintf(stream, "%s%.*s\n", console_prefix(level), static_cast<int>(line.size()), line.data());
  std::fflush(stream);
}

/// With the mutex held. The cursor rests at the beginning of the line; one that is too long is cut, not broken.
void draw_live_line(const LogState& state) {
  if (!state.live_line.empty()) std::printf("\r\x1b[?7l%s\x1b[?7h\x1b[J\r", state.live_line.c_str());
  std::fflush(stdout);
}

void erase_live_line(const LogState& state) {
  if (!state.live_line.empty()) std::printf("\r\x1b[J");
  std::fflush(stdout);
}

/// With the mutex held.
void show(LogState& state, LogLevel level, std::string_view line) {
  if (level < state.console_level) return;
  if (state.console_writer) {
    state.console_writer(level, line);
  } else {
    erase_live_line(state);
    write_console(level, line);
    draw_live_line(state);
  }
}

}  // namespace

const char* console_prefix(LogLevel level) {
  return level == LogLevel::warning ? "warning: " : level == LogLevel::error ? "error: " : "";
}

void set_console_level(LogLevel level) {
  const std::lock_guard<std::mutex> lock(log_state().mutex);
  log_state().console_level = level;
}

void open_log_file(const std::string& path, bool may_be_link) {
  const LogFileProbe probe(path, may_be_link);
  try {
    auto logger = std::make_shared<spdlog::logger>(
        "file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, /*truncate=*/false));
    logger->set_level(spdlog::level::debug);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    // Called inside log() and flush(), which are called with the mutex held. By default spdlog prints.
    logger->set_error_handler([](const std::string& cause) { log_state().file_failure = cause; });
    const std::lock_guard<std::mutex> lock(log_state().mutex);
    log_state().files.push_back(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(ErrorKind::cannot_create, format("cannot open the log file {}: {}", printable(path), error.what()));
  }
}

void set_console_writer(std::function<void(LogLevel, std::string_view)> writer,
                        std::function<bool(std::string_view)> live) {
  const std::lock_guard<std::mutex> lock(log_state().mutex);
  log_state().console_writer = std::move(writer);
  log_state().live_writer = std::move(live);
}

bool terminal_can_rewrite() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && term != nullptr && std::string_view(term) != "dumb" && *term != '\0';
}

bool show_live_line(std::string_view written) {
  static const bool can_rewrite = terminal_can_rewrite();
  const std::string line = terminal_text(written);
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.console_level > LogLevel::info) return false;
  if (state.live_writer) return state.live_writer(line);
  if (state.console_writer || !can_rewrite) return false;
  erase_live_line(state);
  state.live_line = line;
  draw_live_line(state);
  return true;
}

void flush_log() {
  const std::lock_guard<std::mutex> lock(log_state().mutex);
  for (const auto& file : log_state().files) file->flush();
}

void log_line(LogLevel level, std::string_view written) {
  const std::string line = terminal_text(written);
  LogState& state = log_state();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (level == LogLevel::warning) {
    const int seen = ++state.warnings_seen[line];
    if (seen > kRepeatsShown) return;
  }
  for (const auto& file : state.files) {
    file->log(spdlog_level(level), "{}", line);
    if (level >= LogLevel::info) file->flush();
  }
  if (!state.file_failure.empty() && !state.file_failure_logged) {
    state.file_failure_logged = true;
    show(state, LogLevel::warning, "log lines are lost: " + state.file_failure + "; the run continues");
  }
  show(state, level, line);
}

}  // namespace stoker::core
