// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/checkpoint.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/time/clock.h"
#include "engine/checkpoint/trained_state.h"
#include "engine/device/random_state.h"
#include "engine/digest/tensor_digest.h"
#include "engine/saved/safetensors.h"
#include "engine/saved/weights.h"

namespace stoker::engine {

// Whether a tensor holds inf or NaN, computed beside training.

/// For a float32 tensor of the CPU, by the calling thread alone.
bool all_finite(const torch::Tensor& tensor);

namespace {

/// For a float tensor whose numbers lie one behind the other: those with an exponent of ones are inf or NaN. By the
/// calling thread alone: LibTorch would make it a team of threads, beside the one that trains.
bool all_finite_numbers(const float* numbers, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, numbers + i, sizeof bits);
    found |= static_cast<uint32_t>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

}  // namespace

bool all_finite(const torch::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32 && tensor.is_non_overlapping_and_dense()) {
    return all_finite_numbers(tensor.data_ptr<float>(), tensor.numel());
  }
  return torch::isfinite(tensor).all().item<bool>();
}

namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kRandomFile = "random.safetensors";

core::Json bad_samples_json(const std::vector<data::BadSample>& bad) {
  core::Json list = core::Json::array();
  for (const data::BadSample& sample : bad) {
    // Paths may hold any bytes; JSON holds UTF-8 only. The index is what counts, the name is for people.
    list.push_back({{"sample", sample.sample},
                    {"name", core::printable(sample.name)},
                    {"reason", core::printable(sample.reason)}});
  }
  return list;
}

void refuse_non_finite(const std::vector<NamedTensor>& tensors, const CheckpointFiles& files) {
  for (const NamedTensor& entry : tensors) {
    if (!entry.tensor.is_floating_point() || all_finite(entry.tensor.detach())) continue;
    throw diverged_error(entry.name + " holds inf or NaN; no checkpoint was written", files);
  }
}

/// Whether an epoch that has begun can continue where it was: its batches are the same.
bool same_batches(const core::Json& saved, const core::Json& own) {
  config::OptionTexts then = saved_options(saved), now = saved_options(own);
  for (const char* const name :
       {"accumulation-steps", "batch-size", "class-balanced", "drop-last", "replicas", "seed", "shuffle-buffer"}) {
    if (then.count(name) > 0 && then[name] != now[name]) return false;
  }
  return saved.value("data_fingerprint", "") == own.value("data_fingerprint", "");
}

/// Whether results can be compared.
bool same_metric(const core::Json& saved, const core::Json& own) {
  return saved_metric(saved).empty() || saved_metric(saved) == saved_metric(own);
}

/// JSON would turn 1.5 into a count, and 1e300 into any number.
int64_t count_in(const core::Json& json, const char* key, const std::string& path) {
  constexpr int64_t kMost = int64_t{1} << 53;
  const core::Json& value = json.at(key);
  if (value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kMost)
    return value.get<int64_t>();
  throw Error(ErrorKind::data, format("{}/{}: {} is not a count", path, kStateFile, key), "use another checkpoint");
}

/// Parameters whose averages are younger than the run.
std::map<std::string, int64_t> begun_at_in(const core::Json& json, const std::string& path) {
  std::map<std::string, int64_t> begun_at;
  const auto found = json.find("optimizer_begun_at");
  if (found == json.end()) return begun_at;
  for (const auto& [name, steps] : found->items()) begun_at[name] = count_in(*found, name.c_str(), path);
  return begun_at;
}

/// Those of which an average of Adam is among `all` and not among `fitting`.
std::vector<std::string> without_averages(const std::vector<NamedTensor>& all,
                                          const std::vector<NamedTensor>& fitting) {
  std::vector<std::string> names;
  for (const NamedTensor& one : all) {
    const bool fits = std::any_of(fitting.begin(), fitting.end(), [&](const auto& of) { return of.name == one.name; });
    if (!fits && one.name.rfind("exp_avg", 0) == 0) names.push_back(one.name.substr(one.name.find('.') + 1));
  }
  return names;
}

}  // namespace

/// The run directory, as a command names it.
static std::string run_of(const CheckpointFiles& files) {
  const size_t slash = files.directory().rfind('/');
  return core::printable(slash == std::string::npos ? "." : files.directory().substr(0, slash));
}

core::Error diverged_error(const std::string& cause, const CheckpointFiles& files, const std::string& advice) {
  const std::vector<int64_t> saved = files.list();
  const std::string left = saved.empty() ? "no checkpoint has been written yet"
                                         : "the last good checkpoint is kept: " + files.path_of(saved.front());
  return {ErrorKind::diverged, "training diverged: " + cause,
          "train inspect blame " + run_of(files) + " shows in which update, sample and layer it began; " + advice +
              "; " + left};
}

Checkpoints::Checkpoints(const Settings& settings, RunIdentity identity)
    : settings_(settings), identity_(std::move(identity)), files_(settings.directory, *settings.file_system) {}

CheckpointFiles& Checkpoints::files() {
  saving_.wait();
  return files_;
}

Checkpoints::Content Checkpoints::content_of(const RunProgress& state, Learner& learner,
                                             const std::vector<data::BadSample>& bad) const {
  Content content;
  content.state = state;
  content.weights = model::state_of(*learner.model);
  content.optimizer = optimizer_state(learner);
  content.random = random_state(learner.device);
  if (learner.ema) content.average = average_state(learner);
  content.state_json = learner_facts(learner);
  content.state_json["train"] = state.to_json();
  content.state_json["bad_samples"] = bad_samples_json(bad);
  return content;
}

core::Json Checkpoints::learner_facts(const Learner& learner) const {
  core::Json json = {{"optimizer_steps", learner.optimizer->steps_taken()},
                     {"ema_updates", learner.ema ? learner.ema->updates() : 0},
                     {"class_names", identity_.class_names}};
  const std::map<std::string, int64_t> begun_at = learner.optimizer->begun_at();
  if (!begun_at.empty()) json["optimizer_begun_at"] = begun_at;
  return json;
}

void Checkpoints::write_texts(const std::string& folder, const core::Json& state,
                              std::map<std::string, FileRecord>& records) const {
  const auto put = [&](const char* name, const std::string& text) {
    records[name] = write_checkpoint_file(folder + "/" + name, text, files_.file_system());
  };
  put(kStateFile, core::json_page(state));
  put(kConfigFile, identity_.config_yaml);
  if (!identity_.preprocess.is_null()) put(kPreprocessFile, core::json_page(identity_.preprocess));
}

std::map<std::string, FileRecord> Checkpoints::write_files(const std::string& folder, const Content& content) const {
  std::map<std::string, FileRecord> records;
  const auto put_tensors = [&](const char* name, const std::vector<NamedTensor>& tensors) {
    const WrittenFile written =
        write_safetensors(folder + "/" + name, tensors, {{"format", "pt"}}, files_.file_system());
    records[name] = {written.bytes, written.digest};
  };
  put_tensors(kModelFile, content.weights);
  put_tensors(kOptimizerFile, content.optimizer);
  put_tensors(kRandomFile, content.random);
  if (!content.average.empty()) put_tensors(kAverageFile, content.average);
  const Lineage lineage{tensor_digest(content.weights), core::hash_hex(core::json_line(options_json(identity_))),
                        core::hash_hex(identity_.data_fingerprint), identity_.program,
                        chain_.before(content.state.updates)};
  core::Json json = content.state_json;
  lineage.write_to(json);
  write_texts(folder, json, records);
  return records;
}

/// Also on the saving thread: touches nothing that training changes.
CheckpointEvent Checkpoints::write(const Content& content) {
  const auto begin = std::chrono::steady_clock::now();
  refuse_non_finite(content.weights, files_);
  const RunProgress& state = content.state;
  CheckpointEvent event;
  const Committed committed = files_.commit(
      state.updates, [&](const std::string& folder) { return write_files(folder, content); }, manifest_of(identity_));
  chain_.saved({state.updates, committed.digest});
  event.bytes = committed.bytes;
  files_.point("last", state.updates);
  point_best(state);
  std::vector<int64_t> keep = to_average(state.updates);
  for (const int64_t updates : files_.list()) {
    if (kept_.every > 0 && updates % kept_.every == 0) keep.push_back(updates);
  }
  if (settings_.keep_best) {
    keep.insert(keep.end(), {state.best.updates, state.due_best.updates, files_.pointed("best")});
  }
  files_.prune(settings_.keep_last, keep);
  if (!settings_.keep_best) point_best(state);
  event.path = files_.path_of(state.updates);
  event.updates = state.updates;
  event.seconds = core::seconds_since(begin);
  return event;
}

void Checkpoints::begin_save(const RunProgress& state, Learner& learner, const std::vector<data::BadSample>& bad) {
  const uint64_t free_now = core::free_bytes(files_.directory());
  if (settings_.space_check && free_now > 0 && last_bytes_ > 0 && free_now < static_cast<uint64_t>(last_bytes_)) {
    throw Error(ErrorKind::io,
                format("the disk under {} has {} free, a checkpoint needs {}", files_.directory(),
                       core::bytes_text(double(free_now)), core::bytes_text(double(last_bytes_))),
                "free some space, then run the same command again: older checkpoints are whole");
  }
  const auto content = std::make_shared<Content>(content_of(state, learner, bad));
  const auto save = [this, content] { return write(*content); };
  if (!settings_.asynchronous) return saving_.run_here(save);
  if (!staging_) staging_.emplace(learner.device);
  auto copies = staging_->copy({content->weights, content->optimizer, content->random, content->average});
  content->weights = std::move(copies[0]);
  content->optimizer = std::move(copies[1]);
  content->random = std::move(copies[2]);
  content->average = std::move(copies[3]);
  saving_.begin(save);
}

std::optional<CheckpointEvent> Checkpoints::take_saved() {
  auto event = saving_.take();
  if (event) last_bytes_ = event->bytes;
  return event;
}

std::optional<CheckpointEvent> Checkpoints::finish_save() {
  saving_.wait();
  return take_saved();
}

CheckpointEvent Checkpoints::save(const RunProgress& state, Learner& learner, const std::vector<data::BadSample>& bad) {
  finish_save();
  begin_save(state, learner, bad);
  return *finish_save();
}

std::vector<int64_t> Checkpoints::to_average(int64_t updates) const {
  std::vector<int64_t> list;
  if (kept_.average_last == 0) return list;
  for (const int64_t one : files_.list()) {
    const bool is_meant = one == updates || (one < updates && one % kept_.average_every == 0);
    if (is_meant && static_cast<int64_t>(list.size()) < kept_.average_last) list.push_back(one);
  }
  return list;
}

std::vector<NamedTensor> Checkpoints::average_of(const std::vector<int64_t>& updates) const {
  std::vector<NamedTensor> average;
  std::vector<torch::Tensor> sums;  // float64; of what holds no fractions undefined
  for (const int64_t one : updates) {
    const std::string path = files_.path_of(one);
    verify_checkpoint(path);
    const std::vector<NamedTensor> weights = read_safetensors(evaluated_weights(path)).tensors;
    if (average.empty()) average = weights;
    require_same_table(average, weights, path);
    sums.resize(average.size());
    for (size_t i = 0; i < average.size(); ++i) {
      const auto same = std::find_if(weights.begin(), weights.end(),
                                     [&](const NamedTensor& entry) { return entry.name == average[i].name; });
      if (!same->tensor.is_floating_point()) continue;
      const torch::Tensor wide = same->tensor.to(at::kDouble);
      sums[i] = sums[i].defined() ? sums[i].add_(wide) : wide;
    }
  }
  for (size_t i = 0; i < average.size(); ++i) {
    if (!sums[i].defined()) continue;
    average[i].tensor = sums[i].div_(static_cast<double>(updates.size())).to(average[i].tensor.scalar_type());
  }
  return average;
}

void Checkpoints::save_average(const RunProgress& state, const std::vector<NamedTensor>& weights,
                               const std::vector<int64_t>& of, std::optional<double> value) {
  const core::Json record = {{"of", of}, {"value", value ? core::Json(*value) : core::Json(nullptr)}};
  const core::Json json = {{"train", state.to_json()},
                           {"class_names", identity_.class_names},
                           {"bad_samples", core::Json::array()},
                           {"average", record}};
  const auto fill = [&](const std::string& folder) {
    std::map<std::string, FileRecord> records;
    const WrittenFile written =
        write_safetensors(folder + "/" + kModelFile, weights, {{"format", "pt"}}, files_.file_system());
    records[kModelFile] = {written.bytes, written.digest};
    write_texts(folder, json, records);
    return records;
  };
  files_.commit(state.updates, fill, manifest_of(identity_), kAverageFolder);
}

bool Checkpoints::has_average(const std::vector<int64_t>& of) const {
  const std::string path = files_.directory() + "/" + kAverageFolder;
  if (!core::file_exists(path + "/manifest.json")) return false;
  try {
    verify_checkpoint(path);
    return read_state_file(path).at("average").at("of") == core::Json(of);
  } catch (const std::exception&) {  // damaged: it is made again
    return false;
  }
}

std::vector<std::string> Checkpoints::differences(const std::string& path,
                                                  const std::vector<std::string>& free_options) const {
  return engine::differences(identity_, read_manifest(path).extra, path, free_options);  // load() verifies the files
}

namespace {

/// The tensors of a network that a checkpoint's weights fit; without the classifier where that alone is of other
/// outputs. All of them where anything else differs, which is refused.
std::vector<NamedTensor> without_other_classifier(const model::ImageModel& network,
                                                  const std::vector<NamedTensor>& weights,
                                                  std::vector<std::string>& lines) {
  const std::vector<NamedTensor> all = model::state_of(network);
  std::vector<std::string> unused, fresh;
  std::vector<NamedTensor> fitting = matching_tensors(all, weights, unused);
  const auto is_of_classifier = [&](const NamedTensor& one) { return one.name.rfind(network.head_prefix(), 0) == 0; };
  for (const NamedTensor& one : all) {
    const auto has_name = [&](const NamedTensor& other) { return other.name == one.name; };
    if (std::any_of(fitting.begin(), fitting.end(), has_name)) continue;
    if (!is_of_classifier(one) || std::none_of(weights.begin(), weights.end(), has_name)) return all;
    fresh.push_back(one.name);
  }
  if (fresh.empty() || weights.size() != all.size()) return all;
  lines.push_back("the classifier has other outputs and begins at random: " + core::list_text(fresh));
  return fitting;
}

}  // namespace

RunProgress Checkpoints::load(const std::string& path, Learner& learner, std::vector<data::BadSample>& bad,
                              bool in_spite_of_differences) {
  const Manifest manifest = verify_checkpoint(path);
  if (manifest.files.count(kOptimizerFile) == 0) {
    throw Error(ErrorKind::data, path + " is an average of checkpoints, from which no run can continue",
                "start a new run from its weights: --init-from " + path);
  }
  const core::Json json = read_state_file(path);
  std::vector<NamedTensor> weights = read_safetensors(path + "/" + kModelFile).tensors;
  std::vector<NamedTensor> optimizer = read_safetensors(path + "/" + kOptimizerFile).tensors;
  const std::vector<NamedTensor> random = read_safetensors(path + "/" + kRandomFile).tensors;
  std::vector<NamedTensor> average, average_target;
  std::vector<std::string> lines;  // of what does not fit
  const std::vector<NamedTensor> all_weights = model::state_of(*learner.model);
  const std::vector<NamedTensor> weights_target =
      in_spite_of_differences ? without_other_classifier(*learner.model, weights, lines) : all_weights;
  const bool has_average = manifest.files.count(kAverageFile) > 0;
  const bool is_classifier_fresh = weights_target.size() < all_weights.size();
  const bool takes_average = learner.ema && (has_average || !in_spite_of_differences) && !is_classifier_fresh;
  if (takes_average) {
    average = read_safetensors(path + "/" + kAverageFile).tensors;
    average_target = average_state(learner);
  } else if (learner.ema) {
    lines.push_back("the average of weights starts again at the weights of the checkpoint");
  } else if (has_average) {
    lines.push_back("the average of weights is left out");
  }
  put_statistics_back(optimizer, kStatistics, weights, path + "/" + kOptimizerFile);
  if (has_average && !takes_average) average = read_safetensors(path + "/" + kAverageFile).tensors;
  put_statistics_back(optimizer, kStatisticsOfAverage, average, path + "/" + kOptimizerFile);
  if (!takes_average) average.clear();
  const Lineage lineage = Lineage::from_state(json, path + "/" + kStateFile);
  // Everything is compared before anything is changed.
  auto optimizer_target = optimizer_state(learner);
  if (!is_classifier_fresh) require_same_table(all_weights, weights, path + "/" + kModelFile);
  std::vector<std::string> fresh;  // for Adam, which corrects averages by the steps that they have seen
  if (in_spite_of_differences) {
    auto fitting = matching_tensors(optimizer_target, optimizer, lines);
    fresh = without_averages(optimizer_target, fitting);
    optimizer_target = std::move(fitting);
  } else {
    require_same_table(optimizer_target, optimizer, path + "/" + kOptimizerFile);
  }
  require_same_table(average_target, average, path + "/" + kAverageFile);
  try {
    RunProgress state = RunProgress::from_json(json.at("train"), path + "/" + kStateFile);
    if (!same_metric(manifest.extra, manifest_of(identity_))) {
      lines.push_back("the best result so far is of another metric and is reset");
      state.best = state.due_best = state.counted = state.latest = {};
      state.counted.epoch = state.epoch - 1;
      state.epochs_without_improvement = 0;
    }
    if (in_spite_of_differences && state.update_in_epoch > 0 && !same_batches(manifest.extra, manifest_of(identity_))) {
      lines.push_back(format("epoch {} is gone through again: its batches are others", state.epoch + 1));
      state.begin_epoch_again();
    }
    const bool same_data = manifest.extra.value("data_fingerprint", "") == identity_.data_fingerprint;
    if (!same_data && !json.at("bad_samples").empty()) lines.push_back("bad images are searched again");
    for (const core::Json& sample : same_data ? json.at("bad_samples") : core::Json::array()) {
      bad.push_back({count_in(sample, "sample", path), sample.at("name").get<std::string>(),
                     sample.at("reason").get<std::string>()});
    }
    const int64_t steps = count_in(json, "optimizer_steps", path);
    std::map<std::string, int64_t> begun_at = begun_at_in(json, path);
    for (const std::string& name : fresh) begun_at[name] = steps;
    learner.optimizer->set_steps_taken(steps, begun_at);
    if (takes_average) learner.ema->set_updates(count_in(json, "ema_updates", path));
    copy_by_name(weights_target, weights);
    copy_by_name(optimizer_target, optimizer);
    copy_by_name(average_target, average);
    if (learner.ema && !takes_average) copy_by_name(average_state(learner), all_weights);
    try {
      restore_random_state(random, learner.device);
    } catch (const c10::Error& error) {
      throw Error(ErrorKind::data, format("{}/{}: the random state cannot be used: {}", path, kRandomFile,
                                          error.what_without_backtrace()));
    }
    if (identity_.started_from.sha256.empty()) identity_.started_from = starting_weights_of(manifest.extra);
    chain_.loaded({state.updates, checkpoint_digest(path)}, lineage.before);
    if (in_spite_of_differences && !is_classifier_fresh &&
        json.at("class_names") != core::Json(identity_.class_names)) {
      lines.push_back("classes have other names than in the checkpoint: outputs keep their numbers");
    }
    for (const std::string& line : lines) core::log_warning("--override-resume: {}", line);
    return state;
  } catch (const core::Json::exception& error) {
    bad_state(path, error);
  }
}

Evaluated Checkpoints::best_left(const RunProgress& state) const {
  return best_present(files_, saved_metric(manifest_of(identity_)), state.updates);
}

void Checkpoints::point_best(const RunProgress& state) {
  const bool is_there = state.best.exists() && files_.has(state.best.updates);
  const int64_t best = is_there ? state.best.updates : best_left(state).updates;
  if (best == files_.pointed("best")) return;
  if (best >= 0) return files_.point("best", best);
  core::log_info("{} holds no evaluated checkpoint: there is no best one until the next evaluation",
                 files_.directory());
  files_.remove_link("best");
}

void Checkpoints::repair_links(const RunProgress& state) {
  if (files_.pointed("last") != state.updates && files_.has(state.updates)) files_.point("last", state.updates);
  point_best(state);
}

void Checkpoints::continue_from(RunProgress& state) {
  state.drop_results_of_stops();
  if (!settings_.keep_best || !state.best.exists() || files_.is_whole(state.best.updates)) return;
  const std::string gone = files_.path_of(state.best.updates);
  state.best = state.due_best = best_left(state);
  core::log_info("the best checkpoint so far, {}, is not there or damaged: {}", gone,
                 state.best.exists() ? "the best one that is left is " + files_.path_of(state.best.updates)
                                     : "the next evaluation is the best one until there is a better one");
}

}  // namespace stoker::engine
