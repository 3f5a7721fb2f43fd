// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>.csv with the column path and one column per target: 0 or 1 for multilabel, any finite
// number for regression, degrees for head pose. The training file's header decides which targets there are,
// and their order.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/file_source.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr size_t kMaxTargets = 4096;
constexpr double kMaxDegrees = 360;

const char* hint_for(config::TaskKind task) {
  switch (task) {
    case config::TaskKind::multilabel: return "the file begins like path,cat,dog and goes on like 1.jpg,0,1";
    case config::TaskKind::head_pose:
      return "the file begins with the line path,yaw,pitch,roll and goes on like 1.jpg,-12.5,3.25,0";
    default: return "the file begins like path,age or path,x,y and goes on like 1.jpg,0.25,-3";
  }
}

class CsvTargetLayout : public Layout {
 public:
  explicit CsvTargetLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return core::file_exists(file_of(split)); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    if (options_.task == config::TaskKind::head_pose) return {"yaw", "pitch", "roll"};
    const CsvManifest manifest(file_of(train_split), hint_for(options_.task));
    std::vector<std::string> names;
    for (const std::string& name : manifest.header()) {
      if (name == "path") continue;
      if (name.empty()) manifest.fail("a column has no name", hint_for(options_.task));
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        manifest.fail(core::format("two columns are called '{}'", core::printable(name)));
      }
      names.push_back(name);
    }
    if (names.empty()) manifest.fail("there is no column besides path", hint_for(options_.task));
    if (names.size() > kMaxTargets) {
      manifest.fail(core::format("{} targets; there may be {}", names.size(), kMaxTargets));
    }
    return names;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& names, bool,
                                     std::vector<std::string>& notes) const override {
    CsvManifest manifest(file_of(split), hint_for(options_.task));
    std::vector<size_t> columns;
    for (const std::string& name : names) columns.push_back(manifest.column(name));
    FileList files(options_.data_dir, static_cast<int64_t>(names.size()));
    ScanNotes scan_notes;
    std::unordered_map<uint64_t, int64_t> seen;  // hash of a path -> its first entry
    std::vector<float> targets(names.size());
    while (manifest.next()) {
      core::throw_if_stopped();
      for (size_t i = 0; i < names.size(); ++i) targets[i] = target_of(manifest, columns[i], names[i]);
      const auto [first, is_new] = seen.emplace(core::hash64(manifest.path()), files.size());
      if (!is_new && files.relative_path(first->second) == manifest.path()) {
        if (!std::equal(targets.begin(), targets.end(), files.targets(first->second))) {
          manifest.fail("the same path stood earlier with other targets");
        }
        scan_notes.count("paths listed more than once", manifest.path());
      }
      const FileStamp stamp = stamp_of(files.absolute(manifest.path()));
      if (stamp.size < 0) scan_notes.count("files of the manifest that are not there", manifest.path());
      files.add(manifest.path(), targets, stamp);
    }
    if (files.size() == 0) manifest.fail("there are no rows after the header", hint_for(options_.task));
    for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
    return make_target_source(std::move(files), names);
  }

 private:
  std::string file_of(const std::string& split) const { return options_.data_dir + "/" + split + ".csv"; }

  float target_of(const CsvManifest& row, size_t column, const std::string& name) const {
    const std::string& text = row.field(column);
    const auto refuse = [&](const char* wanted) {
      row.fail(core::format("{} '{}' is not {}", core::printable(name), core::printable(text), wanted),
               hint_for(options_.task));
    };
    if (options_.task == config::TaskKind::multilabel) {
      if (text != "0" && text != "1") refuse("0 or 1");
      return text == "1" ? 1.0F : 0.0F;
    }
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      refuse("a finite number");
    }
    if (options_.task == config::TaskKind::head_pose && std::abs(value) > kMaxDegrees) {
      refuse("an angle in degrees");
    }
    return value;
  }

  const config::DataOptions options_;
};

}  // namespace

std::unique_ptr<Layout> make_csv_target_layout(const config::DataOptions& options) {
  return std::make_unique<CsvTargetLayout>(options);
}

}  // namespace stoker::data
