// SPDX-License-Identifier: Apache-2.0
#include "proof/trial.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>

#include "core/format.h"
#include "core/log.h"
#include "core/long_step.h"
#include "core/system/child_process.h"

namespace stoker::proof {
namespace {

using core::Json;

constexpr int kMostCrashes = 40;        // of one trial; a library that crashes everywhere needs no longer list
constexpr int kMostCrashesOfAKind = 6;  // each costs the start of a process; the rest of the kind is then not tried

std::string signal_text(int exit_code) {
  if (exit_code < 0) return "SIG of a kind that is not known";
  if (exit_code <= 128) return core::format("exit code {}", exit_code);
  const char* const name = ::sigabbrev_np(exit_code - 128);
  return name == nullptr ? core::format("signal {}", exit_code - 128) : core::format("SIG{}", name);
}

/// One process of the trial: the contents of its lines.
class Attempt {
 public:
  Attempt(const ProverSettings& settings, const Json& order, const Remedy& remedy, core::LongStep& step)
      : patience_(settings.patience_seconds), child_(command_of(settings, remedy), order.dump()), step_(step) {}

  enum class End { done, given_up, refused, crashed };

  End follow(Trial& trial, const Patience& limits) {
    while (const auto line = child_.read_line(patience_)) {
      const Json event = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
      if (!event.is_object()) continue;
      if (event.contains("pass")) in_pass_ = event["pass"].get<std::string>();
      if (event.contains("operations")) {
        in_pass_.clear();
        operations_ = event["operations"].get<size_t>();
      }
      if (event.contains("begin")) begin(event, trial);
      if (event.contains("end")) end(event, trial);
      if (event.contains("refused")) refuse(event, trial);
      if (event.contains("done")) {
        trial.peak_bytes = std::max(trial.peak_bytes, event["peak_bytes"].get<int64_t>());
        return End::done;
      }
      if (event.contains("error")) {
        error_ = event["error"].get<std::string>();
        lacks_memory_ = event["out_of_memory"].get<bool>();
        if (lacks_memory_) error_ = "memory ran out: " + error_;
        return End::refused;
      }
      const bool is_enough = limits.ends_at_fault && event.contains("end") && !event["right"].get<bool>();
      if (is_enough || trial.seconds() > limits.most_seconds) return End::given_up;
    }
    const bool hangs = child_.hangs();
    const int code = child_.wait();
    error_ = hangs ? core::format("no answer for {:.0f} s", patience_) : signal_text(code);
    lacks_memory_ = !hangs && code == 128 + SIGKILL;  // by the kernel, most probably
    if (lacks_memory_) error_ = "the process that tries the operations was killed, maybe for its memory";
    return End::crashed;
  }

  const std::string& key() const { return key_; }
  const std::string& in_pass() const { return in_pass_; }
  const std::string& error() const { return error_; }
  bool lacks_memory() const { return lacks_memory_; }

 private:
  static core::ChildCommand command_of(const ProverSettings& settings, const Remedy& remedy) {
    core::ChildCommand command{{settings.program}};
    // Threads that wait spin otherwise, for seconds where other work holds the CPUs.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr) command.variables.emplace_back("OMP_WAIT_POLICY", "passive");
    if (!remedy.isa.empty()) command.variables.emplace_back("ONEDNN_MAX_CPU_ISA", remedy.isa);
    return command;
  }

  void begin(const Json& event, Trial& trial) {
    key_ = event["begin"].get<std::string>();
    Tried& tried = trial.operations[key_];
    tried.family = event["family"].get<std::string>();
    for (const Json& name : event["ways"]) {
      if (const auto way = alternative_of(name.get<std::string>())) tried.ways.insert(*way);
    }
    tried.text = event["text"].get<std::string>();
    tried.library = event["library"].get<std::string>();
    tried.calls = event["calls"].get<int64_t>();
    tried.fault = "not computed to the end";
    step_.set_done(core::format("{} of {} operations", trial.operations.size() - 1, operations_));
  }

  void refuse(const Json& event, Trial& trial) {
    Tried& tried = trial.operations[key_];
    tried.was_refused = true;
    tried.fault = event["why"].get<std::string>();
    key_.clear();
  }

  void end(const Json& event, Trial& trial) {
    Tried& tried = trial.operations[key_];
    tried.is_right = event["right"].get<bool>();
    tried.fault = event["fault"].get<std::string>();
    tried.ratio = event["ratio"].get<double>();
    tried.seconds = event["seconds"].get<double>();
    key_.clear();
  }

  const double patience_;
  core::PipedChild child_;
  core::LongStep& step_;
  size_t operations_ = 0;  ///< in all
  std::string key_, in_pass_, error_;
  bool lacks_memory_ = false;
};

}  // namespace

bool Trial::is_right() const {
  return obstacle.empty() && crash.empty() && !was_given_up &&
         std::all_of(operations.begin(), operations.end(), [](const auto& entry) { return entry.second.is_right; });
}

double Trial::seconds() const {
  double sum = 0;
  for (const auto& [key, tried] : operations) sum += tried.seconds * static_cast<double>(tried.calls);
  return sum;
}

std::string kind_of(const std::string& family, const std::string& library) { return family + " of " + library; }

Trial tried(const Request& request, const Remedy& remedy, const ProverSettings& settings,
            const std::set<std::string>& only, const Patience& patience) {
  Trial trial;
  core::LongStep step(
      "backend   comparing", {},
      "backend   checking once that the libraries compute this network correctly; later starts reuse the "
      "result");
  bool without_onednn = false;
  std::map<std::string, int> crashes_of;  // by kind
  for (int crashes = 0; crashes < kMostCrashes;) {
    std::set<std::string> untried_kinds;
    for (const auto& [kind, count] : crashes_of) {
      if (count >= kMostCrashesOfAKind) untried_kinds.insert(kind);
    }
    std::set<std::string> skipped;
    for (const auto& [key, done] : trial.operations) skipped.insert(key);
    const Json order = {{"request", request},
                        {"remedy", remedy},
                        {"compares_all", settings.compares_all},
                        {"skip", skipped},
                        {"only", only},
                        {"untried_kinds", untried_kinds},
                        {"without_onednn", without_onednn}};
    Attempt attempt(settings, order, remedy, step);
    switch (attempt.follow(trial, patience)) {
      case Attempt::End::done: return trial;
      case Attempt::End::given_up: trial.was_given_up = true; return trial;
      case Attempt::End::refused:
      case Attempt::End::crashed: break;
    }
    if (attempt.lacks_memory()) {
      trial.obstacle = attempt.error();
      const auto under_way = trial.operations.find(attempt.key());
      if (under_way == trial.operations.end()) return trial;
      under_way->second.was_refused = true;  // that is no fault of the library
      trial.obstacle += " (" + under_way->second.text + ")";
      return trial;
    }
    if (attempt.key().empty()) {
      const std::string where =
          core::format("{} in {}", attempt.error(), attempt.in_pass().empty() ? "the network" : attempt.in_pass());
      const bool has_crashed = attempt.error().rfind("SIG", 0) == 0 || attempt.error().rfind("no answer", 0) == 0;
      if (!has_crashed) {
        trial.obstacle = attempt.error();
        return trial;
      }
      if (without_onednn) {
        trial.crash = where;
        return trial;
      }
      without_onednn = true;  // what crashes while passes are looked through is found when it is tried by itself
      continue;
    }
    ++crashes;
    Tried& faulty = trial.operations[attempt.key()];
    faulty.is_right = false;
    faulty.fault = attempt.error();
    ++crashes_of[kind_of(faulty.family, faulty.library)];
    if (patience.ends_at_fault) break;
  }
  trial.was_given_up = true;
  return trial;
}

}  // namespace stoker::proof
