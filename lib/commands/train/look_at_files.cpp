// SPDX-License-Identifier: Apache-2.0
#include "commands/train/look_at_files.h"

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "train/setup/assemble.h"

namespace stoker::train {

std::vector<std::pair<std::string, data::FileCheck>> look_at_files(const data::Datasets& datasets,
                                                                   const data::DecodeLimits& limits, int64_t threads,
                                                                   bool all) {
  constexpr int64_t kSome = 500;  // of each split: seconds
  const data::FileCheckSettings settings = {limits, threads, all ? 0 : kSome};
  return {{"training samples", data::check_files(*datasets.train, settings)},
          {"validation samples", data::check_files(*datasets.val, settings)}};
}

void refuse_bad_files(const config::ResolvedOptions& options, const data::Datasets& datasets, bool all) {
  int64_t bad = 0;
  std::string first;
  bool is_whole = true;
  for (const auto& [what, check] :
       look_at_files(datasets, decode_limits(options.data), options.loader.num_workers, all)) {
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
                    core::format("repair or remove them, or say --on-bad-image skip,{}{}", bad,
                                 is_whole ? "" : "; --all-files looks at every file"));
}

}  // namespace stoker::train
