// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/skipped_updates.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace stoker::train {
namespace {

constexpr double kUsualScale = 65536;  // at which PyTorch's scaler begins, and ours

}  // namespace

size_t first_of_last_skips(const std::vector<WatchedUpdate>& updates) {
  size_t first = updates.size();
  while (first > 0 && updates[first - 1].is_skipped) --first;
  return first;
}

// At a scale below 1 gradients are made smaller than they are: they overflow by themselves.
bool scale_is_to_blame(const std::vector<WatchedUpdate>& updates) { return updates.back().loss_scale > 1; }

std::string cause_of_skips(const std::vector<WatchedUpdate>& updates, size_t first) {
  const WatchedUpdate &begin = updates[first], &end = updates.back();
  const size_t count = updates.size() - first;
  if (scale_is_to_blame(updates)) {
    return core::format(
        "the loss scale is too high: gradients overflow float16 at {:.4g}, and {} skipped updates later at {:.4g}",
        begin.loss_scale, count - 1, end.loss_scale);
  }
  return core::format(
      "gradients overflow float16 at any loss scale: {} updates were skipped in a row, from {:.4g} to {:.4g}", count,
      begin.loss_scale, end.loss_scale);
}

std::string advice_about_skips(const std::vector<WatchedUpdate>& updates, double init_scale) {
  if (!scale_is_to_blame(updates)) return "train with --amp bfloat16 or --no-amp, or with a lower --lr";
  return core::format(
      "train with --loss-scale {:g}, or with a higher --max-skipped, so that the scale can fall further",
      init_scale > kUsualScale ? kUsualScale : std::max(1.0, updates.back().loss_scale / 2));
}

std::string layer_that_overflows(const WatchedUpdate& update) {
  const auto last = std::find_if(update.layers.rbegin(), update.layers.rend(),
                                 [](const GradientRecord& layer) { return !std::isfinite(layer.norm); });
  return last == update.layers.rend() ? "" : last->name;
}

std::vector<WatchedUpdate> with_skips_passed_over(std::vector<WatchedUpdate> updates) {
  const auto is_taken = [](const WatchedUpdate& update) { return !update.is_skipped; };
  const auto taken = std::find_if(updates.begin(), updates.end(), is_taken);
  double norm = taken == updates.end() ? 0 : taken->gradient_norm;
  for (WatchedUpdate& update : updates) {
    if (update.is_skipped)
      update.gradient_norm = norm;
    else
      norm = update.gradient_norm;
  }
  return updates;
}

}  // namespace stoker::train
