// SPDX-License-Identifier: Apache-2.0
#include "train/setup/run_setup.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/long_step.h"
#include "core/system/machine.h"
#include "data/open_datasets.h"
#include "engine/device/device.h"
#include "engine/probe/probe_input.h"
#include "model/script/network_library.h"
#include "plan/memory_plan.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/plan_run.h"
#include "train/setup/run_directory.h"
#include "train/setup/settings.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

/// Commands that only show a plan make no copies of the data.
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
  core::LongStep step("speed     trying what is fastest");
  step.set_done("precision");
  prepared.bfloat16_speed = measure_amp(tried, from_root);
  step.set_done("layout");
  const bool is_given = !settings.was_automatic(settings.options().precision.channels_last);
  if (!(from_root && is_given))
    prepared.other_layout_speed = measure_layout(tried);  // the options of other ranks are those of rank 0
  step.set_done("threads");
  measure_threads(tried);
}

/// Where bfloat16 would be tried and is wrong, the run is one in float32.
void prove_before_measuring(Settings& settings, const data::Datasets& datasets, const FromRoot& from_root) {
  NetworkUse use = training_use(settings, datasets);
  const bool waits = settings.resolution().waits_for_amp;
  use.tries_precisions = tries_precisions(settings);
  if (settings.options().precision.amp && settings.options().device.device == "cpu" &&
      !settings.facts().machine.native_bfloat16) {
    core::log_info("amp       this CPU has no bfloat16 instructions: comparing it may take minutes");
  }
  try {
    prove_backend(settings.options(), use, from_root);
  } catch (const core::Error& error) {
    if (!waits || error.kind() != core::ErrorKind::backend) throw;
    settings.learn(&config::Facts::amp, {false, "bfloat16 is not computed correctly on this machine"});
    use.tries_precisions = false;
    prove_backend(settings.options(), use, from_root);
  }
}

/// Whether a batch may be too much, estimated from what deep networks hold of an image: a trial that fails takes
/// seconds.
bool may_be_too_large(const Settings& settings, const data::Source& train) {
  constexpr int64_t kHeldOverInput = 300;  // activations and their gradients
  const config::ResolvedOptions& options = settings.options();
  const int64_t image = input_bytes(transform_plan(options, train, /*training=*/true).shape);
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
  core::log_info("memory    a batch of {} is first tried at a smaller size", options.loader.batch_size);
  constexpr int64_t kSmallSide = 64, kFullSide = 0;
  plan::PlanInputs inputs;
  plan::MemoryBudget budget;
  try {
    const engine::ThreadCount one_thread(1);  // others may hold the CPUs
    engine::Learner tried = build_learner(options, device, resumes);
    for (const int64_t side : {kSmallSide, kFullSide}) {  // the advice is what the next start plans, at full size
      inputs = measure_plan({settings, prepared.datasets, tried, *prepared.task, prepared.data_bytes, resumes,
                             /*ranks=*/1, /*processes=*/1, side});
      plan::PlanInputs least = inputs;
      if (settings.resolution().waits_for_amp) {
        const auto half = [](const auto& bytes) { return [bytes](int64_t images) { return bytes(images) / 2; }; };
        least.training_bytes = half(inputs.training_bytes);
        least.evaluation_bytes = half(inputs.evaluation_bytes);
        least.working_bytes = nullptr;
      }
      budget = memory_budget(device, /*processes=*/1);
      if (plan::shortage(plan::make_memory_plan(least), budget).empty()) return;
    }
  } catch (const core::Error& error) {
    if (error.kind() == core::ErrorKind::out_of_memory) throw;
    return;  // such as a network of one size
  }
  for (const std::string& line : plan::plan_table(plan::make_memory_plan(inputs), budget)) core::log_info("{}", line);
  plan::require_enough_memory(inputs, budget, /*plan_check=*/true);
}

/// The proof takes minutes on a machine without one: what is known before it is shown first.
void show_known(const Settings& settings, const RunSetup& prepared, torch::Device device, bool resumes,
                const RunShare& share) {
  engine::Learner learner =
      build_learner(settings.options(), device, resumes, prepared.datasets.train->learned_names());
  share.on_known(learner, measure_plan({settings, prepared.datasets, learner, *prepared.task, prepared.data_bytes,
                                        resumes, share.ranks, share.processes, /*most_side=*/0,
                                        /*computes=*/false}));
}

/// Placeholders for unknown facts must not be trained with.
void refuse_assumptions(const config::Resolution& resolution) {
  if (resolution.assumed.empty()) return;
  throw std::logic_error("no rule chooses the automatic option " + resolution.assumed.front());
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
  model::require_trust(settings.options().model.model);
  require_teacher(settings.options());
  const int64_t resident_before = settled_resident_bytes();
  prepared.datasets = data::open_datasets(measure ? given : without_copies(given));
  prepared.data_bytes = std::max<int64_t>(0, settled_resident_bytes() - resident_before);
  config::DataFacts facts = facts_of(*prepared.datasets.train, given);
  if (const std::string& start = settings.options().model.init_from; !start.empty() && facts.input_mean.empty()) {
    std::tie(facts.input_mean, facts.input_deviation) = normalisation_of_run(start, settings.options().run.run_dir);
  }
  settings.learn(&config::Facts::data, facts);
  settings.set_model_facts();
  require_model_for(settings.options(), *prepared.datasets.train);
  require_fitting_teacher(settings.options(), prepared.datasets.train->learned_names());
  if (measure) measure_workers(settings, *prepared.datasets.train);
}

void set_up_training(Settings& settings, bool resumes, RunSetup& prepared, const RunShare& share) {
  const config::ResolvedOptions& options = settings.options();
  const torch::Device device = open_and_configure_device(options);
  prepared.task = build_task(options, device);
  if (!resumes) require_starting_weights(options.model);
  if (share.on_known) show_known(settings, prepared, device, resumes, share);
  if (share.ranks == 1 && share.processes == 1) refuse_hopeless_batch(settings, prepared, device, resumes);
  if (!share.root_has_proven) prove_before_measuring(settings, prepared.datasets, share.from_root);
  prepared.learner = build_learner(options, device, resumes, prepared.datasets.train->learned_names());
  choose_arithmetic(settings, prepared, device, resumes, share.from_root);
  const PlanParts parts{settings, prepared.datasets, prepared.learner, *prepared.task, prepared.data_bytes,
                        resumes,  share.ranks,       share.processes};
  {
    const core::LongStep step("memory    trying a few images");
    prepared.inputs = measure_plan(parts);
  }
  prepared.budget = memory_budget(device, share.processes);
  if (settings.resolution().waits_for_batch) {
    const config::Measured<int64_t> own =
        plan::choose_batch(batch_rules(settings.resolution()), prepared.inputs, prepared.budget);
    settings.learn(&config::Facts::batch_size, share.agree_on_batch ? share.agree_on_batch(own) : own);
    prepared.inputs.batch_size = options.loader.batch_size;
    prepared.inputs.val_batch_size = options.loader.val_batch_size;
    prepared.inputs.accumulation_steps = options.train.accumulation_steps;
  }
  if (settings.resolution().waits_for_trains_on_one_image) {
    settings.learn(&config::Facts::trains_on_one_image,
                   trains_on_one_image(options, *prepared.datasets.train, prepared.learner));
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

namespace {

config::Measured<int64_t> least_of_all(engine::Group& group, const config::Measured<int64_t>& own) {
  const std::vector<std::string> all = group.gather(std::to_string(own.value));
  config::Measured<int64_t> least = own;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const int64_t value = std::atoll(all[rank].c_str());
    if (value < least.value) least = {value, core::format("the most that rank {} can take", rank)};
  }
  return least;
}

}  // namespace

core::MachineFacts machine_shared_by(core::MachineFacts machine, int64_t processes) {
  machine.local_ranks = 1;  // there may be more processes than GPUs here: another machine is planned for
  if (processes == 1) return machine;
  machine.cpus = static_cast<int>(std::max<int64_t>(1, machine.cpus / processes));
  machine.cpus_reason = core::format("a share of {} processes", processes);
  machine.ram_available_bytes /= processes;
  return machine;
}

core::MachineFacts share_of_machine(const RankLocation& place) {
  core::MachineFacts machine = machine_shared_by(machine_with_accelerators(), place.local_size);
  machine.local_rank = place.local_rank;
  machine.local_ranks = place.size > 1 ? place.local_size : 0;
  return machine;
}

RunShare share_of_run(const JoinedRanks& ranks) {
  RunShare share;
  share.ranks = ranks.place().size;
  share.processes = ranks.place().local_size;
  share.root_has_proven = !ranks.is_root();
  if (!ranks.is_root()) share.from_root = [](const std::function<std::string()>&) { return "1"; };  // it has measured
  return share;
}

RunShare share_of_trial(const JoinedRanks& ranks) {
  RunShare share = share_of_run(ranks);
  share.root_has_proven = false;
  if (engine::Group& group = ranks.group(); !group.is_alone()) {
    share.from_root = [&ranks](const std::function<std::string()>& find) { return ranks.from_root(find); };
    share.agree_on_batch = [&group](const config::Measured<int64_t>& own) { return least_of_all(group, own); };
  }
  return share;
}

void refuse_unequal_commands(const JoinedRanks& ranks, const config::Configuration& given) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, text] : config::given_training_options(given)) values.emplace_back("--" + name, text);
  values.emplace_back("the program", STOKER_VERSION " with " + engine::libtorch_text());
  ranks.refuse_differences(values);
}

void publish_options(const JoinedRanks& ranks, const config::ResolvedOptions& resolved) {
  ranks.from_root([&] { return config::render_yaml(resolved); });
  ranks.from_root(proof::standing_json);
}

void adopt_options(const JoinedRanks& ranks, config::Configuration& given) {
  config::take_over(config::read_resolved_yaml(ranks.from_root([] { return ""; }), "the options of rank 0"), given);
  proof::follow(ranks.from_root([] { return ""; }));
}

void refuse_unequal_ranks(const JoinedRanks& ranks, const engine::RunIdentity& identity) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const config::TrainingOption& option : identity.training_options) {
    values.emplace_back("--" + option.name, option.value);
  }
  values.emplace_back("the data", identity.data_fingerprint);
  values.emplace_back("SHA-256 of the starting weights", identity.started_from.sha256);
  values.emplace_back("CPU threads inside one operation", std::to_string(identity.threads));
  ranks.refuse_differences(values);
}

}  // namespace stoker::train
