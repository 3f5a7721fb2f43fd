// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "core/format.h"
#include "core/system/file.h"
#include "core/system/file_system.h"
#include "observe/resources/resources.h"

namespace stoker::observe {
namespace {

using core::format;

constexpr const char* kNameBegin = "events.out.tfevents.";

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Readers take the files of a folder in the order of their names, which begin with seconds since 1970: a clock that
/// went back, or a second start within a second, must not change the order.
int64_t seconds_behind_all_in(const std::string& directory) {
  auto seconds = static_cast<int64_t>(now_seconds());
  std::vector<core::DirectoryEntry> entries;
  if (const int error = core::posix_file_system().list(directory, entries); error != 0) {
    throw core::errno_error(error, "list", core::printable(directory), core::ErrorKind::io);
  }
  for (const core::DirectoryEntry& entry : entries) {
    if (entry.name.rfind(kNameBegin, 0) != 0) continue;
    seconds =
        std::max<int64_t>(seconds, std::strtoll(entry.name.c_str() + std::string(kNameBegin).size(), nullptr, 10) + 1);
  }
  return seconds;
}

void add_resources(const ResourceReading& reading, std::vector<Scalar>& scalars) {
  const core::Json figures = resource_json(reading);
  for (const auto& item : figures.items()) {
    if (item.value().is_number()) scalars.push_back({"resources/" + item.key(), item.value().get<double>()});
  }
}

/// Milliseconds per update and per sample, and how full the queue was.
void add_times(const engine::StepTimings& times, const std::string& group, std::vector<Scalar>& scalars) {
  if (times.updates == 0) return;
  const auto add = [&](const std::string& name, double seconds) { scalars.push_back({group + name, 1e3 * seconds}); };
  add("update_ms", times.update.mean_seconds);
  add("update_p95_ms", times.update.p95_seconds);
  add("update_max_ms", times.update.max_seconds);
  for (size_t i = 0; i < engine::kStepParts; ++i) {
    add(format("{}_ms", engine::kStepPartNames[i]), times.parts.spreads[i].mean_seconds);
    if (times.has_device) add(format("device_{}_ms", engine::kStepPartNames[i]), times.device.spreads[i].mean_seconds);
  }
  add("sample_read_ms", times.sample.read.mean_seconds);
  add("sample_decode_ms", times.sample.decode.mean_seconds);
  add("sample_resize_ms", times.sample.resize.mean_seconds);
  add("sample_augment_ms", times.sample.augment.mean_seconds);
  scalars.push_back({group + "queue_batches", times.mean_queue()});
}

void add_ranks(const std::vector<engine::RankTimes>& ranks, const std::string& group, std::vector<Scalar>& scalars) {
  const std::optional<engine::RankSummary> summary = engine::rank_summary(ranks);
  if (!summary) return;
  scalars.push_back({group + "exchange_share", summary->exchange_share});
  scalars.push_back({group + "slowest_rank", static_cast<double>(summary->slowest)});
  scalars.push_back({group + "slowest_rank_excess", summary->slowest_excess()});
}

}  // namespace

TensorBoardFile::TensorBoardFile(std::string run_dir) : directory_(std::move(run_dir) + "/tensorboard") {}

void TensorBoardFile::on_start(const engine::StartEvent& event) {
  core::make_directories(directory_);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  path_ = format("{}/{}{:010d}.{}.{}", directory_, kNameBegin, seconds_behind_all_in(directory_), host, ::getpid());
  core::append_file(path_, version_record(now_seconds()), /*durable=*/false);
  const bool resumed = event.start_epoch > 0 || event.start_updates > 0;
  if (resumed) core::append_file(path_, restart_record(now_seconds(), event.start_updates + 1), /*durable=*/false);
}

void TensorBoardFile::on_report(const engine::ReportEvent& event) {
  std::vector<Scalar> scalars = {{"train/loss", event.train_loss},
                                 {"train/" + event.train_score.name, event.train_score.value},
                                 {"train/lr", event.at.learning_rate},
                                 {"speed/images_per_second", event.images_per_second},
                                 {"speed/data_wait_share", event.data_wait_share}};
  add_times(event.times, "time/", scalars);
  add_ranks(event.ranks, "speed/", scalars);
  if (event.gradient_norm >= 0) scalars.push_back({"train/gradient_norm", event.gradient_norm});
  if (event.loss_scale > 0) scalars.push_back({"train/loss_scale", event.loss_scale});
  if (event.found.resources) add_resources(*event.found.resources, scalars);
  core::append_file(path_, scalars_record(now_seconds(), event.at.updates, scalars), /*durable=*/false);
}

void TensorBoardFile::on_epoch(const engine::EpochEvent& event) {
  std::vector<Scalar> scalars = {{"epoch/number", static_cast<double>(event.epoch + 1)},
                                 {"epoch/train_loss", event.train_loss},
                                 {"epoch/images_per_second", event.images_per_second},
                                 {"epoch/data_wait_share", event.data_wait_share}};
  add_times(event.times, "epoch_time/", scalars);
  add_ranks(event.ranks, "epoch/", scalars);
  if (event.has_eval) {
    scalars.push_back({"eval/loss", event.eval_loss});
    for (const engine::Metric& metric : event.metrics) scalars.push_back({"eval/" + metric.name, metric.value});
  }
  core::append_file(path_, scalars_record(now_seconds(), event.updates, scalars), /*durable=*/false);
}

}  // namespace stoker::observe
