// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/fault_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/format.h"

namespace stoker::train {
namespace {

using core::format;

constexpr size_t kHistory = 50;         // updates before one, of which its layers are judged
constexpr double kLossSpike = 3;        // times the median
constexpr double kGradientSpike = 6;    // times the median
constexpr double kRateJump = 3;         // times the update before it
constexpr double kSampleStandsOut = 4;  // times the median of its update
constexpr double kHugeImage = 20;       // times the median of its update
constexpr double kChanged = 0.01;       // of a tensor, that other threads or processors do not make
constexpr size_t kJumpShows = 10;       // updates, until a jump of the learning rate is seen
constexpr size_t kChangeShows = 3;      // the same of changed weights
constexpr size_t kNeighbours = 3;       // updates between two episodes that are one
constexpr size_t kMaxSamples = 5;

bool has_bad_input(const WatchedUpdate& update) {
  return std::any_of(update.samples.begin(), update.samples.end(),
                     [](const SampleRecord& sample) { return !sample.is_finite; });
}

bool rate_jumps(const WatchedUpdate& update) {
  return update.rate_before > 0 && update.learning_rate > kRateJump * update.rate_before;
}

bool was_changed(const WatchedUpdate& update) { return update.changed_by > kChanged; }

std::string jump_text(const WatchedUpdate& update) {
  return format("the learning rate went from {:.4g} to {:.4g}", update.rate_before, update.learning_rate);
}

/// Samples whose image has far larger numbers than those of the others.
std::vector<SampleRecord> huge_images(const WatchedUpdate& update) {
  std::vector<double> largest;
  for (const SampleRecord& sample : update.samples) largest.push_back(sample.largest);
  const double usual = median_of(largest);
  std::vector<SampleRecord> found;
  for (const SampleRecord& sample : update.samples) {
    if (usual > 0 && sample.largest > kHugeImage * usual) found.push_back(sample);
  }
  return found;
}

/// Samples whose loss or image stands out among those of their update.
std::vector<SampleRecord> outliers_of(const WatchedUpdate& update) {
  std::vector<SampleRecord> found;
  if (has_bad_input(update)) {
    for (const SampleRecord& sample : update.samples) {
      if (!sample.is_finite) found.push_back(sample);
    }
    return found;
  }
  found = huge_images(update);
  if (!found.empty()) return found;
  std::vector<double> losses;
  for (const SampleRecord& sample : update.samples) losses.push_back(sample.loss);
  const bool some_finite = std::any_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  const bool all_are = std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  if (!some_finite) return {};  // all of them: the network, or a norm over the batch
  const double usual = all_are ? median_of(losses) : 0;
  for (const SampleRecord& sample : update.samples) {
    const bool stands_out =
        all_are ? sample.loss > kSampleStandsOut * usual && sample.loss > 1 : !std::isfinite(sample.loss);
    if (stands_out) found.push_back(sample);
  }
  std::stable_sort(found.begin(), found.end(), [](const SampleRecord& a, const SampleRecord& b) {
    return std::isfinite(a.loss) && std::isfinite(b.loss) ? a.loss > b.loss
                                                          : !std::isfinite(a.loss) && std::isfinite(b.loss);
  });
  if (found.size() > kMaxSamples) found.resize(kMaxSamples);
  return found;
}

/// Episodes of losses and of gradient norms.
std::vector<Episode> strange_episodes(const std::vector<WatchedUpdate>& updates) {
  std::vector<double> losses, norms;
  for (const WatchedUpdate& update : updates) {
    losses.push_back(update.is_finite() ? update.loss : std::numeric_limits<double>::infinity());
    norms.push_back(update.gradient_norm);
  }
  std::vector<Episode> all = episodes_of(losses, kLossSpike);
  for (const Episode& episode : episodes_of(norms, kGradientSpike)) all.push_back(episode);
  return all;
}

/// Whether update `at` is like those before `begin` without the samples that stand out in it.
bool is_explained_by_samples(const std::vector<WatchedUpdate>& updates, size_t begin, size_t at) {
  const WatchedUpdate& update = updates[at];
  if (has_bad_input(update) || !huge_images(update).empty()) return true;
  const std::vector<SampleRecord> outliers = outliers_of(update);
  if (outliers.empty() || !std::isfinite(update.loss)) return !outliers.empty();
  double left = update.loss * static_cast<double>(update.samples.size());
  for (const SampleRecord& sample : outliers) left -= sample.loss;
  std::vector<double> losses;
  for (size_t i = begin > kHistory ? begin - kHistory : 0; i < begin; ++i) losses.push_back(updates[i].loss);
  return left <= kLossSpike * median_of(losses) * static_cast<double>(update.samples.size() - outliers.size());
}

/// The update that changed something before an episode, or else in it; `none` where none did.
size_t cause_around(const std::vector<WatchedUpdate>& updates, const Episode& episode, size_t none) {
  for (size_t back = 0; back <= std::min(kJumpShows, episode.begin); ++back) {
    const WatchedUpdate& update = updates[episode.begin - back];
    if (rate_jumps(update) || (was_changed(update) && back <= kChangeShows)) return episode.begin - back;
  }
  for (size_t i = episode.begin + 1; i <= episode.peak; ++i) {
    if (rate_jumps(updates[i]) || was_changed(updates[i])) return i;
  }
  return none;
}

/// In which update the worst of `episodes` began.
size_t begin_of(const std::vector<WatchedUpdate>& updates, const std::vector<Episode>& episodes, const Episode& worst) {
  if (has_bad_input(updates[worst.peak]) || !huge_images(updates[worst.peak]).empty()) return worst.peak;
  Episode whole = worst;  // with what stood out just before it
  for (const Episode& other : episodes) {
    if (other.begin < whole.begin && other.end + kNeighbours >= whole.begin) whole.begin = other.begin;
  }
  const size_t cause = cause_around(updates, whole, updates.size());
  if (cause < updates.size()) return cause;
  return is_explained_by_samples(updates, whole.begin, worst.peak) ? worst.peak : whole.begin;
}

/// The layer whose gradient grew most against its own median.
std::string layer_of(const std::vector<WatchedUpdate>& updates, size_t i) {
  const WatchedUpdate& update = updates[i];
  if (was_changed(update)) {
    std::string changed;  // the longest name, such as "optimizer: momentum.stem.conv.weight"
    for (const GradientRecord& layer : update.layers) {
      const bool holds = ("." + update.changed_tensor).find("." + layer.name + ".") != std::string::npos ||
                         update.changed_tensor.find(" " + layer.name + ".") != std::string::npos;
      if (holds && layer.name.size() > changed.size()) changed = layer.name;
    }
    return changed;
  }
  if (!update.stage.empty()) return update.stage;
  std::string layer;
  double most = 0;
  for (size_t k = 0; k < update.layers.size(); ++k) {
    std::vector<double> norms;
    for (size_t before = i > kHistory ? i - kHistory : 0; before < i; ++before) {
      if (k < updates[before].layers.size()) norms.push_back(updates[before].layers[k].norm);
    }
    const double usual = norms.empty() ? 1 : std::max(1e-30, median_of(norms)), norm = update.layers[k].norm;
    const double growth = std::isfinite(norm) ? norm / usual : 1e300;
    if (growth > most) {
      most = growth;
      layer = update.layers[k].name;
    }
  }
  return layer;
}

std::string cause_of(const std::vector<WatchedUpdate>& updates, size_t i, const std::vector<SampleRecord>& samples) {
  const WatchedUpdate& update = updates[i];
  if (has_bad_input(update)) return "an image holds NaN or infinity";
  if (was_changed(update)) {
    return format("{} was changed: {} differs by up to {:.3g} from what the run computed", update.checkpoint,
                  update.changed_tensor, update.changed_by);
  }
  if (rate_jumps(update)) return jump_text(update);
  if (i > 0 && rate_jumps(updates[i - 1])) return jump_text(updates[i - 1]) + " an update before";
  if (!huge_images(update).empty()) {
    return format("an image holds numbers up to {:.3g}, far more than the others", huge_images(update).front().largest);
  }
  if (!update.stage.empty()) return format("the output of {} is not finite: it overflows", update.stage);
  if (!samples.empty()) return "samples cost far more than the others of their update";
  std::vector<double> norms;
  for (size_t k = 0; k <= i; ++k) norms.push_back(updates[k].gradient_norm);
  const double times = spike(norms, i, kGradientSpike);
  if (times > 0) return format("the gradient norm is {:.4g}, {:.0f} times the usual", update.gradient_norm, times);
  return format("the learning rate {:.4g} is too high for this network", update.learning_rate);
}

/// For a run that ends_by_skipping(): what changed just before the skipped updates, or else the scale.
Blame fault_of_skipping(const std::vector<WatchedUpdate>& updates) {
  const size_t first = first_trailing_skip(updates);
  const size_t cause = cause_around(updates, {first, updates.size() - 1, first, 0}, updates.size());
  Blame blame;
  blame.kind = Blame::Kind::divergence;
  blame.not_finite_at = updates[first].update;
  blame.by_skipping = true;
  blame.began = updates[first];
  if (cause < updates.size()) {
    blame.began = updates[cause];
    blame.layer = layer_of(updates, cause);
    blame.cause = cause_of(updates, cause, {}) + "; " + cause_of_skips(updates, first);
    return blame;
  }
  blame.layer = overflowing_layer(updates[first]);
  blame.cause = cause_of_skips(updates, first);
  if (!is_scale_too_high(updates)) blame.samples = outliers_of(updates[first]);
  return blame;
}

}  // namespace

Blame find_fault(const std::vector<WatchedUpdate>& watched, const engine::SkipLimits& limits) {
  if (ends_by_skipping(watched, limits)) return fault_of_skipping(watched);
  const std::vector<WatchedUpdate> updates = with_norms_of_skips_filled(watched);
  Blame blame;
  const std::vector<Episode> episodes = strange_episodes(updates);
  if (episodes.empty()) return blame;
  const Episode worst = *std::max_element(episodes.begin(), episodes.end(),
                                          [](const Episode& a, const Episode& b) { return a.most < b.most; });
  const bool diverged = !updates[worst.peak].is_finite();
  blame.kind = diverged ? Blame::Kind::divergence : Blame::Kind::spike;
  if (diverged) blame.not_finite_at = updates[worst.peak].update;
  const size_t begin = begin_of(updates, episodes, worst);
  blame.began = updates[begin];
  const bool is_from_outside = rate_jumps(updates[begin]) || was_changed(updates[begin]);
  if (!is_from_outside) blame.samples = outliers_of(updates[begin]);
  blame.layer = has_bad_input(updates[begin]) ? "" : layer_of(updates, begin);
  blame.cause = cause_of(updates, begin, blame.samples);
  return blame;
}

namespace {

constexpr double kUsualScale = 65536;  // at which PyTorch's scaler begins, and ours

}  // namespace

size_t first_trailing_skip(const std::vector<WatchedUpdate>& updates) {
  size_t first = updates.size();
  while (first > 0 && updates[first - 1].is_skipped) --first;
  return first;
}

// At a scale below 1 gradients are made smaller than they are: they overflow by themselves.
bool is_scale_too_high(const std::vector<WatchedUpdate>& updates) { return updates.back().loss_scale > 1; }

std::string cause_of_skips(const std::vector<WatchedUpdate>& updates, size_t first) {
  const WatchedUpdate &begin = updates[first], &end = updates.back();
  const size_t count = updates.size() - first;
  if (is_scale_too_high(updates)) {
    return core::format(
        "the loss scale is too high: gradients overflow float16 at {:.4g}, and {} skipped updates later at {:.4g}",
        begin.loss_scale, count - 1, end.loss_scale);
  }
  return core::format(
      "gradients overflow float16 at any loss scale: {} updates were skipped in a row, from {:.4g} to {:.4g}", count,
      begin.loss_scale, end.loss_scale);
}

std::string advice_about_skips(const std::vector<WatchedUpdate>& updates, double init_scale) {
  if (!is_scale_too_high(updates)) return "train with --amp bfloat16 or --no-amp, or with a lower --lr";
  return core::format(
      "train with --loss-scale {:g}, or with a higher --max-skipped, so that the scale can fall further",
      init_scale > kUsualScale ? kUsualScale : std::max(1.0, updates.back().loss_scale / 2));
}

std::string overflowing_layer(const WatchedUpdate& update) {
  const auto last = std::find_if(update.layers.rbegin(), update.layers.rend(),
                                 [](const GradientRecord& layer) { return !std::isfinite(layer.norm); });
  return last == update.layers.rend() ? "" : last->name;
}

std::vector<WatchedUpdate> with_norms_of_skips_filled(std::vector<WatchedUpdate> updates) {
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

namespace {

constexpr size_t kSeriesHistory = 50;
constexpr size_t kSeriesLeast = 4;
constexpr size_t kSeriesAfter = 8;
constexpr double kSeriesShort = 10;  // times the factor, where next to nothing is known
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSeriesSpread = 10;  // median absolute deviations

std::vector<double> finite_part(const std::vector<double>& values, size_t begin, size_t end) {
  std::vector<double> part;
  for (size_t i = begin; i < std::min(end, values.size()); ++i) {
    if (std::isfinite(values[i])) part.push_back(values[i]);
  }
  return part;
}

/// How often `value` is the usual of `others`; 0: it does not stand out.
double multiple_of(double value, const std::vector<double>& others, double factor) {
  const double usual = median_of(others);
  std::vector<double> deviations;
  deviations.reserve(others.size());
  for (const double other : others) deviations.push_back(std::abs(other - usual));
  const bool stands_out = usual > 0 && value > factor * usual && value - usual > kSeriesSpread * median_of(deviations);
  return stands_out ? value / usual : 0;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Episode> episodes_of(const std::vector<double>& values, double factor) {
  constexpr size_t kGap = 2;
  std::vector<Episode> episodes;
  for (size_t i = 0; i < values.size(); ++i) {
    const double times = std::isfinite(values[i]) ? spike(values, i, factor) : kInfinite;
    if (times == 0) continue;
    const double usual = std::isfinite(times) ? values[i] / times : median_of(finite_part(values, 0, i));
    Episode episode{i, i, i, times};
    for (size_t k = i + 1; k < values.size() && k <= episode.end + kGap + 1; ++k) {
      const double multiple = !std::isfinite(values[k]) ? kInfinite : usual > 0 ? values[k] / usual : 0;
      if (multiple <= factor) continue;
      episode.end = k;
      if (multiple > episode.most) {
        episode.most = multiple;
        episode.peak = k;
      }
    }
    episodes.push_back(episode);
    i = episode.end;
  }
  return episodes;
}

double spike(const std::vector<double>& values, size_t i, double factor) {
  const std::vector<double> before = finite_part(values, i > kSeriesHistory ? i - kSeriesHistory : 0, i);
  if (before.empty()) return 0;
  const double multiple = multiple_of(values[i], before, factor);
  if (before.size() >= kSeriesLeast) return multiple;
  const std::vector<double> after = finite_part(values, i + 1, i + 1 + kSeriesAfter);
  if (after.size() < kSeriesLeast) return multiple_of(values[i], before, kSeriesShort * factor);
  return std::min(multiple, multiple_of(values[i], after, factor));
}

}  // namespace stoker::train
