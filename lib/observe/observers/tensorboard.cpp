// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
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
  std::error_code ignored;
  if (std::filesystem::is_symlink(directory_, ignored)) {  // as all logs of a run: somebody else may have made it
    throw core::output_error(ELOOP, "write into", directory_, core::ErrorKind::cannot_create);
  }
  core::make_directories(directory_);
  path_ = format("{}/{}{:010d}.{}.{}", directory_, kNameBegin, seconds_behind_all_in(directory_), core::host_name(),
                 ::getpid());
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
  std::vector<Scalar> scalars;
  if (!event.is_inside) {
    scalars = {{"epoch/number", static_cast<double>(event.epoch + 1)},
               {"epoch/train_loss", event.train_loss},
               {"epoch/images_per_second", event.images_per_second},
               {"epoch/data_wait_share", event.data_wait_share}};
    add_times(event.times, "epoch_time/", scalars);
    add_ranks(event.ranks, "epoch/", scalars);
  }
  if (event.has_eval) {
    scalars.push_back({"eval/loss", event.eval_loss});
    for (const engine::Metric& metric : event.metrics) scalars.push_back({"eval/" + metric.name, metric.value});
  }
  core::append_file(path_, scalars_record(now_seconds(), event.updates, scalars), /*durable=*/false);
}

namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kReflectedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kReflectedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

/// A checksum of a file that holds checksums would otherwise be of little worth: TFRecord rotates and adds.
uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xFF);
  return text;
}

/// Fields of one protobuf message, in the order in which they are added.
class Message {
 public:
  void add_double(int field, double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bytes_ += tag(field, kFixed64) + little_endian(bits, 8);
  }
  void add_float(int field, float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bytes_ += tag(field, kFixed32) + little_endian(bits, 4);
  }
  void add_integer(int field, int64_t value) { bytes_ += tag(field, kVarint) + varint(static_cast<uint64_t>(value)); }
  void add_bytes(int field, std::string_view value) {
    bytes_ += tag(field, kLength) + varint(value.size()) + std::string(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  static std::string varint(uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7F) | 0x80);
    return text + static_cast<char>(value);
  }
  static std::string tag(int field, WireType type) { return varint(static_cast<uint64_t>((field << 3) | type)); }

  std::string bytes_;
};

// Field numbers of the public schema.
namespace event_field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary_field {
constexpr int kValue = 1;
}
namespace value_field {
constexpr int kTag = 1, kSimpleValue = 2;
}
namespace session_field {
constexpr int kStatus = 1, kStart = 1;  // the field, and its value START
}

Message event_at(double wall_seconds, int64_t step) {
  Message event;
  event.add_double(event_field::kWallTime, wall_seconds);
  event.add_integer(event_field::kStep, step);
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view payload) {
  const std::string length = little_endian(payload.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + std::string(payload) +
         little_endian(masked_crc32c(payload), 4);
}

std::string version_record(double wall_seconds) {
  Message event;
  event.add_double(event_field::kWallTime, wall_seconds);
  event.add_bytes(event_field::kFileVersion, "brain.Event:2");
  return tf_record(event.bytes());
}

std::string restart_record(double wall_seconds, int64_t step) {
  Message session;
  session.add_integer(session_field::kStatus, session_field::kStart);
  Message event = event_at(wall_seconds, step);
  event.add_bytes(event_field::kSessionLog, session.bytes());
  return tf_record(event.bytes());
}

std::string scalars_record(double wall_seconds, int64_t step, const std::vector<Scalar>& scalars) {
  Message summary;
  for (const Scalar& scalar : scalars) {
    Message value;
    value.add_bytes(value_field::kTag, scalar.tag);
    value.add_float(value_field::kSimpleValue, static_cast<float>(scalar.value));
    summary.add_bytes(summary_field::kValue, value.bytes());
  }
  Message event = event_at(wall_seconds, step);
  event.add_bytes(event_field::kSummary, summary.bytes());
  return tf_record(event.bytes());
}

}  // namespace stoker::observe
