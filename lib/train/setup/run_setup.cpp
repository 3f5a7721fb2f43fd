// SPDX-License-Identifier: Apache-2.0
#include "train/setup/run_setup.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "engine/probe/thread_count.h"
#include "plan/batch_choice.h"
#include "plan/refusals.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/plan_run.h"
#include "train/setup/run_directory.h"

namespace stoker::train {
namespace {

/// What only shows a plan makes no copies of the data.
config::DataOptions without_copies(config::DataOptions options) {
  options.stage_dir.clear();
  return options;
}

/// Precision, layout and threads: of a CPU, where they are automatic. The ranks of a run take over what rank 0 found.
void choose_arithmetic(Settings& settings, RunSetup& prepared, torch::Device device, bool resumes,
                       const FromRoot& from_root) {
  const TriedRun tried{settings, prepared.learner, *prepared.task,
                       [&] { return probe_settings(settings.options(), *prepared.datasets.train, device); },
                       [&](const TriedRun::Variation& variation) {
                         config::ResolvedOptions options = settings.options();
                         options.precision.channels_last = variation.channels_last;
                         if (variation.only_tried) options.model.init_from.clear();
                         return build_learner(options, device, resumes, prepared.datasets.train->learned_names());
                       }};
  prepared.bfloat16_speed = measure_amp(tried, from_root);
  const bool is_given = !settings.was_automatic(settings.options().precision.channels_last);
  if (!(from_root && is_given))
    prepared.other_layout_speed = measure_layout(tried);  // the options of other ranks are those of rank 0
  measure_threads(tried);
}

/// Where bfloat16 would be tried and is wrong, the run is one in float32.
void prove_before_measuring(Settings& settings, const data::Datasets& datasets, const FromRoot& from_root) {
  NetworkUse use = training_use(settings, datasets);
  const bool waits = settings.resolution().waits_for_amp;
  use.tries_precisions = waits || settings.options().precision.amp;
  try {
    prove_backend(settings.options(), use, from_root);
  } catch (const core::Error& error) {
    if (!waits || error.kind() != core::ErrorKind::backend) throw;
    settings.learn_amp({false, "bfloat16 is not computed rightly here"});
    use.tries_precisions = false;
    prove_backend(settings.options(), use, from_root);
  }
}

/// Whether a batch may be too much, estimated from what usual networks hold of an image at least.
bool may_be_too_large(const Settings& settings, const data::Source& train) {
  constexpr int64_t kHeldOverInput = 60;  // activations and their gradients
  const config::ResolvedOptions& options = settings.options();
  const data::SampleShape shape = transform_plan(options, train, /*training=*/true).shape;
  const int64_t image = shape.images() * shape.height * shape.width * shape.channels * int64_t{sizeof(float)};
  const int64_t batch = std::min(options.loader.batch_size, train.size());
  const int64_t available = core::read_machine_facts().ram_available_bytes;
  return available > 0 && batch * image > available / kHeldOverInput;
}

/// Proofs and measurements of a batch that is far too large would take minutes: it is tried in small first. Nothing
/// where reduced precision, which is yet to be chosen, could make it fit.
void refuse_hopeless_batch(const Settings& settings, const RunSetup& prepared, torch::Device device, bool resumes) {
  const config::ResolvedOptions& options = settings.options();
  const bool is_known = !settings.resolution().waits_for_batch && options.run.plan_check && device.is_cpu();
  if (!is_known || !may_be_too_large(settings, *prepared.datasets.train)) return;
  core::log_info("memory    a batch of {} is tried in small first", options.loader.batch_size);
  constexpr int64_t kSmallSide = 64;
  plan::PlanInputs inputs;
  try {
    const engine::ThreadCount one_thread(1);  // others may hold the CPUs
    engine::Learner tried = build_learner(options, device, resumes);
    inputs = measure_plan({settings, prepared.datasets, tried, *prepared.task, prepared.data_bytes, resumes,
                           /*ranks=*/1, /*processes=*/1, kSmallSide});
  } catch (const core::Error& error) {
    if (error.kind() == core::ErrorKind::out_of_memory) throw;
    return;  // a network of one size, say
  }
  plan::PlanInputs least = inputs;
  if (settings.resolution().waits_for_amp) {
    const auto half = [](const auto& bytes) { return [bytes](int64_t images) { return bytes(images) / 2; }; };
    least.training_bytes = half(inputs.training_bytes);
    least.evaluation_bytes = half(inputs.evaluation_bytes);
    least.working_bytes = nullptr;
  }
  const plan::MemoryBudget budget = memory_budget(device, /*processes=*/1);
  if (plan::shortage(plan::make_memory_plan(least), budget).empty()) return;
  for (const std::string& line : plan::plan_table(plan::make_memory_plan(inputs), budget)) core::log_info("{}", line);
  plan::refuse_what_does_not_fit(inputs, budget, /*plan_check=*/true);
}

/// What stands in until a fact is known must not be trained with.
void refuse_assumptions(const config::Resolution& resolution) {
  if (resolution.assumed.empty()) return;
  throw std::logic_error("nothing decides about the automatic option " + resolution.assumed.front());
}

/// The normalisation of the run that gives its weights; empty where they come from elsewhere. Where that run is gone,
/// which a run that is resumed does not need, that of the own last checkpoint.
std::pair<std::vector<double>, std::vector<double>> normalisation_of_run(const std::string& start,
                                                                         const std::string& run_dir) {
  try {
    auto found = normalisation_beside(starting_weights(start));
    if (!found.first.empty() || core::file_exists(start)) return found;
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::no_input) throw;
  }
  return normalisation_beside(run_dir + "/checkpoints/last/model.safetensors");
}

}  // namespace

void set_up_data(Settings& settings, bool measure, RunSetup& prepared) {
  const config::DataOptions& given = settings.given_data();
  const int64_t resident_before = settled_resident_bytes();
  prepared.datasets = data::open_datasets(measure ? given : without_copies(given));
  prepared.data_bytes = std::max<int64_t>(0, settled_resident_bytes() - resident_before);
  config::DataFacts facts = facts_of(*prepared.datasets.train, given);
  if (const std::string& start = settings.options().model.init_from; !start.empty() && facts.input_mean.empty()) {
    std::tie(facts.input_mean, facts.input_deviation) = normalisation_of_run(start, settings.options().run.run_dir);
  }
  settings.learn_data(facts);
  settings.learn_network();
  require_model_for(settings.options(), *prepared.datasets.train);
  if (measure) measure_workers(settings, *prepared.datasets.train);
}

void set_up_training(Settings& settings, bool resumes, RunSetup& prepared, const RunShare& share) {
  const config::ResolvedOptions& options = settings.options();
  const torch::Device device = open_and_configure_device(options);
  prepared.task = build_task(options, device);
  if (share.ranks == 1 && share.processes == 1) refuse_hopeless_batch(settings, prepared, device, resumes);
  if (!share.root_has_proven) prove_before_measuring(settings, prepared.datasets, share.from_root);
  prepared.learner = build_learner(options, device, resumes, prepared.datasets.train->learned_names());
  choose_arithmetic(settings, prepared, device, resumes, share.from_root);
  const PlanParts parts{settings, prepared.datasets, prepared.learner, *prepared.task, prepared.data_bytes,
                        resumes,  share.ranks,       share.processes};
  prepared.inputs = measure_plan(parts);
  prepared.budget = memory_budget(device, share.processes);
  if (settings.resolution().waits_for_batch) {
    const config::Measured<int64_t> own =
        plan::choose_batch(batch_rules(settings.resolution()), prepared.inputs, prepared.budget);
    settings.learn_batch(share.agree_on_batch ? share.agree_on_batch(own) : own);
    prepared.inputs.batch_size = options.loader.batch_size;
    prepared.inputs.val_batch_size = options.loader.val_batch_size;
    prepared.inputs.accumulation_steps = options.train.accumulation_steps;
  }
  if (settings.resolution().waits_for_trains_on_one_image) {
    settings.learn_one_image(trains_on_one_image(options, *prepared.datasets.train, prepared.learner));
  }
  const int64_t needed = plan::make_memory_plan(prepared.inputs).host_bytes - prepared.budget.host_held_bytes;
  core::MachineFacts machine = settings.facts().machine;
  machine.ram_available_bytes = prepared.budget.host_free_bytes;
  prepared.caches = add_caches(settings, machine, prepared.datasets, std::max<int64_t>(0, needed));
  prepared.inputs.cache_bytes = prepared.caches.planned_bytes;
  if (!share.root_has_proven) {  // what was chosen by measurement since
    prove_backend(options, training_use(settings, prepared.datasets), share.from_root);
  }
  refuse_assumptions(settings.resolution());
}

}  // namespace stoker::train
