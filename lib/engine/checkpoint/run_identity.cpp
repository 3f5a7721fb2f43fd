// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/run_identity.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"

namespace stoker::engine {
namespace {

/// An option that older programs had. They computed the convolutions of runs that were begun with it otherwise.
void warn_of_removed_option(const config::OptionTexts& options) {
  const auto winograd = options.find("winograd");
  if (winograd == options.end() || winograd->second != "true") return;
  core::log_warning(
      "bit-identity is not promised: the checkpoint was trained with --winograd, which was removed: convolutions "
      "are LibTorch's from here on, which rounds otherwise");
}

}  // namespace

config::OptionTexts saved_options(const core::Json& manifest) {
  config::OptionTexts texts;
  const auto saved = manifest.find("training_options");
  if (saved == manifest.end() || !saved->is_object()) return texts;
  for (const auto& [name, text] : saved->items()) {
    if (text.is_string()) texts[name] = text.get<std::string>();
  }
  return config::with_current_names(std::move(texts));
}

core::Json options_json(const RunIdentity& identity) {
  core::Json json = core::Json::object();
  for (const config::TrainingOption& option : identity.training_options) json[option.name] = option.value;
  return json;
}

StartingWeights starting_weights_of(const core::Json& manifest) {
  const auto found = manifest.find("starting_weights");
  if (found == manifest.end() || !found->is_object()) return {};
  const core::Json& weights = *found;
  const auto text = [&weights](const char* key) {
    const auto value = weights.find(key);
    return value != weights.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  return {text("file"), text("sha256")};
}

core::Json manifest_of(const RunIdentity& identity) {
  core::Json manifest = {{"training_options", options_json(identity)},
                         {"data_fingerprint", identity.data_fingerprint},
                         {"threads", identity.threads},
                         {"computed_by", identity.computed_by}};
  if (identity.ranks > 0) manifest["exchange_ranks"] = identity.ranks;
  const StartingWeights& weights = identity.started_from;
  if (!weights.sha256.empty()) {
    manifest["starting_weights"] = {{"file", core::printable(weights.file)}, {"sha256", weights.sha256}};
  }
  return manifest;
}

namespace {

/// `written`: the training options of the checkpoint, by the names that they had.
std::vector<std::string> option_differences(const RunIdentity& identity, const core::Json& manifest,
                                            const config::OptionTexts& written,
                                            const std::vector<std::string>& free_options) {
  std::vector<std::string> different;
  const config::OptionTexts options = config::with_current_names(written);
  for (const auto& [name, value, value_in_older_runs] : identity.training_options) {
    // Options without a value now had none in older runs.
    const std::string missing = value_in_older_runs.empty() && !value.empty() ? "(not set)" : value_in_older_runs;
    const auto found = options.find(name);
    const std::string saved = found == options.end() ? missing : found->second;
    const bool is_free = std::find(free_options.begin(), free_options.end(), name) != free_options.end();
    if (saved != value && !is_free)
      different.push_back(core::format("--{}: the checkpoint has {}, this run {}", name, saved.empty() ? "none" : saved,
                                       value.empty() ? "none" : value));
  }
  if (manifest.at("data_fingerprint").get<std::string>() != identity.data_fingerprint) {
    different.push_back("data: files, sizes or labels changed since the checkpoint was written");
  }
  return different;
}

[[noreturn]] void refuse_manifest(const std::string& path, const core::Json::exception& error) {
  throw core::Error(
      core::ErrorKind::data,
      core::format("checkpoint {}: its manifest was not written by this program: {}", path, core::problem_text(error)));
}

}  // namespace

std::vector<std::string> known_differences(const RunIdentity& identity, const core::Json& manifest,
                                           const std::string& path, const std::vector<std::string>& free_options) {
  try {
    return option_differences(identity, manifest, manifest.at("training_options").get<config::OptionTexts>(),
                              free_options);
  } catch (const core::Json::exception& error) {
    refuse_manifest(path, error);
  }
}

std::vector<std::string> differences(const RunIdentity& identity, const core::Json& manifest, const std::string& path,
                                     const std::vector<std::string>& free_options) {
  try {
    const auto written = manifest.at("training_options").get<config::OptionTexts>();
    std::vector<std::string> different = option_differences(identity, manifest, written, free_options);
    const StartingWeights before = starting_weights_of(manifest), &now = identity.started_from;
    if (!before.sha256.empty() && !now.sha256.empty() && before.sha256 != now.sha256) {
      different.push_back(
          core::format("starting weights: the checkpoint began with {} (SHA-256 {}...), this run with {} "
                       "({}...)",
                       before.file, before.sha256.substr(0, 8), core::printable(now.file), now.sha256.substr(0, 8)));
    }
    warn_of_removed_option(written);
    if (const auto threads = manifest.at("threads").get<int64_t>(); threads != identity.threads) {
      core::log_warning("bit-identity is not promised: CPU threads {} -> {} (--threads {} keeps it)", threads,
                        identity.threads, threads);
    }
    const std::string computed_by = manifest.value("computed_by", "");
    if (!computed_by.empty() && !identity.computed_by.empty() && computed_by != identity.computed_by) {
      core::log_warning("bit-identity is not promised: the checkpoint was computed by {}, this run is by {}",
                        computed_by, identity.computed_by);
    }
    const int64_t ranks = manifest.value("exchange_ranks", identity.ranks);
    if (ranks != identity.ranks && identity.ranks > 0) {
      core::log_warning("bit-identity is not promised: processes with --exchange fast {} -> {} ({} of them keep it)",
                        ranks, identity.ranks, ranks);
    }
    return different;
  } catch (const core::Json::exception& error) {
    refuse_manifest(path, error);
  }
}

void Lineage::write_to(core::Json& state) const {
  const core::Json link = before.digest.empty()
                              ? core::Json(nullptr)
                              : core::Json{{"updates", before.updates}, {"checkpoint", before.digest}};
  state["digests"] = {{"weights", weights}, {"options", options}, {"data", data}, {"before", link}};
  state["program"] = program;
}

Lineage Lineage::from_state(const core::Json& state, const std::string& what) {
  Lineage lineage;
  try {
    lineage.program = state.value("program", core::Json(nullptr));
    const auto digests = state.find("digests");
    if (digests == state.end()) return lineage;
    digests->at("weights").get_to(lineage.weights);
    digests->at("options").get_to(lineage.options);
    digests->at("data").get_to(lineage.data);
    const core::Json& before = digests->at("before");
    if (before.is_null()) return lineage;
    const core::Json& updates = before.at("updates");
    if (!updates.is_number_integer()) throw core::Error(core::ErrorKind::data, what + ": updates is not a count");
    updates.get_to(lineage.before.updates);
    before.at("checkpoint").get_to(lineage.before.digest);
  } catch (const core::Json::exception& error) {
    throw core::Error(core::ErrorKind::data, what + ": " + core::problem_text(error), "use another checkpoint");
  }
  return lineage;
}

Lineage read_lineage(const std::string& path) {
  constexpr uint64_t kMaxBytes = 256 << 20;
  const std::string file = path + "/state.json";
  return Lineage::from_state(core::parse_json(core::read_file(file, kMaxBytes), file), file);
}

}  // namespace stoker::engine
