// SPDX-License-Identifier: Apache-2.0
#include "train/setup/rank_share.h"

#include <algorithm>
#include <cstdlib>

#include "core/format.h"
#include "engine/device/device.h"
#include "proof/standing.h"
#include "train/setup/settings.h"

namespace stoker::train {
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

core::MachineFacts share_of_machine(const RankPlace& place) {
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

void give_options(const JoinedRanks& ranks, const config::ResolvedOptions& resolved) {
  ranks.from_root([&] { return config::render_yaml(resolved); });
  ranks.from_root(proof::standing_json);
}

void take_options(const JoinedRanks& ranks, config::Configuration& given) {
  config::take_over(config::read_resolved_yaml(ranks.from_root([] { return ""; }), "the options of rank 0"), given);
  proof::follow(ranks.from_root([] { return ""; }));
}

void refuse_unequal_ranks(const JoinedRanks& ranks, const engine::RunIdentity& identity) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const config::TrainingOption& option : identity.training_options) {
    values.emplace_back("--" + option.name, option.value);
  }
  values.emplace_back("the data", identity.data_fingerprint);
  values.emplace_back("CPU threads inside one operation", std::to_string(identity.threads));
  ranks.refuse_differences(values);
}

}  // namespace stoker::train
