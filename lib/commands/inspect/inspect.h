// SPDX-License-Identifier: Apache-2.0
// `train inspect replay|verify|diff|blame`: past updates of a run, recomputed.
#pragma once

#include "commands/command.h"
#include "core/error.h"

namespace stoker::train {

struct ReplayFlags {
  std::string run;
  int64_t update = 0;  ///< from 1; 0: not given
  std::string output;  ///< folder; empty: in the run directory
  bool json = false;
};
struct VerifyFlags {
  std::string run;
  int64_t segments = 3;  ///< between checkpoints, that are recomputed; 0: all
  std::string receipt;   ///< file to write; empty: none
  bool json = false;
};
struct DiffFlags {
  std::string a, b;  ///< two runs, or two checkpoints
  bool json = false;
};
struct BlameFlags {
  std::string run;
  int64_t update = 0;  ///< the last one to look at; 0: found by itself
  bool json = false;
};

[[gnu::weak]] Outcome replay(const Context& context, const ReplayFlags& flags);
[[gnu::weak]] Outcome verify(const Context& context, const VerifyFlags& flags);
[[gnu::weak]] Outcome diff(const Context& context, const DiffFlags& flags);
[[gnu::weak]] Outcome blame(const Context& context, const BlameFlags& flags);

inline constexpr int64_t kMaxInspectedUpdate = 1'000'000'000'000;

/// Options that may differ from those of the run, because no bit depends on them; and device and threads, for machines
/// without such device.
inline bool may_differ_from_run(const config::Row& row) {
  for (const char* const name : {"data-dir", "device", "threads", "num-workers", "plan-check"}) {
    if (row.name == name) return true;
  }
  return row.group == "log";
}

inline config::Flag findings_as_json(bool& into) {
  return config::flag("json", "Prints the findings as JSON on standard output.", into);
}

template <typename Flags>
Command inspect_part(const std::string& name, const std::string& usage, const std::string& summary,
                     Outcome (*run)(const Context&, const Flags&), const std::shared_ptr<Flags>& flags) {
  Command command = make_command("inspect " + name, usage, summary, run, flags);
  command.takes = may_differ_from_run;
  command.opens_networks = true;
  return command;
}

/// The four below it by name; does nothing itself.
inline Command inspect_command() {
  Command command;
  command.name = "inspect";
  command.usage = "train inspect replay|verify|diff|blame ...";
  command.summary = "Recomputes updates of a run: shows one, verifies checkpoints, compares runs, locates divergence.";
  command.run = [](const Context&) -> Outcome {
    throw core::Error(core::ErrorKind::usage, "missing part: train inspect replay, verify, diff or blame",
                      "train inspect --help");
  };
  return command;
}

inline Command replay_command() {
  const auto flags = std::make_shared<ReplayFlags>();
  Command command =
      inspect_part("replay", "RUN --update N [options]",
                   "Recomputes a past update and shows its images, labels, losses and gradients.", replay, flags);
  command.arguments = {checkpoint_argument(flags->run)};
  command.flags = {
      config::flag("update", "N", "The update to recompute, from 1.", flags->update, 1, kMaxInspectedUpdate),
      config::output_flag("output,o", config::Flag::Writes::folder,
                          "Folder for pictures and figures (default: replay/update-N in the run directory).",
                          flags->output),
      findings_as_json(flags->json)};
  command.takes = [](const config::Row& row) { return row.name == "override-resume" || may_differ_from_run(row); };
  return command;
}

inline Command verify_command() {
  const auto flags = std::make_shared<VerifyFlags>();
  Command command = inspect_part(
      "verify", "RUN|RECEIPT [--segments K] [--receipt FILE]",
      "Recomputes segments of a run and checks that they reproduce its checkpoints, and its receipt.", verify, flags);
  command.arguments = {checkpoint_argument(flags->run)};
  config::Flag segments =
      config::flag("segments", "K", "Number of randomly chosen checkpoint intervals to recompute, or all (default: 3).",
                   flags->segments, 1, kMaxInspectedUpdate);
  segments.store = [flags, number = segments.store](const std::string& text) {
    if (text != "all") return number(text);
    flags->segments = 0;
    return std::string();
  };
  command.flags = {
      segments, config::removed_flag("stretches", "was renamed: write --segments"),
      config::output_flag("receipt", config::Flag::Writes::file,
                          "Writes where the weights come from, if all holds: FILE is an in-toto statement with "
                          "SLSA provenance, FILE.spdx.json an SPDX 3 document. Given instead of RUN, FILE "
                          "is proven again.",
                          flags->receipt),
      findings_as_json(flags->json)};
  return command;
}

inline Command diff_command() {
  const auto flags = std::make_shared<DiffFlags>();
  Command command = inspect_part("diff", "A B",
                                 "Compares two runs, or two checkpoints, and finds the first update where they "
                                 "diverge.",
                                 diff, flags);
  command.arguments = {checkpoint_argument(flags->a),
                       config::argument("OTHER", "Run or checkpoint to compare with.", flags->b)};
  command.flags = {findings_as_json(flags->json)};
  return command;
}

inline Command blame_command() {
  const auto flags = std::make_shared<BlameFlags>();
  Command command =
      inspect_part("blame", "RUN [--update N]",
                   "Locates the update, samples and layer where a divergence or loss spike started.", blame, flags);
  command.arguments = {checkpoint_argument(flags->run)};
  command.flags = {
      config::flag("update", "N",
                   "The last update to look at (default: the end of a run that failed, else the largest spike of "
                   "its reports).",
                   flags->update, 1, kMaxInspectedUpdate),
      findings_as_json(flags->json)};
  return command;
}

}  // namespace stoker::train
