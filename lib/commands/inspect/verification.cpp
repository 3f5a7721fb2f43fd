// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/verification.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <random>
#include <set>

#include "commands/inspect/inspect.h"
#include "commands/inspect/receipt.h"
#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/time/clock.h"
#include "engine/checkpoint/trained_state.h"
#include "engine/digest/tensor_digest.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// Checks one checkpoint, by itself and against the record of its update.
void check_one(const RecordedRun& run, int64_t updates, const std::string& path, Findings& found) {
  const std::vector<model::NamedTensor> weights = engine::read_trained_state(path);  // verifies the files
  const engine::Lineage lineage = engine::read_lineage(path);
  const engine::SavedModel saved = engine::load_saved_model(path);
  const engine::Manifest manifest = engine::read_manifest(path);
  if (saved.state.updates != updates || manifest.updates != updates) {
    found.problems.push_back(format("{}: it is of update {}, by its own record", path, saved.state.updates));
  }
  if (lineage.weights.empty()) {
    found.notes.push_back(path + ": written by a program without digests");
    return;
  }
  if (lineage.options != core::hash_hex(core::json_line(manifest.extra.at("training_options"))) ||
      lineage.data != core::hash_hex(manifest.extra.at("data_fingerprint").get<std::string>())) {
    found.problems.push_back(path + ": its options or data are not those that its state names");
  }
  std::vector<model::NamedTensor> own, rest;
  for (const model::NamedTensor& entry : weights) {
    (entry.name.find(": ") == std::string::npos ? own : rest).push_back(entry);
  }
  if (engine::tensor_digest(own) != lineage.weights) {
    found.problems.push_back(path + ": its weights are not those that its state names");
  }
  const auto recorded = run.digests.find(updates);
  engine::put_statistics_back(rest, engine::state_name(engine::kStatistics), own, path);  // as they were recorded
  if (recorded != run.digests.end() && recorded->second.weights != engine::tensor_digest(own)) {
    found.problems.push_back(format("{}: the run recorded other weights after update {}", path, updates));
  }
}

void check_link(const RecordedRun& run, const std::string& path, const std::string& path_before, Findings& found) {
  const engine::Lineage lineage = engine::read_lineage(path);
  if (lineage.weights.empty()) return;
  if (lineage.before.updates >= engine::read_manifest(path).updates && !lineage.before.digest.empty()) {
    found.problems.push_back(path + ": the checkpoint before it is not older");
  }
  const auto before = run.checkpoints.find(lineage.before.updates);
  if (!lineage.before.digest.empty() && before != run.checkpoints.end() &&
      engine::checkpoint_digest(before->second) != lineage.before.digest) {
    found.problems.push_back(format("{}: {} is not the checkpoint that it was computed from", path, before->second));
  }
  if (path_before.empty()) return;
  const engine::Lineage older = engine::read_lineage(path_before);
  if (older.weights.empty()) return;
  if (lineage.before.digest.empty()) {
    found.problems.push_back(format("{}: it names no checkpoint before it, but there is {}", path, path_before));
  }
  if (older.options != lineage.options) {
    found.notes.push_back(format("options changed between {} and {}", path_before, path));
  }
  if (older.data != lineage.data) {
    found.notes.push_back(format("the data changed between {} and {}", path_before, path));
  }
  if (older.program != lineage.program) {
    found.notes.push_back(format("the program, its device or threads changed between {} and {}", path_before, path));
  }
}

/// Calls `check`; what it throws is a problem of `path`.
template <typename Check>
void guarded(const std::string& path, std::vector<std::string>& problems, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    const ErrorKind kind = error.kind();
    if (kind == ErrorKind::bug || kind == ErrorKind::out_of_memory || kind == ErrorKind::io) throw;
    problems.push_back(path + ": " + error.what());
  } catch (const core::Json::exception& error) {
    problems.push_back(path + ": " + core::problem_text(error));
  }
}

/// `end`: from the checkpoint; `at`: computed.
void compare_progress(const std::string& path, const engine::RunProgress& end, const engine::RunProgress& at,
                      int64_t updates_per_epoch, std::vector<std::string>& problems) {
  const bool moved_on = end.update_in_epoch == 0 && at.update_in_epoch == updates_per_epoch;
  const int64_t epoch = moved_on ? at.epoch + 1 : at.epoch, update = moved_on ? 0 : at.update_in_epoch;
  const bool same_place = end.epoch == epoch && end.update_in_epoch == update && end.updates == at.updates;
  const engine::RunProgress none;
  const engine::RunProgress& sums = moved_on ? none : at;
  if (end.micro_batches != at.micro_batches) {
    problems.push_back(format("{}: it records {} micro-batches for each batch; computed were {}", path,
                              end.micro_batches, at.micro_batches));
  }
  const bool same_sums = end.epoch_images == sums.epoch_images && end.epoch_loss_sum == sums.epoch_loss_sum &&
                         end.epoch_score_sum == sums.epoch_score_sum;
  if (!same_place) {
    problems.push_back(format("{}: it records epoch {} and update {} of it; computed were epoch {} and update {}", path,
                              end.epoch + 1, end.update_in_epoch, epoch + 1, update));
  } else if (end.images != at.images || end.learning_rate != at.learning_rate || !same_sums) {
    problems.push_back(path + ": its images, learning rate or loss so far are not those that were computed");
  }
}

/// Nothing where state.json does not list them as this program does.
std::optional<std::set<int64_t>> recorded_bad_samples(const core::Json& state) {
  std::set<int64_t> samples;
  const auto list = state.find("bad_samples");
  if (list == state.end() || !list->is_array()) return std::nullopt;
  for (const core::Json& bad : *list) {
    const auto sample = bad.is_object() ? bad.find("sample") : bad.end();
    if (sample == bad.end() || !sample->is_number_integer()) return std::nullopt;
    samples.insert(sample->get<int64_t>());
  }
  return samples;
}

/// Counts of optimizer and average, names of classes and images left out, of state.json against what was computed.
void compare_state(const std::string& path, const engine::RunProgress& end, const Recomputation& part,
                   std::vector<std::string>& problems) {
  const core::Json saved = engine::read_state_file(path), computed = part.learner_facts();
  for (const char* const name : {"optimizer_steps", "ema_updates", "class_names", "optimizer_begun_at"}) {
    const auto own = saved.find(name), found = computed.find(name);
    const bool is_same = own == saved.end() ? found == computed.end() : found != computed.end() && *own == *found;
    if (!is_same) problems.push_back(format("{}/{}: its {} is not what was computed", path, engine::kStateFile, name));
  }
  if (end.update_in_epoch > 0) return;  // within an epoch batches ahead count, or do not
  std::set<int64_t> left_out;
  for (const data::BadSample& bad : part.bad_samples()) left_out.insert(bad.sample);
  const auto recorded = recorded_bad_samples(saved);
  if (!recorded) {
    problems.push_back(format("{}/{}: its bad_samples are no list of samples", path, engine::kStateFile));
  } else if (left_out != *recorded) {
    problems.push_back(format("{}/{}: its bad_samples are {}, computed were {}", path, engine::kStateFile,
                              recorded->size(), left_out.size()));
  }
}

/// preprocess.json against what the options and the data give. A temperature and thresholds that were fitted to outputs
/// later follow from neither. Fields that an older program did not write are not looked for.
void compare_preprocess(const std::string& path, core::Json computed, std::vector<std::string>& problems) {
  constexpr uint64_t kMaxBytes = 64 << 20;
  const std::string file = path + "/" + engine::kPreprocessFile;
  if (!core::file_exists(file)) return;
  core::Json saved = core::parse_json(core::read_file(file, kMaxBytes), file);
  if (!saved.is_object()) saved = {{"format", saved}};
  if (engine::was_replaced(engine::read_manifest(path), engine::kPreprocessFile)) {
    for (core::Json* const json : {&saved, &computed}) {
      json->erase("version");
      if (!(*json)["predictions"].is_object()) continue;
      for (const char* const fitted : {"temperature", "threshold"}) (*json)["predictions"].erase(fitted);
    }
  }
  for (const auto& field : saved.items()) {
    const std::string& name = field.key();
    const auto found = computed.find(name);
    if (found != computed.end() && *found == field.value()) continue;
    problems.push_back(format("{}: its {} is not what options and data give", file, core::printable(name)));
  }
}

void compute_range(Recomputation& part, const RecordedRun& run, const UpdateRange& range, RangeResult& result) {
  const std::string& path = run.checkpoints.at(range.to);
  for (const std::string& difference : part.differences(path)) result.problems.push_back(path + ": " + difference);
  const int64_t from = part.at().updates;
  if (from != range.from)
    result.problems.push_back(format("the checkpoint of update {} records update {}", range.from, from));
  while (result.problems.empty() && part.at().updates < range.to) {
    const auto recorded = run.digests.find(part.at().updates + 1);
    engine::ImageDigest images;
    part.advance(recorded == run.digests.end() ? nullptr : &images);
    ++result.updates;
    if (recorded == run.digests.end()) continue;
    ++result.compared;
    const bool same_images = recorded->second.images == images.hex();
    if (same_images && recorded->second.weights == engine::tensor_digest(model::state_of(*part.learner().model)))
      continue;
    const std::string libraries = changed_libraries(run, recorded->first, part.options());
    result.problems.push_back(format("update {} (epoch {}): {} from the record{}", recorded->first,
                                     recorded->second.epoch,
                                     same_images ? "the weights after it differ" : "its images differ",
                                     libraries.empty() ? "" : "; other libraries read and compute them: " + libraries));
  }
  if (!result.problems.empty()) return;
  const std::vector<model::NamedTensor> saved = engine::read_trained_state(path);
  const std::string measured = engine::state_name(engine::kStatistics);
  const bool was_measured = std::any_of(
      saved.begin(), saved.end(), [&](const model::NamedTensor& entry) { return entry.name.rfind(measured, 0) == 0; });
  if (was_measured) part.measure_statistics();
  const engine::StateDifference difference = engine::compare_states(engine::trained_state(part.learner()), saved);
  if (!difference.is_equal()) {
    const std::string& first =
        difference.different.empty() ? difference.only_one.front() : difference.different.front();
    const std::string libraries = changed_libraries(run, range.to, part.options());
    result.problems.push_back(
        format("{}: it is not what updates {} to {} compute: {} differs by up to {:.3g}, {} of {} "
               "tensors differ{}",
               path, range.from + 1, range.to, first, difference.largest,
               difference.different.size() + difference.only_one.size(), difference.tensors,
               libraries.empty() ? "" : "; other libraries compute it: " + libraries));
  }
  compare_preprocess(path, part.preprocess(), result.problems);
  const engine::RunProgress end = engine::read_progress(path);
  compare_state(path, end, part, result.problems);
  compare_progress(path, end, part.at(), part.plan().updates(), result.problems);
}

}  // namespace

std::vector<UpdateRange> update_ranges(const RecordedRun& run) {
  std::vector<UpdateRange> all;
  int64_t from = 0;
  for (const auto& [updates, path] : run.checkpoints) {
    if (updates > from) all.push_back({from, updates});
    from = updates;
  }
  return all;
}

std::vector<UpdateRange> drawn_ranges(const std::vector<UpdateRange>& all, int64_t count) {
  if (count <= 0 || count >= static_cast<int64_t>(all.size())) return all;
  std::vector<UpdateRange> drawn;
  std::mt19937_64 chance(std::random_device{}());
  std::sample(all.begin(), all.end(), std::back_inserter(drawn), count, chance);  // keeps the order
  return drawn;
}

Findings check_records(const RecordedRun& run) {
  Findings found;
  if (run.damaged_line > 0) {
    found.problems.push_back(format("{}/metrics.jsonl: line {} is not a record of a run", run.path, run.damaged_line));
  }
  std::string before;
  for (const auto& [updates, path] : run.checkpoints) {
    guarded(path, found.problems, [&, updates = updates, path = path] {
      check_one(run, updates, path, found);
      check_link(run, path, before, found);
    });
    before = path;
  }
  return found;
}

RangeResult verify_range(const config::CommandLine& line, const RecordedRun& run, const UpdateRange& range) {
  RangeResult result;
  const auto begin = std::chrono::steady_clock::now();
  guarded(format("updates {} to {}", range.from + 1, range.to), result.problems, [&] {
    const std::string start = range.from == 0 ? "" : run.checkpoints.at(range.from);
    Recomputation part(line, run, start, range.to);
    compute_range(part, run, range, result);
  });
  result.seconds = core::seconds_since(begin);
  return result;
}

double seconds_of(const RecordedRun& run) {
  if (run.checkpoints.empty()) return 0;
  try {
    return engine::load_saved_model(run.checkpoints.rbegin()->second).state.train_seconds;
  } catch (const Error&) {
    return 0;
  }
}

// `train inspect verify`: whether a run's checkpoints follow from its options and data, by computing parts of it again.

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

/// Parts of a run that computing it again does not prove.
const std::vector<std::string>& not_verified() {
  static const std::vector<std::string> all = {
      "losses and rates in the records", "validation and what follows from it (the best result, patience, plateau)",
      "times", "updates after the last checkpoint", "the name of a checkpoint that is gone"};
  return all;
}

core::Json json_of(const Verified& found, const RecordedRun& run) {
  core::Json computed = core::Json::array();
  for (const UpdateRange& range : found.drawn) computed.push_back({{"from", range.from}, {"to", range.to}});
  return {{"run", core::printable(run.path)},    {"holds", found.problems.empty()},
          {"problems", found.problems},          {"notes", found.notes},
          {"not_verified", not_verified()},      {"checkpoints", run.checkpoints.size()},
          {"segments", found.all.size()},        {"segments_computed", computed},
          {"updates", found.updates_to_cover()}, {"updates_computed", found.updates},
          {"digests_compared", found.compared},  {"seconds", found.seconds},
          {"run_seconds", found.run_seconds}};
}

void log_verification(const Verified& found) {
  for (const std::string& note : found.notes) core::log_info("note      {}", note);
  core::log_info("{}  {} of {} checkpoint intervals, {} of {} updates ({:.0f}%), {} recorded updates compared",
                 found.problems.empty() ? "verified" : "computed", found.drawn.size(), found.all.size(), found.updates,
                 found.updates_to_cover(),
                 percent_of(static_cast<double>(found.updates), static_cast<double>(found.updates_to_cover())),
                 found.compared);
  core::log_info("took      {}, {:.0f}% of the run's {}", core::duration_text(found.seconds),
                 percent_of(found.seconds, found.run_seconds), core::duration_text(found.run_seconds));
  core::log_info("not verified: {}", core::list_text(not_verified()));
}

void add_receipt_problems(const core::Json& receipt, const RecordedRun& run, std::vector<std::string>& problems) {
  guarded(run.path, problems, [&] {
    const std::vector<std::string> wrong = receipt_problems(receipt, run);
    core::log_info("receipt   {}", wrong.empty() ? "of this run" : "NOT of this run");
    problems.insert(problems.end(), wrong.begin(), wrong.end());
  });
}

void write_receipt(const RecordedRun& run, const std::string& path) {
  const core::Json receipt = receipt_of(run);
  write_result(path, core::json_page(receipt));
  const std::string spdx = path + ".spdx.json";
  write_result(spdx, core::json_page(spdx_of(receipt, core::utc_text(std::time(nullptr)))));
  core::log_info("written: {} and {}; train inspect verify {} proves it again", core::printable(path),
                 core::printable(spdx), core::printable(path));
}

}  // namespace

Outcome verify(const Context& context, const VerifyFlags& flags) {
  if (flags.json) log_to_stderr();
  const core::Json receipt = is_receipt(flags.run) ? read_receipt(flags.run) : core::Json();
  const RecordedRun run = read_recorded_run(receipt.is_null() ? flags.run : run_of_receipt(flags.run, receipt));
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
  std::vector<std::string> of_receipt;
  if (!receipt.is_null()) add_receipt_problems(receipt, run, of_receipt);
  found.run_seconds = seconds_of(run);
  found.all = update_ranges(run);
  found.drawn = drawn_ranges(found.all, flags.segments);
  for (const UpdateRange& range : found.drawn) {
    const RangeResult result = verify_range(context.line, run, range);
    core::log_info("interval  updates {} to {}: {}  {}", range.from + 1, range.to,
                   result.problems.empty() ? "bit-identical" : "DIFFERENT", core::duration_text(result.seconds));
    found.problems.insert(found.problems.end(), result.problems.begin(), result.problems.end());
    found.updates += result.updates;
    found.compared += result.compared;
    found.seconds += result.seconds;
  }
  log_verification(found);
  const bool is_only_receipt = found.problems.empty();
  found.problems.insert(found.problems.end(), of_receipt.begin(), of_receipt.end());
  if (flags.json) write_result("-", core::json_page(json_of(found, run)));
  if (found.problems.empty()) {
    if (!flags.receipt.empty()) write_receipt(run, flags.receipt);
    return {core::kExitOk, "verified", run.updates};
  }
  std::string list;
  for (const std::string& problem : found.problems) list += "\n  " + core::printable(problem);
  if (is_only_receipt) {
    throw core::Error(
        core::ErrorKind::data,
        format("the receipt {} is not that of {}:{}", core::printable(flags.run), core::printable(run.path), list),
        "the run itself matches its records; --receipt FILE writes its receipt");
  }
  throw core::Error(core::ErrorKind::data, format("{} does not match its records:{}", core::printable(run.path), list),
                    "data that changed since, or another program, LibTorch, processor or number of threads give other "
                    "bits, too: train "
                    "inspect diff compares two runs");
}

}  // namespace stoker::train
