// SPDX-License-Identifier: Apache-2.0
// `train pack`: a data set into tar shards, and looking after shards that are there.
#include "commands/pack/pack.h"

#include <chrono>
#include <filesystem>

#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "data/open_datasets.h"
#include "data/pack/pack.h"
#include "data/probe/probe_sizes.h"
#include "observe/observers/console.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorKind;
using core::format;
using Clock = std::chrono::steady_clock;

constexpr char kPackHint[] = "train pack --help lists every flag";

[[noreturn]] void refuse_flag(const std::string& flag, const std::string& text, const std::string& wanted) {
  throw Error(ErrorKind::usage, format("{}: {} is not accepted; {}", flag, config::shown(text), wanted), kPackHint);
}

/// "512MB" (powers of 1000) and "1GiB" (of 1024) are bytes, a plain number is images.
void read_shard_size(const std::string& text, data::PackSettings& settings) {
  constexpr int64_t kMax = 1'000'000'000;
  const std::pair<const char*, uint64_t> units[] = {{"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},
                                                    {"KB", 1'000},       {"MB", 1'000'000},   {"GB", 1'000'000'000}};
  int64_t number = 0;
  for (const auto& [unit, bytes] : units) {
    const std::string_view name = unit;
    if (text.size() <= name.size() || text.compare(text.size() - name.size(), name.size(), name) != 0) continue;
    if (!config::read_integer(text.substr(0, text.size() - name.size()), 1, 1'000'000, number).empty()) break;
    settings.shard_bytes = static_cast<uint64_t>(number) * bytes;
    return;
  }
  if (!config::read_integer(text, 1, kMax, number).empty()) {
    refuse_flag("--shard-size", text, "write bytes as 512MB or 1GiB, or a number of images as 10000");
  }
  settings.shard_images = number;
}

data::PackSettings settings_of(const config::ResolvedOptions& options, const PackFlags& words,
                               const std::string& directory) {
  data::PackSettings settings;
  settings.directory = directory;
  read_shard_size(words.shard_size, settings);
  settings.recipe.max_side = words.max_side;
  settings.recipe.quality = words.quality;
  settings.recipe.progressive_to_baseline = words.progressive_to_baseline;
  settings.recipe.limits = decode_limits(options.data);
  settings.on_bad_image = options.data.on_bad_image;
  settings.max_bad = options.data.max_bad;
  settings.num_threads = options.loader.num_workers;
  return settings;
}

/// Images with more than 8 bits that are encoded anew get 8, over the range that training would choose.
void set_range(const data::Source& train, const config::DataOptions& given, data::PackRecipe& recipe) {
  const bool is_percentile = !given.input_range.is_auto() && given.input_range.value() == config::kPercentiles;
  if ((recipe.max_side == 0 && recipe.quality == 0) || (!given.input_range.is_auto() && !is_percentile)) return;
  const data::RangeProbe probe = data::probe_range(train, given.max_image_megapixels);
  if (probe.images == 0 || probe.high <= probe.low || (!is_percentile && !probe.is_narrow)) return;
  const auto rounded = [](double value) { return std::stod(format("{:.6g}", value)); };  // as training does
  recipe.limits.range = {rounded(probe.low), rounded(probe.high)};
  core::log_info("range     numbers from {:g} to {:g} become black to white (--input-range)", recipe.limits.range.low,
                 recipe.limits.range.high);
}

/// Scanning for class folders would find a pack inside the data set.
void refuse_output_inside(const std::string& output, const std::string& input) {
  const fs::path inner = fs::weakly_canonical(output), outer = fs::weakly_canonical(input);
  const auto [end, ignored] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  if (end != outer.end()) return;
  throw Error(ErrorKind::usage, format("the output {} lies inside the data set {}", output, input),
              "pack into a folder elsewhere");
}

/// A live line on a terminal, a plain line now and then elsewhere.
class PackNews {
 public:
  explicit PackNews(const config::LogOptions& log)
      : console_(log.quiet, observe::shown_progress(log.progress)), begin_(Clock::now()), last_(begin_) {}

  void on_progress(const data::PackProgress& progress) {
    const Clock::time_point now = Clock::now();
    if (now - last_ < (console_.is_live() ? std::chrono::milliseconds(100) : std::chrono::seconds(30))) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const auto done = static_cast<double>(progress.images_done);
    const double left_seconds = seconds / done * static_cast<double>(progress.images_total - progress.images_done);
    done_ = done / static_cast<double>(progress.images_total);
    show(format("packing {}/{} images  {} images/s  {}/s  {} left", core::count_text(progress.images_done),
                core::count_text(progress.images_total), core::count_text(static_cast<int64_t>(done / seconds)),
                core::bytes_text(static_cast<double>(progress.bytes_written) / seconds),
                core::duration_text(left_seconds)));
  }
  void on_shard(const std::string& path) {
    if (console_.is_live()) show("reading " + core::printable(path));
  }
  double seconds() const { return core::seconds_since(begin_); }
  void end() { console_.clear_live(); }

 private:
  void show(const std::string& line) {
    if (console_.is_live()) {
      console_.show_live({{"", 1, false, "32", done_ > 0 ? done_ : -1}, {line, 0}});
    } else if (console_.shows_progress()) {
      core::log_info("{}", line);
    }
  }

  observe::Console console_;
  const Clock::time_point begin_;
  Clock::time_point last_;
  double done_ = 0;  ///< 0 to 1
};

Outcome pack_data_set(const Settings& resolved, const PackFlags& flags) {
  if (flags.output.empty()) {
    throw Error(ErrorKind::usage, "missing OUT: train pack DATASET OUT [options]", "name a folder for the shards");
  }
  data::PackSettings settings = settings_of(resolved.options(), flags, flags.output);
  refuse_output_inside(flags.output, flags.dataset);
  require_folder_output(flags.output);
  PackNews news(resolved.options().log);
  std::vector<std::string> notes;
  std::vector<data::SplitToPack> splits;
  for (auto& [name, source] : data::open_whole_splits(resolved.given_data(), flags.splits, notes)) {
    core::log_info("split     {}: {} images, {} classes", name, core::count_text(source->size()),
                   source->num_classes());
    if (source->excerpts() != nullptr && (flags.max_side > 0 || flags.quality > 0 || flags.progressive_to_baseline)) {
      throw Error(ErrorKind::usage, "--max-side, --quality and --progressive-to-baseline are for images",
                  "leave them out: sounds are packed as they are");
    }
    splits.push_back({name, std::move(source)});
  }
  for (const std::string& note : notes) core::log_info("note      {}", note);
  set_range(*splits.front().source, resolved.given_data(), settings.recipe);
  data::PackReport report;
  try {
    report = data::pack(splits, settings, [&](const data::PackProgress& progress) { news.on_progress(progress); });
  } catch (const core::StopRequested&) {
    news.end();
    core::log_info("stopped by SIG{}: shards that are finished stay; run the same command to continue",
                   core::stop_signal_name());
    throw;
  }
  news.end();
  const std::string content = format("{} images in {} shards, {}", core::count_text(report.images), report.shards,
                                     core::bytes_text(static_cast<double>(report.bytes)));
  if (report.was_complete) {
    core::log_info("already packed: {} holds {}", core::printable(flags.output), content);
    return {core::kExitOk, "already-packed"};
  }
  const std::string kept = report.kept_shards > 0 ? format("; {} shards were finished before", report.kept_shards) : "";
  core::log_info("packed    {}: {}, in {}{}", core::printable(flags.output), content,
                 core::duration_text(news.seconds()), kept);
  if (report.bad_images > 0) core::log_warning("bad images left out: {}", report.bad_images);
  core::log_info("next      train --data-dir {0}{1}    train pack --verify {0}", core::printable(flags.output),
                 splits.size() == 1 ? " --val-fraction 0.1" : "");
  return {core::kExitOk, "packed"};
}

Outcome verify(const config::ResolvedOptions& options, const PackFlags& flags) {
  const std::string& directory = flags.dataset;
  PackNews news(options.log);
  const data::VerifyReport report = data::verify_pack(directory, [&](const std::string& path) { news.on_shard(path); });
  news.end();
  for (const std::string& note : report.notes) core::log_info("note      {}", note);
  if (report.problems.empty()) {
    core::log_info("verified  {}: {} images in {} shards, {}, in {}", core::printable(directory),
                   core::count_text(report.images), report.shards, core::bytes_text(static_cast<double>(report.bytes)),
                   core::duration_text(news.seconds()));
    return {core::kExitOk, "verified"};
  }
  std::string message = report.problems.front();
  if (report.problems.size() > 1) {
    message = format("{} problems with the shards of {}:", report.problems.size(), core::printable(directory));
    for (size_t i = 0; i < std::min<size_t>(20, report.problems.size()); ++i) message += "\n  " + report.problems[i];
  }
  throw Error(ErrorKind::data, message,
              "get the files again, or remove damaged shards of a pack and run its train pack command again");
}

Outcome write_indexes(const config::ResolvedOptions& options, const PackFlags& flags) {
  const std::string& directory = flags.dataset;
  PackNews news(options.log);
  const data::IndexReport report =
      data::write_missing_indexes(directory, [&](const std::string& path) { news.on_shard(path); });
  news.end();
  for (const std::string& note : report.notes) core::log_info("note      {}", note);
  core::log_info("indexed   {}: {} indexes written, {} were right already", core::printable(directory), report.written,
                 report.kept);
  return {core::kExitOk, "indexed"};
}

}  // namespace

Outcome pack(const Context& context, const PackFlags& flags) {
  config::Configuration& given = context.configuration;
  if (given.flags.print_config) {
    write_result("-", config::render_yaml(given.table, /*with_origin=*/true));
    return {core::kExitOk, ""};
  }
  config::name_data(flags.dataset, given.options);
  const Settings settings = Settings::without_network(given);
  const config::ResolvedOptions& options = settings.options();
  if (!flags.verify && !flags.index) return pack_data_set(settings, flags);
  if (!flags.output.empty() || (flags.verify && flags.index)) {
    throw Error(ErrorKind::usage, "--verify and --index take one folder of shards and stand alone",
                "train pack --verify FOLDER, or train pack --index FOLDER");
  }
  return flags.verify ? verify(options, flags) : write_indexes(options, flags);
}

}  // namespace stoker::train
