// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/time_figures.h"

#include <algorithm>

#include "core/format.h"

namespace stoker::observe {
namespace {

using core::format;
using core::Json;
using core::Spread;
using engine::StepPart;

constexpr double kShownShare = 0.005;  // a part below half a percent is not worth reading

Json spread_json(const Spread& spread) {
  return {
      {"mean_seconds", spread.mean_seconds}, {"p95_seconds", spread.p95_seconds}, {"max_seconds", spread.max_seconds}};
}

Json parts_json(const engine::StepParts& parts) {
  Json object = Json::object();
  for (size_t i = 0; i < engine::kStepParts; ++i) object[engine::kStepPartNames[i]] = spread_json(parts.spreads[i]);
  return object;
}

std::string spread_text(const Spread& spread) {
  return format("{} (95% {}, max {})", short_seconds_text(spread.mean_seconds), short_seconds_text(spread.p95_seconds),
                short_seconds_text(spread.max_seconds));
}

/// "wait 3.1ms 25% (95% 4.0ms, max 9.2ms)  forward ...", of `whole` seconds per update.
std::string parts_text(const engine::StepParts& parts, double whole) {
  std::string text;
  for (size_t i = 0; i < engine::kStepParts; ++i) {
    const Spread& part = parts.spreads[i];
    if (part.mean_seconds < kShownShare * whole) continue;
    text += format("  {} {:.0f}% {}", engine::kStepPartNames[i], 100 * part.mean_seconds / whole, spread_text(part));
  }
  return text;
}

}  // namespace

std::string short_seconds_text(double seconds) {
  const double milliseconds = 1e3 * seconds;
  if (milliseconds >= 999.5) return seconds >= 99.5 ? format("{:.0f}s", seconds) : format("{:.3g}s", seconds);
  if (milliseconds >= 99.95) return format("{:.0f}ms", milliseconds);
  return milliseconds >= 0.9995 ? format("{:.3g}ms", milliseconds) : format("{:.0f}us", 1e3 * milliseconds);
}

std::string step_text(const engine::StepTimings& times) {
  return times.updates > 0 ? "step " + spread_text(times.update) : "";
}

std::vector<std::string> time_lines(const engine::StepTimings& times) {
  std::vector<std::string> lines;
  if (times.updates == 0) return lines;
  lines.push_back(step_text(times) + ":" + parts_text(times.parts, times.update.mean_seconds));
  if (times.has_device) lines.push_back("device:" + parts_text(times.device, times.update.mean_seconds));
  std::string samples;
  for (const auto& [name, stage] :
       {std::pair("read", times.sample.read), std::pair("decode", times.sample.decode),
        std::pair("resize", times.sample.resize), std::pair("augment", times.sample.augment),
        std::pair("write", times.sample.write)}) {
    if (stage.mean_seconds > 0) samples += format("  {} {}", name, spread_text(stage));
  }
  if (samples.empty()) return lines;
  const data::LoaderStats& loader = times.loader;
  if (loader.batches_requested > 0) {
    samples +=
        format("  queue {:.1f} of {} batches, empty {:.0f}%", times.mean_queue(), loader.batches_capacity,
               100 * static_cast<double>(loader.empty_when_requested) / static_cast<double>(loader.batches_requested));
  }
  lines.push_back("sample:" + samples);
  return lines;
}

std::string ranks_line(const std::vector<engine::RankTimes>& ranks) {
  const std::optional<engine::RankSummary> summary = engine::rank_summary(ranks);
  if (!summary) return "";
  return format(
      "{} ranks: exchange {:.0f}% of the time, waiting for later ranks {:.0f}%, slowest rank {} on {}: {} of work, the "
      "other{} {} (+{:.0f}%)",
      summary->ranks, 100 * summary->exchange_share, 100 * summary->waiting_share, summary->slowest,
      summary->slowest_host, short_seconds_text(summary->slowest_seconds), summary->ranks == 2 ? "" : "s",
      short_seconds_text(summary->others_seconds), 100 * summary->slowest_excess());
}

Json ranks_json(const std::vector<engine::RankTimes>& ranks) {
  const std::optional<engine::RankSummary> summary = engine::rank_summary(ranks);
  if (!summary) return nullptr;
  Json each = Json::array();
  for (const engine::RankTimes& rank : ranks) {
    each.push_back({{"host", core::printable(rank.host)},
                    {"work_seconds", rank.work},
                    {"wait_seconds", rank.wait},
                    {"exchange_seconds", rank.exchange}});
  }
  return {{"exchange_share", summary->exchange_share},
          {"waiting_share", summary->waiting_share},
          {"slowest", summary->slowest},
          {"slowest_excess", summary->slowest_excess()},
          {"each", each}};
}

Json time_json(const engine::StepTimings& times) {
  const data::LoaderStats& loader = times.loader;
  Json object = {{"updates", times.updates}, {"update", spread_json(times.update)}};
  object["parts"] = parts_json(times.parts);
  if (times.has_device) object["device"] = parts_json(times.device);
  if (times.exchanged_bytes > 0) {
    object["exchange"] = {{"under_way", spread_json(times.exchange)}, {"bytes_sent", times.exchanged_bytes}};
  }
  object["sample"] = {{"read", spread_json(times.sample.read)},
                      {"decode", spread_json(times.sample.decode)},
                      {"resize", spread_json(times.sample.resize)},
                      {"augment", spread_json(times.sample.augment)},
                      {"write", spread_json(times.sample.write)}};
  const bool requested = loader.batches_requested > 0;
  object["queue"] = {{"mean_batches", requested ? Json(times.mean_queue()) : Json(nullptr)},
                     {"empty_share", requested ? Json(static_cast<double>(loader.empty_when_requested) /
                                                      static_cast<double>(loader.batches_requested))
                                               : Json(nullptr)},
                     {"capacity_batches", loader.batches_capacity}};
  object["cpu"] = {{"training_seconds", times.training_cpu_seconds},
                   {"worker_seconds", loader.worker_cpu_seconds},
                   {"process_seconds", times.process_cpu_seconds}};
  return object;
}

}  // namespace stoker::observe
