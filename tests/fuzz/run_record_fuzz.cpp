// SPDX-License-Identifier: Apache-2.0
// Bytes as the files of a run directory, the byte 0x1E between them: curves that are whole, a square confusion matrix,
// pictures that are base64, or refused as data.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "fuzz_target.h"
#include "observe/report/run_record.h"

namespace {

using namespace stoker::observe;

/// A run directory whose files live in memory.
class MemoryRun {
 public:
  MemoryRun() {
    char name[] = "/tmp/fuzz-run-XXXXXX";
    FUZZ_CHECK(::mkdtemp(name) != nullptr);
    path_ = name;
    for (size_t i = 0; i < kNames.size(); ++i) {
      FUZZ_CHECK(::symlink(files_[i].path().c_str(), (path_ + "/" + kNames[i]).c_str()) == 0);
    }
  }
  ~MemoryRun() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryRun& operator=(MemoryRun&&) = delete;  // not copied, not moved

  const std::string& path() const { return path_; }
  void fill(const uint8_t* bytes, size_t size) {
    const uint8_t* const end = bytes + size;
    for (stoker::fuzz::MemoryFile& file : files_) {
      const uint8_t* const stop = &file == &files_.back() ? end : std::find(bytes, end, uint8_t{0x1E});
      file.fill(bytes, static_cast<size_t>(stop - bytes));
      bytes = std::min(stop + 1, end);
    }
  }

 private:
  static constexpr std::array<const char*, 6> kNames = {"metrics.jsonl", "summary.csv", "config.yaml",
                                                        "confusion.csv", "worst.json",  "plan.json"};
  std::array<stoker::fuzz::MemoryFile, kNames.size()> files_;
  std::string path_;
};

void check_curves(const Curves& curves) {
  for (const auto& [name, curve] : curves) {
    FUZZ_CHECK(curve.x.size() == curve.y.size());
    for (const double x : curve.x) FUZZ_CHECK(std::isfinite(x));
    for (const double y : curve.y) FUZZ_CHECK(std::isfinite(y));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static MemoryRun run;
  run.fill(bytes, size);
  try {
    const RunRecord record = read_run_record(run.path());
    check_curves(record.by_epoch);
    check_curves(record.by_report);
    check_curves(record.by_minute);
    for (const auto& row : record.epoch_rows) FUZZ_CHECK(row.size() == record.epoch_columns.size());
    const ConfusionTable& confusion = record.confusion;
    FUZZ_CHECK(confusion.counts.size() == confusion.class_names.size());
    for (const auto& row : confusion.counts) {
      FUZZ_CHECK(row.size() == confusion.class_names.size());
      for (const int64_t count : row) FUZZ_CHECK(count >= 0);
    }
    for (const PictureRow& row : record.worst)
      FUZZ_CHECK((row.jpeg + row.heat).find_first_of("\"<>&' ") == std::string::npos);
    for (const MemoryForecast& memory : record.memory) FUZZ_CHECK(!memory.where.empty());
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}
