// SPDX-License-Identifier: Apache-2.0
#include "plan/device_plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/format.h"
#include "core/text/columns.h"

namespace stoker::plan {
namespace {

using core::format;

using Cells = std::vector<std::string>;

std::string text_of_bytes(int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

std::string milliseconds_text(double seconds) { return format("{:.1f} ms", 1e3 * seconds); }

std::string seconds_or_milliseconds(double seconds) {
  return seconds < 10 ? milliseconds_text(seconds) : core::duration_text(seconds);
}

Cells settings_of(const DevicePlan& plan) {
  const int64_t images = plan.images_per_update();
  const bool on_device = !plan.memory.on_device.empty();
  Cells cells = {std::to_string(plan.devices),
                 format("{} x {} x {}", plan.replicas, plan.accumulation_steps, plan.batch_size),
                 core::count_text(images),
                 core::count_text(images / plan.devices),
                 core::count_text(plan.updates_per_epoch),
                 format("{:g}", plan.learning_rate),
                 format("{}", plan.num_workers),
                 format("{}", plan.num_workers * plan.devices),
                 text_of_bytes(plan.memory.host_bytes),
                 text_of_bytes(plan.memory.host_bytes * plan.devices)};
  if (on_device) cells.push_back(text_of_bytes(plan.memory.device_bytes));
  cells.push_back(plan.short_of.empty() ? "yes" : "no");
  return cells;
}

Cells times_of(const DevicePlan& plan, double first_rate) {
  if (!plan.time) return {std::to_string(plan.devices), "-"};
  const UpdateTime& time = *plan.time;
  const double rate = time.update() > 0 ? static_cast<double>(plan.images_per_update()) / time.update() : 0;
  return {std::to_string(plan.devices),
          seconds_or_milliseconds(time.compute),
          time.exchange ? seconds_or_milliseconds(*time.exchange) : "-",
          seconds_or_milliseconds(time.update()),
          format("{:.2f}", time.update() > 0 ? 1 / time.update() : 0),
          core::count_text(static_cast<int64_t>(rate)),
          first_rate > 0 ? format("{:.2f}", rate / first_rate) : "-",
          core::duration_text(plan.epoch_seconds()),
          text_of_bytes(plan.exchange_bytes),
          time.is_tried   ? "tried"
          : time.exchange ? "predicted"
                          : "predicted without the exchange"};
}

const TriedUpdate& nearest_of(const std::vector<TriedUpdate>& tries, int64_t devices) {
  const auto distance = [devices](const TriedUpdate& tried) {
    return std::abs(std::log2(static_cast<double>(devices) / static_cast<double>(tried.devices)));
  };
  return *std::min_element(tries.begin(), tries.end(),
                           [&](const TriedUpdate& a, const TriedUpdate& b) { return distance(a) < distance(b); });
}

core::Json time_json(const DevicePlan& plan) {
  if (!plan.time) return nullptr;
  const UpdateTime& time = *plan.time;
  return {{"compute_seconds", time.compute},
          {"exchange_seconds", time.exchange ? core::Json(*time.exchange) : core::Json(nullptr)},
          {"update_seconds", time.update()},
          {"updates_per_second", time.update() > 0 ? 1 / time.update() : 0},
          {"images_per_second", time.update() > 0 ? static_cast<double>(plan.images_per_update()) / time.update() : 0},
          {"epoch_seconds", plan.epoch_seconds()},
          {"eval_seconds", time.validation},
          {"tried", time.is_tried}};
}

}  // namespace

UpdateTime predict_update(const DevicePlan& plan, const std::vector<TriedUpdate>& tries, int64_t cpus) {
  UpdateTime time;
  if (tries.empty()) return time;
  const TriedUpdate& nearest = nearest_of(tries, plan.devices);
  const auto crowd = [cpus](int64_t devices) {
    return cpus > 0 ? std::max(1.0, static_cast<double>(devices) / static_cast<double>(cpus)) : 1.0;
  };
  const int64_t batches = plan.replicas * plan.accumulation_steps / plan.devices;
  const double share = static_cast<double>(batches) / static_cast<double>(nearest.batches);
  const double slower = crowd(plan.devices) / crowd(nearest.devices);
  const bool same_devices = nearest.devices == plan.devices;
  time.compute = nearest.compute_seconds * share * slower;
  time.validation =
      nearest.eval_seconds * static_cast<double>(nearest.devices) / static_cast<double>(plan.devices) * slower;
  time.is_tried = same_devices && share == 1;
  if (same_devices || plan.devices == 1) {
    time.exchange = same_devices ? nearest.exchange_seconds : 0;
    return time;
  }
  std::vector<TriedUpdate> exchanged;
  std::copy_if(tries.begin(), tries.end(), std::back_inserter(exchanged),
               [](const TriedUpdate& tried) { return tried.devices > 1 && tried.exchange_seconds > 0; });
  if (exchanged.empty()) return time;
  // Each of n ranks sends 2 (n - 1) / n of the bytes that are summed.
  const auto sent = [](int64_t ranks) { return 1 - 1 / static_cast<double>(ranks); };
  const TriedUpdate& seen = nearest_of(exchanged, plan.devices);
  time.exchange = seen.exchange_seconds * sent(plan.devices) / sent(seen.devices);
  return time;
}

std::vector<std::string> device_table(const std::vector<DevicePlan>& plans) {
  if (plans.empty()) return {};
  const bool on_device = !plans.front().memory.on_device.empty();
  std::vector<Cells> rows = {{"devices", "replicas x accumulation x batch", "images/update", "per device",
                              "updates/epoch", "lr", "workers each", "in all", "RAM each", "RAM in all"}};
  if (on_device) rows.front().push_back("VRAM each");
  rows.front().push_back("fits");
  for (const DevicePlan& plan : plans) rows.push_back(settings_of(plan));
  std::vector<std::string> lines = core::aligned_rows(rows);
  const bool has_time = std::any_of(plans.begin(), plans.end(), [](const DevicePlan& plan) { return bool(plan.time); });
  if (!has_time) return lines;
  lines.emplace_back();
  double first_rate = 0;
  if (plans.front().time) {
    first_rate = static_cast<double>(plans.front().images_per_update()) / std::max(1e-9, plans.front().time->update());
  }
  rows = {
      {"devices", "compute", "exchange", "update", "updates/s", "images/s", "speed", "epoch", "summed", "known from"}};
  for (const DevicePlan& plan : plans) rows.push_back(times_of(plan, first_rate));
  for (const std::string& line : core::aligned_rows(rows)) lines.push_back(line);
  return lines;
}

core::Json device_plans_json(const std::vector<DevicePlan>& plans) {
  core::Json list = core::Json::array();
  for (const DevicePlan& plan : plans) {
    const int64_t images = plan.images_per_update();
    list.push_back(
        {{"devices", plan.devices},
         {"replicas", plan.replicas},
         {"accumulation_steps", plan.accumulation_steps},
         {"batch_size", plan.batch_size},
         {"images_per_update", images},
         {"images_per_device", images / plan.devices},
         {"updates_per_epoch", plan.updates_per_epoch},
         {"learning_rate", plan.learning_rate},
         {"num_workers", plan.num_workers},
         {"total_workers", plan.num_workers * plan.devices},
         {"prefetch_factor", plan.prefetch_factor},
         {"host_bytes", plan.memory.host_bytes},
         {"machine_host_bytes", plan.memory.host_bytes * plan.devices},
         {"device_bytes", plan.memory.on_device.empty() ? core::Json(nullptr) : core::Json(plan.memory.device_bytes)},
         {"exchange_bytes", plan.exchange_bytes},
         {"fits", plan.short_of.empty()},
         {"time", time_json(plan)}});
  }
  return list;
}

}  // namespace stoker::plan
