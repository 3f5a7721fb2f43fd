// SPDX-License-Identifier: Apache-2.0
// Chooses every automatic option from facts, in the order in which they depend on each other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/resolve/draft.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {

std::size_t Resolution::place_of(const void* field) const {
  // As numbers: pointers into different objects must not be subtracted. One from before `options` wraps to a large one.
  const auto place =
      static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(field) - reinterpret_cast<std::uintptr_t>(&options));
  if (place >= sizeof(options)) throw std::logic_error("this is no option of the resolution");
  return place;
}

Draft::Draft(const Options& given) : options_(given) {
  for (const Row& row : table_.rows()) was_automatic_.push_back(row.is_auto());
}

void Draft::store(Row& row, const std::string& text, const Why& why) {
  const std::string problem = row.assign(text);
  if (!problem.empty()) {
    throw core::Error(core::ErrorKind::config, row.name + ": the automatic choice does not fit: " + problem,
                      "set " + row.name + " by hand");
  }
  note(row, why);
}

Resolution Draft::resolution() {
  Resolution resolution;
  Table resolved(resolution.options);
  for (size_t i = 0; i < table_.rows().size(); ++i) {
    const Row& row = table_.rows()[i];
    const std::string value = row.render();
    const std::string problem = row.is_auto() ? "it is still automatic" : resolved.rows()[i].assign(value);
    if (!problem.empty()) throw std::logic_error("option " + row.name + " was not resolved: " + problem);
    if (const auto chosen = chosen_.find(&row); chosen != chosen_.end()) {
      resolution.choices.push_back({row.name, value, chosen->second.reason, chosen->second.source});
    }
    if (was_automatic_[i]) resolution.automatic.insert(resolution.place_of(resolved.rows()[i].field));
    if (assumed_.count(&row) > 0) resolution.assumed.push_back(row.name);
  }
  return resolution;
}

namespace {

constexpr int64_t kUsualBatch = 64;   // images per device
constexpr double kHours = 1;          // a run of resnet18 may take by itself on a CPU
constexpr double kResNetWork = 10.9;  // GFLOP per image of 224 pixels, forward and backward
constexpr double kCpuSpeed = 60;      // GFLOP/s of one CPU, without reduced precision
constexpr int64_t kTinyUpdate = 8;    // an update with less than this part of a full one's images is lopsided

void choose_run_dir(Draft& draft, const std::string& run_name) {
  draft.choose(draft.options().run.run_dir, usual_run_dir(run_name, draft.options().data.data_dir),
               run_name.empty() ? "named after data-dir" : "named after the preset or the config files");
}

void choose_eval_metric(Draft& draft) {
  const TaskKind task = draft.options().data.task;
  draft.choose(draft.options().train.eval_metric, eval_metric_name(eval_metrics_of(task).front()),
               "for task " + task_name(task));
  draft.set_default(draft.options().task.loss, Loss{losses_of(task).front()});
}

/// The value of batch-size, with the accumulation-steps that belong to it, if any.
struct BatchChoice {
  Measured<int64_t> batch_size;
  std::optional<int64_t> accumulation_steps;
  bool is_assumed = false;
};

/// The batch of a run whose batch-size is automatic is chosen once.
BatchChoice batch_from(const Options& given, int64_t replicas, const Facts& facts) {
  if (!given.loader.batch_size.is_auto()) return {{given.loader.batch_size.value(), ""}, std::nullopt, false};
  if (facts.checkpoint && facts.checkpoint->batch_size) {
    return {{*facts.checkpoint->batch_size, kAsInCheckpoint, ChoiceSource::checkpoint},
            facts.checkpoint->accumulation_steps,
            false};
  }
  if (facts.batch_size) return {*facts.batch_size, std::nullopt, false};
  return {usual_batch(given, replicas), std::nullopt, true};
}

/// Batches per update, from --total-batch-size and the batch; one that does not divide it is a broken rule.
void choose_accumulation(Draft& draft, const BatchChoice& batch) {
  Options& o = draft.options();
  const int64_t total = o.train.total_batch_size, size = o.loader.batch_size.value() * o.train.replicas.value();
  const int64_t requested = total % size == 0 ? total / size : 0;  // 0: nothing that could be done is requested
  if (batch.accumulation_steps && (requested == 0 || requested == *batch.accumulation_steps)) {
    draft.choose(o.train.accumulation_steps, std::to_string(*batch.accumulation_steps), batch.batch_size);
  }
  if (requested > 1) {
    draft.choose(o.train.accumulation_steps, std::to_string(requested),
                 o.train.replicas.value() == 1
                     ? core::format("total-batch-size {} / batch-size {}", total, size)
                     : core::format("total-batch-size {} / {} images of all replicas", total, size));
  }
  draft.set_default(o.train.accumulation_steps, int64_t{1});
}

void choose_val_batch_size(Draft& draft) {
  const bool small = draft.options().data.img_size.value().long_side() < kSmallImage;
  const int64_t batch_size = draft.options().loader.batch_size.value();
  const int64_t val_batch_size = small ? std::max<int64_t>(256, batch_size) : batch_size;
  draft.choose(draft.options().loader.val_batch_size, std::to_string(val_batch_size),
               val_batch_size == batch_size ? "batch-size" : "small images fit in larger batches");
}

void choose_drop_rates(Draft& draft, const ModelFacts& model) {
  const std::string reason = "usual for " + model.name;
  draft.choose(draft.options().model.drop_rate, number_text(model.drop_rate), reason);
  draft.choose(draft.options().model.drop_path_rate, number_text(model.drop_path_rate), reason);
}

/// The default network is for small images; photographs get another one.
void choose_model(Draft& draft, const Facts& facts) {
  if (facts.names_model) return;
  Options& o = draft.options();
  if (facts.checkpoint && facts.checkpoint->model) {
    const std::string& kept = *facts.checkpoint->model;
    if (kept != o.model.model) draft.replace(o.model.model, kept, kAsInCheckpoint, ChoiceSource::checkpoint);
    return;
  }
  const ImageSize size = o.data.img_size.value();
  if (!facts.data || facts.data->train_images == 0 || facts.data->has_fixed_size || facts.data->has_videos ||
      size.long_side() <= kSmallImage) {
    return;
  }
  const std::string photographs = core::format("photographs of {} pixels", image_size_text(size));
  if (o.device.device.value() != "cpu") return draft.replace(o.model.model, "resnet18", photographs);
  const double share = static_cast<double>(size.height * size.width) / (224.0 * 224.0);
  const double work = kResNetWork * share * static_cast<double>(facts.data->train_images * o.train.epochs);
  const double hours = work / (kCpuSpeed * static_cast<double>(std::max(facts.machine.cpus, 1))) / 3600;
  const std::string reason =
      core::format("{}; resnet18 takes about {} here", photographs, core::duration_text(3600 * hours));
  draft.replace(o.model.model, hours <= kHours ? "resnet18" : "mobilenet_v3_small", reason);
}

/// Who tries a preset for an epoch or two gets its warm-up in small.
void shorten_warmup(Draft& draft, const Facts& facts) {
  const double requested = draft.options().schedule.warmup_epochs;
  const int64_t epochs = draft.options().train.epochs;
  if (!facts.warmup_may_give_way || requested < static_cast<double>(epochs)) return;
  draft.replace(
      draft.options().schedule.warmup_epochs, number_text(short_warmup(epochs)),
      core::format("the {} epochs that were requested leave nothing of a run of {}", number_text(requested), epochs),
      ChoiceSource::configuration);
}

/// As the option is written.
std::string tier_name(CacheTier tier) {
  return tier == CacheTier::ram ? "ram" : tier == CacheTier::compressed ? "compressed" : "none";
}

void choose_cache(Draft& draft, const Facts& facts) {
  const LoaderOptions& o = draft.options().loader;
  if (facts.cache_budget) draft.choose(o.cache_budget, size_text(facts.cache_budget->value), *facts.cache_budget);
  if (facts.cache) draft.choose(o.cache, tier_name(facts.cache->value), *facts.cache);
  draft.assume(true);
  draft.choose(o.cache_budget, "0", "no memory was measured");
  draft.choose(o.cache, "none", "no memory was measured");
  draft.assume(false);
}

/// Whether the last batch of an epoch is dropped, and why; no reason: the network decides, and is not known.
Measured<bool> drop_last_for(const Options& draft, int64_t train_images, std::optional<bool> trains_on_one_image) {
  const int64_t batch = draft.loader.batch_size.value();
  const int64_t steps = draft.train.accumulation_steps.value() * draft.train.replicas.value();
  const int64_t update = batch * steps, full_batches = train_images / batch, last = train_images % batch;
  if (last == 0) return {false, "every batch is full"};
  if (full_batches == 0) return {false, "there is only one batch"};
  const bool is_an_update = full_batches % steps == 0;
  if (is_an_update && last * kTinyUpdate < update) {
    return {true, core::format("an update on the last {} would count as much as one on {}", last, update)};
  }
  if (last > 1) return {false, core::format("the last batch has {} images", last)};
  if (!trains_on_one_image) return {false, ""};
  return {!*trains_on_one_image, *trains_on_one_image ? "the network can train on the last image alone"
                                                      : "batch norm cannot train on the last image alone"};
}

/// Returns whether Facts::trains_on_one_image decides and is not known. `is_open`: batch or data are not known.
bool choose_drop_last(Draft& draft, const Facts& facts, bool is_open) {
  Auto<bool>& option = draft.options().loader.drop_last;
  if (facts.checkpoint) draft.keep(option, facts.checkpoint->drop_last);
  if (!option.is_auto()) return false;
  Measured<bool> choice;
  if (!is_open) choice = drop_last_for(draft.options(), facts.data->train_images, facts.trains_on_one_image);
  draft.assume(choice.reason.empty());
  draft.choose(option, switch_text(choice.value), choice.reason);
  draft.assume(false);
  return !is_open && choice.reason.empty();
}

/// Choices of a run that continues; model, batch, replicas and precision, threads and drop-last have rules of their
/// own.
void keep_choices(const Facts& facts, Draft& draft) {
  const CheckpointFacts& checkpoint = *facts.checkpoint;
  Options& o = draft.options();
  draft.keep(o.augment.hflip, checkpoint.hflip);
  draft.keep(o.augment.train_crop, checkpoint.train_crop);
  draft.keep(o.optim.opt, checkpoint.opt);
  // Rate and schedule were chosen for the optimizer: another one has its own.
  if (checkpoint.opt && o.optim.opt.value() != *checkpoint.opt) return;
  if (!facts.names_lr_base) draft.keep(o.optim.lr, checkpoint.lr);
  draft.keep(o.schedule.sched, checkpoint.sched);
}

void throw_broken(const std::vector<std::string>& broken) {
  if (broken.empty()) return;
  std::string message = broken.front();
  if (broken.size() > 1) {
    message = core::format("{} options do not fit together:", broken.size());
    for (const std::string& rule : broken) message += "\n  " + rule;
  }
  throw core::Error(core::ErrorKind::config, message, "train --print-config shows where each value came from");
}

}  // namespace

DataFacts usual_data(const Options& given) {
  DataFacts facts;
  const TaskKind task = given.data.task;
  const int64_t usual = task == TaskKind::multiclass ? 1000 : task == TaskKind::binary ? 2 : 3;
  facts.num_classes = given.data.num_classes.is_auto() ? usual : given.data.num_classes.value();
  facts.target_mean.assign(static_cast<size_t>(facts.num_classes), 0);
  facts.target_deviation.assign(static_cast<size_t>(facts.num_classes), 1);
  facts.channels = 3;
  facts.median_height = facts.median_width = 224;
  return facts;
}

Measured<int64_t> usual_batch(const Options& given, int64_t replicas) {
  int64_t batch = kUsualBatch;
  while (given.train.total_batch_size % (batch * replicas) != 0 && batch > 1) --batch;
  return {batch, "usual; training takes the most that fits", ChoiceSource::rule};
}

Resolution resolve(const Options& given, const Facts& facts) {
  Draft draft(given);
  if (facts.checkpoint) keep_choices(facts, draft);
  const bool waits_for_amp = choose_for_machine(facts, draft);
  choose_run_dir(draft, facts.run_name);
  choose_eval_metric(draft);
  draft.assume(!facts.data);
  choose_for_data(facts.data.value_or(usual_data(given)), draft);
  choose_model(draft, facts);
  shorten_warmup(draft, facts);
  const BatchChoice batch = batch_from(given, draft.options().train.replicas.value(), facts);
  draft.assume(batch.is_assumed);
  draft.choose(draft.options().loader.batch_size, std::to_string(batch.batch_size.value), batch.batch_size);
  choose_accumulation(draft, batch);
  choose_optimization(given, facts, batch.is_assumed, draft);
  draft.assume(batch.is_assumed || !facts.data);
  choose_val_batch_size(draft);
  draft.assume(!facts.model);
  choose_drop_rates(draft, facts.model.value_or(ModelFacts()));
  draft.assume(false);
  choose_cache(draft, facts);
  const bool waits = choose_drop_last(draft, facts, batch.is_assumed || !facts.data);

  Resolution resolution = draft.resolution();
  resolution.waits_for_amp = waits_for_amp;
  resolution.waits_for_batch = batch.is_assumed;
  resolution.waits_for_trains_on_one_image = waits;
  throw_broken(broken_rules(given, resolution, facts));
  if (facts.data) throw_broken(broken_data_rules(resolution.options, *facts.data));
  return resolution;
}

}  // namespace stoker::config
