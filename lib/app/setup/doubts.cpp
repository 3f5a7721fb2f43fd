// SPDX-License-Identifier: Apache-2.0
#include "app/setup/doubts.h"

#include <algorithm>
#include <filesystem>

#include "app/setup/run_directory.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/text/json.h"

namespace stoker::app {
namespace {

using config::DatasetType;
using core::format;

constexpr uint64_t kMaxStateBytes = 64 << 20;

/// The config.yaml of a run gives every option; one that says what is so anyhow asks for nothing.
bool is_asked_for(const config::Configuration& given, const std::string& name) {
  const config::Row* const row = given.table.find(name);
  return row != nullptr && row->origin.kind != config::Origin::Kind::built_in &&
         row->origin.kind != config::Origin::Kind::preset && row->render() != row->default_text;
}

/// Those of `names` that are asked for and that only data of another kind would use.
void doubts_about_options(const config::Configuration& given, std::initializer_list<const char*> names,
                          const char* what_data_are, std::vector<std::string>& doubts) {
  for (const char* const name : names) {
    if (is_asked_for(given, name)) doubts.push_back(format("--{} has no effect: the data are {}", name, what_data_are));
  }
}

/// The class names of the run whose checkpoint a file of weights belongs to; empty: it belongs to none.
std::vector<std::string> classes_beside(const std::string& weights) {
  const std::string state = (std::filesystem::path(weights).parent_path() / "state.json").string();
  if (weights.empty() || !core::file_exists(state)) return {};
  try {
    return core::parse_json(core::read_file(state, kMaxStateBytes), state)
        .at("class_names")
        .get<std::vector<std::string>>();
  } catch (const core::Error&) {
    return {};
  } catch (const core::Json::exception&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> doubts_about(const config::Configuration& given, const config::ResolvedOptions& options,
                                      const config::DataFacts& facts, const data::Datasets& datasets) {
  std::vector<std::string> doubts;
  const auto is_large = [](double value) { return value > 1.5; };
  const auto& data = options.data;
  if (!facts.has_float_samples && (std::any_of(data.mean.begin(), data.mean.end(), is_large) ||
                                   std::any_of(data.std.begin(), data.std.end(), is_large))) {
    doubts.push_back("mean and std look like numbers of 0 to 255; pixels are numbers of 0 to 1 here: divide by 255");
  }
  if (!facts.has_videos) {
    doubts_about_options(given, {"clip-frames", "frame-sampling", "frame-stride"}, "no videos", doubts);
  }
  if (datasets.type != DatasetType::csv) {
    doubts_about_options(given, {"csv-path", "csv-label", "csv-delimiter"}, "no CSV file", doubts);
  }
  if (datasets.type != DatasetType::hdf5) {
    doubts_about_options(given, {"hdf5-input", "hdf5-label"}, "no HDF5 files", doubts);
  }
  if (datasets.type != DatasetType::biwi) doubts_about_options(given, {"val-subjects"}, "not BIWI's", doubts);
  if (datasets.type != DatasetType::biwi && datasets.type != DatasetType::w300lp) {
    doubts_about_options(given, {"face-margin"}, "neither BIWI's nor 300W-LP's", doubts);
  }
  if (!facts.has_fixed_size) {
    for (const auto& [name, count] :
         {std::pair("freq-masks", options.augment.freq_masks), std::pair("time-masks", options.augment.time_masks)}) {
      if (count > 0) doubts.push_back(format("--{} is for spectrograms, but the data are images", name));
    }
  }
  if (options.loader.batch_size > facts.train_images) {
    doubts.push_back(format("--batch-size {} is more than the {} training samples: an update has all of them",
                            options.loader.batch_size, facts.train_images));
  }
  const std::vector<std::string> before = classes_beside(starting_weights(options.model.init_from));
  const std::vector<std::string>& now = datasets.train->learned_names();
  if (!before.empty() && before.size() == now.size() && before != now) {
    doubts.push_back(
        format("the classifier of {} was trained on the classes {}, but the data has {}: it starts as if they were the "
               "same, in this order",
               core::printable(options.model.init_from), core::list_text(before), core::list_text(now)));
  }
  return doubts;
}

}  // namespace stoker::app
