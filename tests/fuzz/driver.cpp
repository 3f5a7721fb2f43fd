// SPDX-License-Identifier: Apache-2.0
// Runs one fuzz target without libFuzzer: mutates a corpus, keeps inputs that reach new branches, saves the
// input that breaks something. Deterministic: a seed gives the same sequence of inputs; time only cuts it
// off. Its flags are those of libFuzzer, of which it is a small substitute.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>

#include "coverage.h"
#include "mutator.h"

extern "C" {
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed);
// Reports end in abort(), so that one handler saves the input; a single allocation may take 256 MB.
const char* __asan_default_options() { return "abort_on_error=1:max_allocation_size_mb=256"; }
const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
}

namespace stoker::fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Settings {
  double max_total_time = 0;  ///< seconds; 0: no limit
  uint64_t runs = 0;          ///< 0: no limit
  uint64_t seed = 1;
  size_t max_len = 4096;  ///< bytes
  double timeout = 20;    ///< seconds for one input
  long rss_limit_mb = 1024;
  std::string dict, artifact_prefix, new_inputs;  ///< new_inputs: folder for inputs that reach new branches
  std::vector<std::string> paths;                 ///< corpus folders and files
};

/// For signal handlers: what runs now, and where to save it.
const uint8_t* running_bytes = nullptr;
size_t running_size = 0;
uint64_t executions = 0, executions_at_tick = 0;
double seconds_at_tick = 0, timeout_seconds = 0;
char crash_path[4096];

void save_running_input() {
  if (running_bytes == nullptr) return;
  const int fd = ::open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const bool saved = fd >= 0 && ::write(fd, running_bytes, running_size) == static_cast<ssize_t>(running_size);
  std::fprintf(stderr, "\n%s the input of %zu bytes to %s (after %llu executions)\n",
               saved ? "saved" : "could not save", running_size, crash_path,
               static_cast<unsigned long long>(executions));
}

void on_abort(int) {
  save_running_input();
  ::_exit(77);
}

/// Once a second: has this input been running for too long?
void on_tick(int) {
  seconds_at_tick = executions == executions_at_tick ? seconds_at_tick + 1 : 0;
  executions_at_tick = executions;
  if (seconds_at_tick < timeout_seconds || running_bytes == nullptr) return;
  std::fprintf(stderr, "one input has been running for %g seconds\n", seconds_at_tick);
  std::abort();
}

void install_handlers(const Settings& settings) {
  std::snprintf(crash_path, sizeof crash_path, "%scrash", settings.artifact_prefix.c_str());
  timeout_seconds = settings.timeout;
  struct sigaction action {};
  action.sa_handler = on_abort;
  ::sigaction(SIGABRT, &action, nullptr);
  action.sa_handler = on_tick;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval each_second{{1, 0}, {1, 0}};
  ::setitimer(ITIMER_REAL, &each_second, nullptr);
}

template <typename Number>
bool read_flag(const std::string& argument, const std::string& name, Number& value) {
  const std::string start = "-" + name + "=";
  if (argument.compare(0, start.size(), start) != 0) return false;
  const std::string text = argument.substr(start.size());
  if constexpr (std::is_same_v<Number, std::string>) {
    value = text;
  } else {
    value = static_cast<Number>(std::stod(text));
  }
  return true;
}

std::optional<Settings> read_arguments(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument[0] != '-') {
      settings.paths.push_back(argument);
    } else if (!read_flag(argument, "max_total_time", settings.max_total_time) &&
               !read_flag(argument, "runs", settings.runs) && !read_flag(argument, "seed", settings.seed) &&
               !read_flag(argument, "max_len", settings.max_len) && !read_flag(argument, "timeout", settings.timeout) &&
               !read_flag(argument, "rss_limit_mb", settings.rss_limit_mb) &&
               !read_flag(argument, "dict", settings.dict) &&
               !read_flag(argument, "artifact_prefix", settings.artifact_prefix) &&
               !read_flag(argument, "new_inputs", settings.new_inputs)) {
      std::fprintf(stderr, "unknown flag %s; see tests/fuzz/README.md\n", argument.c_str());
      return std::nullopt;
    }
  }
  return settings;
}

/// All inputs in a fixed order.
std::vector<Bytes> read_corpus(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
      std::fprintf(stderr, "cannot read %s\n", file.c_str());
      std::exit(1);
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return corpus;
}

Mutator* active_mutator = nullptr;  ///< behind LLVMFuzzerMutate

class Driver {
 public:
  explicit Driver(const Settings& settings) : settings_(settings), mutator_(settings.seed) {
    active_mutator = &mutator_;
  }

  int run() {
    if (!settings_.dict.empty()) {
      if (const std::string problem = mutator_.read_dictionary(settings_.dict); !problem.empty()) {
        std::fprintf(stderr, "%s\n", problem.c_str());
        return 1;
      }
    }
    install_handlers(settings_);
    const bool only_replay = std::none_of(settings_.paths.begin(), settings_.paths.end(),
                                          [](const std::string& path) { return fs::is_directory(path); });
    for (Bytes& input : read_corpus(settings_.paths)) {
      execute(input);
      corpus_.push_back(std::move(input));
    }
    given_ = corpus_.size();
    if (corpus_.empty()) corpus_.push_back({0});
    if (settings_.paths.empty() || !only_replay) {
      while (!is_over()) explore();
    }
    report();
    return 0;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool is_over() const {
    if (settings_.runs != 0 && executions >= settings_.runs) return true;
    return settings_.max_total_time > 0 && seconds() >= settings_.max_total_time;
  }

  /// Runs one input from a block of exactly its size, so that a byte too far is seen. True: new coverage.
  bool execute(const Bytes& input) {
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[input.size()]);
    std::copy(input.begin(), input.end(), exact.get());
    running_bytes = exact.get();
    running_size = input.size();
    const auto before = Clock::now();
    start_coverage();
    FUZZ_CHECK(LLVMFuzzerTestOneInput(exact.get(), input.size()) == 0);
    const size_t fresh = take_new_coverage();
    slowest_ = std::max(slowest_, std::chrono::duration<double>(Clock::now() - before).count());
    ++executions;
    if (executions % 256 == 0) check_memory();
    running_bytes = nullptr;
    return fresh != 0;
  }

  void check_memory() const {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss / 1024 <= settings_.rss_limit_mb) return;
    std::fprintf(stderr, "memory: %ld MB, more than -rss_limit_mb=%ld\n", usage.ru_maxrss / 1024,
                 settings_.rss_limit_mb);
    std::abort();
  }

  /// Half of the picks are among the newest inputs: that is where unknown branches are near.
  const Bytes& pick() {
    Choices& random = mutator_.random();
    const size_t newest = std::min<size_t>(corpus_.size(), 16);
    return corpus_[random.one_in(2) ? corpus_.size() - 1 - random.below(newest) : random.below(corpus_.size())];
  }

  void explore() {
    Bytes input = pick();
    const Bytes& partner = corpus_[mutator_.random().below(corpus_.size())];
    mutator_.set_partner(&partner);
    const uint64_t changes = 1ull << mutator_.random().below(5);
    for (uint64_t i = 0; i < changes; ++i) change(input);
    if (!execute(input)) return;
    if (!settings_.new_inputs.empty()) save_new(input);
    corpus_.push_back(std::move(input));
  }

  void change(Bytes& input) {
    if (LLVMFuzzerCustomMutator == nullptr) {
      mutator_.change(input, settings_.max_len);
      return;
    }
    const size_t size = input.size();
    input.resize(std::max(settings_.max_len, size));
    input.resize(LLVMFuzzerCustomMutator(input.data(), std::min(size, settings_.max_len), settings_.max_len,
                                         static_cast<unsigned>(mutator_.random().below(1u << 31))));
  }

  void save_new(const Bytes& input) const {
    fs::create_directories(settings_.new_inputs);
    std::ofstream file(settings_.new_inputs + "/" + std::to_string(executions), std::ios::binary);
    file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  }

  void report() const {
    std::printf("%llu executions in %.1f s (%.0f/s), %zu edges, corpus %zu given + %zu found, slowest %.0f ms\n",
                static_cast<unsigned long long>(executions), seconds(),
                static_cast<double>(executions) / std::max(seconds(), 1e-9), covered_edges(), given_,
                corpus_.size() - given_, 1e3 * slowest_);
  }

  const Settings settings_;
  Mutator mutator_;
  std::vector<Bytes> corpus_;
  size_t given_ = 0;
  double slowest_ = 0;  ///< seconds
  const Clock::time_point start_ = Clock::now();
};

}  // namespace
}  // namespace stoker::fuzz

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size) {
  stoker::fuzz::Bytes input(bytes, bytes + size);
  stoker::fuzz::active_mutator->change(input, max_size);
  std::copy(input.begin(), input.end(), bytes);
  return input.size();
}

int main(int argc, char** argv) {
  const auto settings = stoker::fuzz::read_arguments(argc, argv);
  return settings ? stoker::fuzz::Driver(*settings).run() : 64;
}
