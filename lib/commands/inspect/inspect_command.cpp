// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/inspect.h"
#include "core/error.h"

namespace stoker::train {
namespace {

using config::flag;

constexpr int64_t kMaxUpdate = 1'000'000'000'000;

/// What may be another one than in the run, because no bit depends on it; and device and threads, for those who have no
/// such device.
bool is_free(const config::Row& row) {
  for (const char* const name : {"data-dir", "device", "threads", "num-workers", "plan-check"}) {
    if (row.name == name) return true;
  }
  return row.group == "log";
}

config::Word run_word(std::string& into) {
  return config::word("RUN_OR_CHECKPOINT", "Run directory, or one checkpoint directory of it.", into);
}

config::Flag json_flag(bool& into) { return flag("json", "Prints the findings as JSON on standard output.", into); }

Command part(const std::string& name, const std::string& words, const std::string& summary) {
  Command command;
  command.name = "inspect " + name;
  command.usage = "train inspect " + name + " " + words;
  command.summary = summary;
  command.takes = is_free;
  command.opens_networks = true;
  return command;
}

}  // namespace

Command inspect_command() {
  Command command;
  command.name = "inspect";
  command.usage = "train inspect replay|verify|diff|blame ...";
  command.summary = "Computes past updates of a run again: to look at one, to check, to compare, to find a fault.";
  command.run = [](const Context&) -> Outcome {
    throw core::Error(core::ErrorKind::usage, "missing word: train inspect replay, verify, diff or blame",
                      "train inspect --help");
  };
  return command;
}

Command replay_command() {
  const auto flags = std::make_shared<ReplayFlags>();
  Command command = part("replay", "RUN --update N [options]",
                         "Computes a past update again: its images, labels, losses and gradients, without having "
                         "logged them.");
  command.words = {run_word(flags->run)};
  command.flags = {
      flag("update", "N", "The update to compute again, from 1.", flags->update, 1, kMaxUpdate),
      flag("output,o", "DIR", "Folder for pictures and figures (default: replay/update-N in the run directory).",
           flags->output),
      json_flag(flags->json)};
  command.takes = [](const config::Row& row) { return row.name == "override-resume" || is_free(row); };
  attach(command, replay, flags);
  return command;
}

Command verify_command() {
  const auto flags = std::make_shared<VerifyFlags>();
  Command command =
      part("verify", "RUN [--stretches K]", "Computes parts of a run again and compares them with its checkpoints.");
  command.words = {run_word(flags->run)};
  config::Flag segments =
      flag("stretches", "K", "Checkpoint intervals to compute again, drawn at random, or all (default: 3).",
           flags->segments, 1, kMaxUpdate);
  segments.store = [flags, number = segments.store](const std::string& text) {
    if (text != "all") return number(text);
    flags->segments = 0;
    return std::string();
  };
  command.flags = {segments, json_flag(flags->json)};
  attach(command, verify, flags);
  return command;
}

Command diff_command() {
  const auto flags = std::make_shared<DiffFlags>();
  Command command = part("diff", "A B",
                         "Compares two runs, or two checkpoints, and finds the first update at which the "
                         "runs part.");
  command.words = {run_word(flags->a),
                   config::word("OTHER", "What to compare it with: a run, or a checkpoint.", flags->b)};
  command.flags = {json_flag(flags->json)};
  attach(command, diff, flags);
  return command;
}

Command blame_command() {
  const auto flags = std::make_shared<BlameFlags>();
  Command command = part("blame", "RUN [--update N]",
                         "Finds where a divergence or a spike began: the update, the samples, the layer.");
  command.words = {run_word(flags->run)};
  command.flags = {flag("update", "N",
                        "The last update to look at (default: the end of a run that failed, else the largest spike of "
                        "its reports).",
                        flags->update, 1, kMaxUpdate),
                   json_flag(flags->json)};
  attach(command, blame, flags);
  return command;
}

}  // namespace stoker::train
