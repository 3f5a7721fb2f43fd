// SPDX-License-Identifier: Apache-2.0
#include "commands/train/check_data_files.h"

#include <algorithm>
#include <chrono>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/long_step.h"
#include "core/time/clock.h"
#include "data/loader/loader.h"
#include "train/setup/assemble.h"
#include "train/setup/option_warnings.h"

namespace stoker::train {

std::vector<std::pair<std::string, data::FileCheck>> check_data_files(const data::Datasets& datasets,
                                                                      const data::DecodeLimits& limits, int64_t threads,
                                                                      bool all) {
  constexpr int64_t kSome = 500;  // of each split: seconds
  const data::FileCheckSettings settings = {limits, threads, all ? 0 : kSome};
  const core::LongStep step("files     reading samples");
  std::vector<std::pair<std::string, data::FileCheck>> checks = {
      {"training samples", data::check_files(*datasets.train, settings)}};
  if (datasets.has_validation) checks.emplace_back("validation samples", data::check_files(*datasets.val, settings));
  return checks;
}

void refuse_bad_files(const config::ResolvedOptions& options, const data::Datasets& datasets, bool all) {
  int64_t bad = 0;
  std::string first;
  bool is_whole = true;
  for (const auto& [what, check] :
       check_data_files(datasets, decode_limits(options.data), options.loader.num_workers, all)) {
    core::log_info("files     {}", data::file_check_text(check, what));
    for (const std::string& line : check.first_bad) core::log_warning("bad: {}", line);
    bad += check.bad;
    is_whole = is_whole && check.looked_at == check.samples;
    if (first.empty() && !check.first_bad.empty()) first = check.first_bad.front();
  }
  const bool skips = options.data.on_bad_image == config::OnBadImage::skip;
  if (bad == 0 || (skips && bad <= options.data.max_bad)) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("{} bad files would end the run; the first is {}", core::count_text(bad), first),
                    core::format("repair or remove them, or set --on-bad-image skip,{}{}", bad,
                                 is_whole ? "" : "; --all-files looks at every file"));
}

void refuse_unfit_data(const config::ResolvedOptions& options, const data::Datasets& datasets) {
  const std::string problem =
      datasets.has_validation ? metric_problem(options.data.task, options.train.eval_metric, *datasets.val) : "";
  if (!problem.empty()) {
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}, which chooses the best checkpoint, is undefined or always 0 on the validation split: {}",
                     config::eval_metric_name(options.train.eval_metric), problem),
        "validate on other images (--val-fraction 0.1 --stratify holds some of each class out), or choose by "
        "--eval-metric loss");
  }
  const data::Source& train = *datasets.train;
  if (options.data.task == config::TaskKind::multiclass && train.num_targets() == 0 && train.num_classes() == 1) {
    throw core::Error(core::ErrorKind::data,
                      core::format("the training split holds 1 class ({}); at least 2 classes are needed",
                                   core::printable(train.class_names()[0])),
                      "give the folder above, or add images of other classes");
  }
  if (options.data.on_bad_image != config::OnBadImage::fail) return;
  constexpr int64_t kAtMost = 1000;  // of each split: seconds
  const data::FileCheckSettings settings = {decode_limits(options.data),
                                            std::max<int64_t>(1, options.loader.num_workers), kAtMost};
  const auto begin = std::chrono::steady_clock::now();
  int64_t read = 0;
  for (const auto& source : {datasets.train, datasets.val}) {
    const data::FileCheck check = data::check_files(*source, settings);
    read += check.looked_at;
    if (check.bad == 0) continue;
    std::string text = "bad image " + check.first_bad.front();
    if (check.bad > 1) text += core::format(" (and {} more)", core::count_text(check.bad - 1));
    throw core::Error(core::ErrorKind::data, text, data::kBadImageHint);
  }
  constexpr double kNoticed = 2;  // seconds
  if (const double seconds = core::seconds_since(begin); seconds > kNoticed) {
    core::log_info("files     {} samples read before training, none bad, in {}", core::count_text(read),
                   core::duration_text(seconds));
  }
}

}  // namespace stoker::train
