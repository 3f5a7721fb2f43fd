// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/run_identity.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"

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
  return config::in_todays_words(std::move(texts));
}

core::Json options_json(const RunIdentity& identity) {
  core::Json json = core::Json::object();
  for (const config::TrainingOption& option : identity.training_options) json[option.name] = option.value;
  return json;
}

core::Json manifest_of(const RunIdentity& identity) {
  core::Json manifest = {{"training_options", options_json(identity)},
                         {"data_fingerprint", identity.data_fingerprint},
                         {"threads", identity.threads},
                         {"computed_by", identity.computed_by}};
  if (identity.ranks > 0) manifest["exchange_ranks"] = identity.ranks;
  return manifest;
}

std::vector<std::string> differences(const RunIdentity& identity, const core::Json& manifest, const std::string& path,
                                     const std::vector<std::string>& free_options) {
  std::vector<std::string> different;
  try {
    const auto written = manifest.at("training_options").get<config::OptionTexts>();
    const config::OptionTexts options = config::in_todays_words(written);
    for (const auto& [name, value, before_it_existed] : identity.training_options) {
      // What has no value now had none before it existed.
      const std::string missing = before_it_existed.empty() && !value.empty() ? "(not set)" : before_it_existed;
      const auto found = options.find(name);
      const std::string saved = found == options.end() ? missing : found->second;
      const bool is_free = std::find(free_options.begin(), free_options.end(), name) != free_options.end();
      if (saved != value && !is_free)
        different.push_back(core::format("--{}: the checkpoint has {}, this run {}", name, saved, value));
    }
    if (manifest.at("data_fingerprint").get<std::string>() != identity.data_fingerprint) {
      different.push_back("data: files, sizes or labels changed since the checkpoint was written");
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
  } catch (const core::Json::exception& error) {
    throw core::Error(core::ErrorKind::data,
                      core::format("checkpoint {}: its manifest is not ours: {}", path, error.what()));
  }
  return different;
}

}  // namespace stoker::engine
