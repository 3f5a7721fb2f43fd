// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/banner.h"

#include <unistd.h>

#include "core/format.h"

namespace stoker::observe {

using core::count_text;
using core::format;

namespace {

std::string model_text(const BannerFacts& facts) {
  const std::string text = format("{}, {} parameters", facts.model, count_text(facts.parameters));
  if (facts.frozen_parameters == 0) return text;
  return text + format(", {} of them frozen", count_text(facts.frozen_parameters));
}

std::string batch_text(const BannerFacts& facts) {
  const int64_t images = facts.batch_size * facts.accumulation * facts.replicas;
  if (facts.replicas == 1) {
    return format("batch     {} images per device x {} accumulation x 1 device = {} images per update",
                  facts.batch_size, facts.accumulation, images);
  }
  const bool is_power_of_two = (facts.replicas & (facts.replicas - 1)) == 0;
  return format(
      "batch     {} images x {} accumulation x {} replicas = {} images per update; {} process{} with {} replica{} "
      "each, on {} lane{}, {}",
      facts.batch_size, facts.accumulation, facts.replicas, images, facts.ranks, facts.ranks == 1 ? "" : "es",
      facts.replicas / facts.ranks, facts.replicas == facts.ranks ? "" : "s", facts.lanes, facts.lanes == 1 ? "" : "s",
      facts.adds_fast   ? "exchange fast: bits that hold for this number of processes"
      : is_power_of_two ? "the same bits for any number of them"
                        : "bits that hold for this number of processes");
}

}  // namespace

std::vector<std::string> banner_lines(const BannerFacts& facts) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::vector<std::string> lines = {
      format("stoker train {}  {}  pid {} on {}", facts.version, facts.libtorch, ::getpid(), host),
      "command   " + facts.command_line,
      "device    " + facts.device + ", " + facts.precision,
      format("data      {} training and {} validation images, {} {}{}", count_text(facts.train_images),
             count_text(facts.val_images), facts.num_classes, facts.learned,
             facts.task == "multiclass" ? "" : ", task " + facts.task),
      "augment   " + facts.augment,
      "model     " + model_text(facts),
      batch_text(facts),
      format("length    {} epoch{} x {} updates = {} updates, peak learning rate {:g}", facts.epochs,
             facts.epochs == 1 ? "" : "s", count_text(facts.updates_per_epoch), count_text(facts.total_updates),
             facts.learning_rate),
      format("loader    {} worker{}, {} of batch buffers", facts.num_workers, facts.num_workers == 1 ? "" : "s",
             core::bytes_text(static_cast<double>(facts.loader_ring_bytes)))};
  if (!facts.compute.empty()) lines.push_back("compute   " + facts.compute);
  for (const std::string& cache : facts.caches) lines.push_back("cache     " + cache);
  lines.insert(lines.end(), facts.memory.begin(), facts.memory.end());
  lines.push_back("run       " + facts.run_dir + ", " + facts.start);
  for (const std::string& note : facts.data_notes) lines.push_back("note      " + note);
  for (const config::Choice& choice : facts.choices) {
    lines.push_back(format("chosen    --{} {}: {}", choice.option, choice.value, choice.reason));
  }
  return lines;
}

}  // namespace stoker::observe
