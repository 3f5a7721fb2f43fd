// SPDX-License-Identifier: Apache-2.0
#include "plan/refusals.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"

namespace stoker::plan {
namespace {

void refuse_or_warn(const std::string& short_of, const std::string& hint, const std::string& advice, bool plan_check) {
  if (plan_check) throw core::Error(core::ErrorKind::out_of_memory, short_of, hint + advice);
  core::log_warning("--no-plan-check goes on although {}; {}", short_of, hint);
}

}  // namespace

int64_t most_checkpoints(const config::ResolvedRunOptions& options) {
  return std::max<int64_t>(2, options.keep_last) + (options.save_best ? 1 : 0) + 1;
}

void refuse_what_does_not_fit(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check) {
  const std::string short_of = shortage(make_memory_plan(inputs), budget);
  if (short_of.empty()) return;
  const std::string flags = largest_that_fits(inputs, budget);
  refuse_or_warn(
      short_of,
      flags.empty() ? "nothing smaller fits either: choose a smaller --model or --img-size" : "this fits: " + flags,
      "; train plan shows each part, --no-plan-check tries it anyway", plan_check);
}

void refuse_evaluation_that_does_not_fit(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check) {
  const std::string short_of = shortage(make_memory_plan(inputs), budget);
  if (short_of.empty()) return;
  const int64_t batch = largest_batch(inputs, budget, inputs.val_batch_size, /*margin=*/0);
  refuse_or_warn(short_of,
                 batch > 0 ? core::format("this may fit: --val-batch-size {}", batch)
                           : "not even one image fits: choose a smaller --img-size",
                 "; --no-plan-check tries it anyway", plan_check);
}

}  // namespace stoker::plan
