// SPDX-License-Identifier: Apache-2.0
// `train bench`: which benchmark runs on what, and its figures to people or programs.
#include "commands/bench/bench.h"

#include <algorithm>

#include "commands/bench/bench_rounds.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/dataset/held_out.h"
#include "data/open_datasets.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/loader_tuning.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

/// An epoch of this many images is long enough for a round, and short enough for whole ones. Where nothing is decoded
/// all are read: few would come out of the processor's caches.
constexpr int64_t kMaxImages = 4096, kMaxPixelSamples = 1'000'000;

/// The training split, or any images below the folder: speed needs no labels.
std::shared_ptr<const data::Source> bench_source(const config::DataOptions& options) {
  try {
    return data::open_split(options, options.train_split);
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::no_input || options.dataset != config::DatasetType::automatic) throw;
    auto source = data::open_loose_images(options.data_dir, options.follow_symlinks, options);
    core::log_info("no split '{}' in {}: all {} images below it, without labels", core::printable(options.train_split),
                   core::printable(options.data_dir), source->size());
    return source;
  }
}

BenchResult bench_all(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source) {
  const BenchResult loader = bench_loader(options, source), step = bench_step(options),
                    training = bench_training(options, source);
  const double bound = std::min(loader.images_per_second.median, step.images_per_second.median);
  const double efficiency = 100 * training.images_per_second.median / bound;
  BenchResult result;
  result.images_per_second = training.images_per_second;
  result.figures = {{"loader", loader.figures},
                    {"step", step.figures},
                    {"end_to_end", training.figures},
                    {"feed_efficiency_percent", efficiency}};
  for (const BenchResult* part : {&loader, &step, &training}) {
    result.lines.insert(result.lines.end(), part->lines.begin(), part->lines.end());
  }
  result.lines.push_back(core::format("feed efficiency: {:.1f} % of the rate of the slower of loader and step alone{}",
                                      efficiency, options.device.device == "cpu" ? "; here both share the cores" : ""));
  return result;
}

/// As a run of several epochs would have it.
std::shared_ptr<const data::Source> cached(Settings& settings, const std::shared_ptr<const data::Source>& source) {
  data::Datasets datasets;
  datasets.train = source;
  datasets.val = data::evenly_spaced(source, 1);
  const Caches caches =
      add_caches(settings, settings.facts().machine, datasets, batch_buffer_bytes(settings.options(), *source));
  for (const std::string& line : caches.lines) core::log_info("{}", line);
  return datasets.train;
}

BenchResult run_bench(const BenchFlags& flags, const config::Configuration& configuration) {
  const std::string& what = flags.what;
  const config::Options& given = configuration.options;
  Settings settings(configuration);
  const config::ResolvedOptions& options = settings.options();
  if (what == "step") {
    settings.settle(config::usual_data(given));
    decide_arithmetic(settings);
    return bench_step(options);
  }
  std::shared_ptr<const data::Source> source = bench_source(given.data);
  if (what != "lr") source = data::evenly_spaced(source, data::holds_pixels(*source) ? kMaxPixelSamples : kMaxImages);
  config::DataFacts facts = facts_of(*source, given.data);
  if (facts.num_classes == 0) facts.num_classes = config::usual_data(given).num_classes;
  settings.settle(facts);
  measure_workers(settings, *source);
  const AblatedData data{what == "ablate" ? cached(settings, source) : nullptr, source};
  // Elsewhere behind a cache only when one was requested by name: what is measured otherwise is the way from the files.
  if (!data.as_configured && !settings.was_automatic(options.loader.cache)) source = cached(settings, source);
  if (what == "loader") return bench_loader(options, source);
  if (source->num_classes() == 0) {
    throw core::Error(core::ErrorKind::no_input,
                      core::format("train bench {}: the images have no labels to train on", what),
                      "give a data set, or use bench loader and bench step");
  }
  require_model_for(options, *source);
  if (what == "lr") return bench_rates(options, source, {flags.seeds, options.train.max_updates});
  decide_arithmetic(settings);
  return what == "ablate" ? bench_ablate(options, data) : bench_all(options, source);
}

}  // namespace

Outcome bench(const Context& context, const BenchFlags& flags) {
  const std::string& what = flags.what;
  if (what != "loader" && what != "step" && what != "all" && what != "ablate" && what != "lr") {
    throw core::Error(core::ErrorKind::usage, "train bench: there is no benchmark " + core::printable(what),
                      "train bench loader, step, all, ablate or lr");
  }
  if (flags.json) core::set_console_level(core::LogLevel::warning);  // standard output is for the object
  const BenchResult result = run_bench(flags, context.configuration);
  for (const std::string& line : result.lines) core::log_info("{}", line);
  if (flags.json) {
    core::Json object = {{"bench", what}};
    object.update(result.figures);
    write_result("-", core::json_page(object, 2));
  }
  return {core::kExitOk, "bench"};
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

core::Json json_of(const config::ImageSize& size) {
  if (size.is_square()) return size.height;
  return {{"height", size.height}, {"width", size.width}};
}

core::Json json_of(const Spread& spread) {
  return {{"median", spread.median}, {"lowest", spread.lowest}, {"highest", spread.highest}};
}

std::string text_of(const Spread& spread, const std::string& unit) {
  return core::format("{:.1f} {} ({:.1f} to {:.1f})", spread.median, unit, spread.lowest, spread.highest);
}

}  // namespace stoker::train
