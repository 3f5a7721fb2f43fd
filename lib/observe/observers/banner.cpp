// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/banner.h"

#include <unistd.h>

#include <algorithm>

#include "core/format.h"
#include "core/system/machine.h"

namespace stoker::observe {

using core::count_text;
using core::format;

namespace {

std::vector<std::string> model_lines(const BannerFacts& facts) {
  std::string text = format("model     {}, {} parameters", facts.model, count_text(facts.parameters));
  const int64_t learning = facts.parameters - facts.frozen_parameters;
  if (facts.lora > 0) {
    text += format(", {} of them learn (LoRA of rank {})", count_text(learning), facts.lora);
  } else if (facts.frozen_parameters > 0) {
    text += format(", {} of them frozen", count_text(facts.frozen_parameters));
  }
  if (!facts.input.empty()) text += format(", input {}", facts.input);
  std::vector<std::string> lines = {text};
  if (!facts.weights.empty()) lines.push_back("          starts from the weights of " + facts.weights);
  if (!facts.teacher.empty()) lines.push_back("          learns from " + facts.teacher);
  return lines;
}

std::vector<std::string> batch_lines(const BannerFacts& facts) {
  const int64_t images = facts.batch_size * facts.accumulation * facts.replicas;
  const bool is_more = facts.train_images > 0 && images > facts.train_images;
  const std::string product =
      format("{}{} per update", is_more ? ": all " : " = ", is_more ? facts.train_images : images);
  if (facts.replicas == 1) {
    return {format("batch     {} {} per device x {} accumulation x 1 device{}", facts.batch_size, facts.items,
                   facts.accumulation, product)};
  }
  const bool is_power_of_two = (facts.replicas & (facts.replicas - 1)) == 0;
  const int64_t of_each = facts.replicas / facts.ranks;
  std::vector<std::string> lines = {
      format("batch     {} {} x {} accumulation x {} replicas{}", facts.batch_size, facts.items, facts.accumulation,
             facts.replicas, product),
      format("          {} process{} x {} replica{}: {}", facts.ranks, facts.ranks == 1 ? "" : "es", of_each,
             of_each == 1 ? "" : "s",
             facts.bits_depend_on_ranks ? "exchange fast, results depend on the number of processes"
             : is_power_of_two          ? "bit-identical for any number of processes"
                                        : "results depend on the number of processes")};
  if (of_each > 1) {
    lines.push_back(format("          {} replicas run one after the other; --devices {} runs all at once", of_each,
                           facts.replicas));
  }
  return lines;
}

/// --max-updates is not a length of the schedule.
std::vector<std::string> length_lines(const BannerFacts& facts) {
  const int64_t planned = facts.epochs * facts.updates_per_epoch;
  std::vector<std::string> lines = {format("length    {} x {} = {}", core::counted(facts.epochs, "epoch"),
                                           core::counted(facts.updates_per_epoch, "update"),
                                           core::counted(planned, "update"))};
  if (facts.max_updates > 0 && facts.total_updates < planned) {
    lines.push_back(format("          stops after {} of {} updates; the schedule spans all of them",
                           count_text(facts.total_updates), count_text(planned)));
  } else if (facts.max_updates > planned) {
    lines.push_back(format("          fewer than the {} of max-updates: raise epochs", count_text(facts.max_updates)));
  }
  return lines;
}

/// "memory    host 210.0 MB of 24.9 GB" without its parts.
std::string whole_of(const std::string& memory_line) { return memory_line.substr(0, memory_line.find(": ")); }

constexpr size_t kMaxLines = 16;

}  // namespace

std::vector<std::string> known_lines(const BannerFacts& facts) {
  return {format("stoker train {}  {}  pid {} on {}", facts.version, facts.libtorch, ::getpid(), core::host_name()),
          "command   " + facts.command_line,
          format("data      {} training and {} validation {}, {} {}{}", count_text(facts.train_images),
                 count_text(facts.val_images), facts.items, facts.num_classes, facts.learned,
                 facts.task == "multiclass" ? "" : ", task " + facts.task)};
}

std::vector<std::string> banner_lines(const BannerFacts& facts) {
  std::vector<std::string> lines = known_lines(facts);
  lines.insert(lines.begin() + 2, "device    " + facts.device + ", " + facts.precision);
  lines.insert(lines.begin() + 3, facts.card.begin(), facts.card.end());
  lines.push_back("augment   " + facts.augment);
  for (const std::string& line : model_lines(facts)) lines.push_back(line);
  if (!facts.backend.empty()) lines.push_back("backend   " + facts.backend);
  if (!facts.compute.empty()) lines.push_back("compute   " + facts.compute);
  for (const std::string& line : batch_lines(facts)) lines.push_back(line);
  for (const std::string& line : facts.recipe) {
    lines.push_back((line == facts.recipe.front() ? "recipe    " : "          ") + line);
  }
  for (const std::string& line : length_lines(facts)) lines.push_back(line);
  for (const std::string& memory : facts.memory) lines.push_back(whole_of(memory));
  lines.push_back("run       " + facts.run_dir + ", " + facts.start + " (use -v for details)");
  const std::vector<std::string>& notes = facts.data_notes;
  const size_t most = kMaxLines + facts.card.size();
  const size_t left = most - std::min(most, lines.size());
  const size_t shown = notes.size() <= left ? notes.size() : std::max<size_t>(left, 1) - 1;
  for (size_t i = 0; i < shown; ++i) lines.push_back("note      " + notes[i]);
  if (shown < notes.size()) {
    const size_t more = notes.size() - shown - 1;
    lines.push_back("note      " + notes[shown] +
                    (more > 0 ? format(" (-v shows {})", core::counted(static_cast<int64_t>(more), "more note")) : ""));
  }
  return lines;
}

std::vector<std::string> banner_details(const BannerFacts& facts) {
  std::vector<std::string> lines = {format("loader    {} worker{}, {} of batch buffers", facts.num_workers,
                                           facts.num_workers == 1 ? "" : "s",
                                           core::bytes_text(static_cast<double>(facts.loader_ring_bytes)))};
  for (const std::string& cache : facts.caches) lines.push_back("cache     " + cache);
  lines.insert(lines.end(), facts.memory.begin(), facts.memory.end());
  const std::vector<std::string> shown = banner_lines(facts);
  for (const std::string& note : facts.data_notes) {
    const std::string line = "note      " + note;
    if (std::find(shown.begin(), shown.end(), line) == shown.end()) lines.push_back(line);
  }
  for (const config::Choice& choice : facts.choices) {
    lines.push_back(format("chosen    --{} {}: {}", choice.option, choice.value, choice.reason));
  }
  return lines;
}

}  // namespace stoker::observe
