// SPDX-License-Identifier: Apache-2.0
// `train inspect verify`: whether a run's checkpoints follow from its options and data, by computing parts of it again.
#include "commands/inspect/inspect.h"
#include "commands/inspect/verification.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::format;

/// All that was found.
struct Verified {
  std::vector<std::string> problems, notes;
  std::vector<UpdateRange> all, drawn;
  int64_t updates = 0, compared = 0;
  double seconds = 0, run_seconds = 0;

  int64_t updates_to_cover() const { return all.empty() ? 0 : all.back().to; }
};

double percent_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

core::Json json_of(const Verified& found, const RecordedRun& run) {
  core::Json computed = core::Json::array();
  for (const UpdateRange& range : found.drawn) computed.push_back({{"from", range.from}, {"to", range.to}});
  return {{"run", core::printable(run.path)},
          {"holds", found.problems.empty()},
          {"problems", found.problems},
          {"notes", found.notes},
          {"checkpoints", run.checkpoints.size()},
          {"stretches", found.all.size()},
          {"stretches_computed", computed},
          {"updates", found.updates_to_cover()},
          {"updates_computed", found.updates},
          {"digests_compared", found.compared},
          {"seconds", found.seconds},
          {"run_seconds", found.run_seconds}};
}

void log_verification(const Verified& found) {
  for (const std::string& note : found.notes) core::log_info("note      {}", note);
  core::log_info("covered   {} of {} checkpoint intervals, {} of {} updates ({:.0f}%), {} recorded updates compared",
                 found.drawn.size(), found.all.size(), found.updates, found.updates_to_cover(),
                 percent_of(static_cast<double>(found.updates), static_cast<double>(found.updates_to_cover())),
                 found.compared);
  core::log_info("took      {}, {:.0f}% of the run's {}", core::duration_text(found.seconds),
                 percent_of(found.seconds, found.run_seconds), core::duration_text(found.run_seconds));
  core::log_info("left out  what was validated, and what was computed after the last checkpoint");
}

}  // namespace

Outcome verify(const Context& context, const VerifyFlags& flags) {
  if (flags.json) log_to_stderr();
  const RecordedRun run = read_recorded_run(flags.run);
  if (run.checkpoints.empty()) {
    throw core::Error(core::ErrorKind::no_input, "there is no checkpoint in " + core::printable(run.path),
                      "a run writes its first one at the end of the first epoch; see --save-every");
  }
  Verified found;
  const Findings records = check_records(run);
  found.problems = records.problems;
  found.notes = records.notes;
  core::log_info("records   {} checkpoint{}, {} updates with digests: {}", run.checkpoints.size(),
                 run.checkpoints.size() == 1 ? "" : "s", run.digests.size(),
                 found.problems.empty() ? "they agree" : "they DISAGREE");
  found.run_seconds = seconds_of(run);
  found.all = update_ranges(run);
  found.drawn = drawn_ranges(found.all, flags.segments);
  for (const UpdateRange& range : found.drawn) {
    const RangeResult result = verify_range(context.line, run, range);
    core::log_info("interval  updates {} to {}: {}  {}", range.from + 1, range.to,
                   result.problems.empty() ? "the same bits" : "NOT the same", core::duration_text(result.seconds));
    found.problems.insert(found.problems.end(), result.problems.begin(), result.problems.end());
    found.updates += result.updates;
    found.compared += result.compared;
    found.seconds += result.seconds;
  }
  log_verification(found);
  if (flags.json)
    write_result("-", json_of(found, run).dump(1, ' ', false, core::Json::error_handler_t::replace) + "\n");
  if (found.problems.empty()) return {core::kExitOk, "verified", run.updates};
  std::string list;
  for (const std::string& problem : found.problems) list += "\n  " + core::printable(problem);
  throw core::Error(
      core::ErrorKind::data, format("{} does not match its records:{}", core::printable(run.path), list),
      "another program, LibTorch, processor or number of threads computes other bits, too: train inspect diff "
      "compares two runs");
}

}  // namespace stoker::train
