// SPDX-License-Identifier: Apache-2.0
#include "app/replay/fault_search.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace stoker::app {
namespace {

using core::format;

constexpr size_t kHistory = 50;  // updates before one, of which it is judged
constexpr size_t kLeastHistory = 4;
constexpr double kLossSpike = 3;        // times the median
constexpr double kGradientSpike = 6;    // times the median
constexpr double kRateJump = 3;         // times the update before it
constexpr double kSampleStandsOut = 4;  // times the median of its update
constexpr size_t kMostSamples = 5;

bool all_finite(const torch::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string name_of(const model::ImageModel& model, const torch::nn::Module& part) {
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (item.value().get() == &part) return item.key();
  }
  return "";
}

/// For its lifetime the stages of a network are watched.
class StageWatch {
 public:
  explicit StageWatch(model::ImageModel& network, bool may_watch) : model_(network), watches_(may_watch) {
    if (!watches_) return;
    model_.set_stage_runner(
        [this](torch::nn::Module& stage, const model::StageForward& forward, const torch::Tensor& x) {
          torch::Tensor output = forward(x);
          if (first_.empty() && !all_finite(output.detach()))
            first_ = all_finite(x.detach()) ? name_of(model_, stage) : kBefore;
          return output;
        });
  }
  ~StageWatch() {
    if (watches_) model_.set_stage_runner({});
  }
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;

  /// The first stage whose output is not finite although its input is; "" for none or when it was before all stages.
  std::string first() const { return first_ == kBefore ? "" : first_; }
  void forget() { first_.clear(); }

 private:
  static constexpr const char* kBefore = "(before)";
  model::ImageModel& model_;
  const bool watches_;
  std::string first_;
};

std::string first_not_finite(const model::ImageModel& model) {
  for (const model::NamedTensor& entry : model::state_of(model)) {
    if (entry.tensor.is_floating_point() && !all_finite(entry.tensor.detach())) return entry.name;
  }
  return "";
}

/// Medians of what came before update number `i` of a list.
struct Usual {
  double loss = 0, gradient_norm = 0;
  bool is_known = false;
};
Usual usual_before(const std::vector<WatchedUpdate>& updates, size_t i) {
  std::vector<double> losses, norms;
  for (size_t k = i > kHistory ? i - kHistory : 0; k < i; ++k) {
    losses.push_back(updates[k].loss);
    norms.push_back(updates[k].gradient_norm);
  }
  return {median_of(losses), median_of(norms), i >= kLeastHistory};
}

bool has_bad_input(const WatchedUpdate& update) {
  return std::any_of(update.samples.begin(), update.samples.end(),
                     [](const SampleRecord& sample) { return !sample.is_finite; });
}

bool rate_jumps(const WatchedUpdate& update) {
  return update.rate_before > 0 && update.learning_rate > kRateJump * update.rate_before;
}

std::string jump_text(const WatchedUpdate& update) {
  return format("the learning rate went from {:.4g} to {:.4g}", update.rate_before, update.learning_rate);
}

/// How far an update stands out from those before it; 0: it does not.
double strangeness(const std::vector<WatchedUpdate>& updates, size_t i) {
  const WatchedUpdate& update = updates[i];
  if (!update.is_finite()) return 1e300;
  const Usual usual = usual_before(updates, i);
  if (!usual.is_known) return 0;
  double most = 0;
  if (usual.loss > 0 && update.loss > kLossSpike * usual.loss) most = update.loss / usual.loss;
  if (usual.gradient_norm > 0 && update.gradient_norm > kGradientSpike * usual.gradient_norm) {
    most = std::max(most, update.gradient_norm / usual.gradient_norm);
  }
  return most;
}

/// Back from an update that stands out to the first of those that do.
size_t begin_of(const std::vector<WatchedUpdate>& updates, size_t at) {
  constexpr size_t kGap = 2;  // quiet updates in between
  if (has_bad_input(updates[at])) return at;
  size_t begin = at;
  for (size_t back = 1; back <= kGap + 1 && back <= begin;) {
    const size_t before = begin - back;
    const bool stands_out = strangeness(updates, before) > 0 || rate_jumps(updates[before]);
    if (stands_out) {
      begin = before;
      back = 1;
    } else {
      ++back;
    }
  }
  return begin;
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
  if (found.size() > kMostSamples) found.resize(kMostSamples);
  return found;
}

/// The layer whose gradient grew most against its own median.
std::string layer_of(const std::vector<WatchedUpdate>& updates, size_t i) {
  const WatchedUpdate& update = updates[i];
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
  if (rate_jumps(update)) return jump_text(update);
  if (i > 0 && rate_jumps(updates[i - 1])) return jump_text(updates[i - 1]) + " an update before";
  if (!update.stage.empty()) return format("the output of {} is not finite: it overflows", update.stage);
  if (!samples.empty()) return "samples cost far more than the others of their update";
  const Usual usual = usual_before(updates, i);
  if (usual.is_known && update.gradient_norm > kGradientSpike * usual.gradient_norm) {
    return format("the gradient norm is {:.4g}, {:.0f} times the usual", update.gradient_norm,
                  update.gradient_norm / std::max(1e-30, usual.gradient_norm));
  }
  return format("the learning rate {:.4g} is too high for this network", update.learning_rate);
}

}  // namespace

bool WatchedUpdate::is_finite() const {
  return std::isfinite(loss) && std::isfinite(gradient_norm) && stage.empty() && tensor.empty();
}

std::vector<WatchedUpdate> watch_updates(Recomputation& part, int64_t last) {
  std::vector<WatchedUpdate> updates;
  StageWatch stages(*part.learner().model, !part.options().model.grad_checkpointing);
  while (part.at().updates < last && (updates.empty() || updates.back().is_finite())) {
    UpdateRecorder record(part.task(), /*keeps_images=*/false);
    const double rate_before = part.at().learning_rate;
    stages.forget();
    part.advance(&record);
    const engine::RunProgress at = part.at();
    WatchedUpdate update;
    update.update = at.updates;
    update.epoch = at.epoch + 1;
    update.learning_rate = at.learning_rate;
    update.rate_before = rate_before;
    update.samples = record.samples();
    if (!update.samples.empty()) {
      update.loss = record.mean_loss();
      update.gradient_norm = record.gradient_norm();
    }
    update.layers = by_layer(record.gradients());
    update.stage = stages.first();
    update.tensor = first_not_finite(*part.learner().model);
    updates.push_back(std::move(update));
  }
  return updates;
}

Blame find_fault(const std::vector<WatchedUpdate>& updates) {
  Blame blame;
  size_t worst = updates.size();
  double most = 0;
  for (size_t i = 0; i < updates.size(); ++i) {
    const double strange = strangeness(updates, i);
    if (strange > most) {
      most = strange;
      worst = i;
    }
  }
  if (worst == updates.size()) return blame;
  const bool diverged = !updates[worst].is_finite();
  blame.kind = diverged ? Blame::Kind::divergence : Blame::Kind::spike;
  if (diverged) blame.not_finite_at = updates[worst].update;
  const size_t begin = begin_of(updates, worst);
  blame.began = updates[begin];
  blame.samples = outliers_of(updates[begin]);
  blame.layer = has_bad_input(updates[begin]) ? "" : layer_of(updates, begin);
  blame.cause = cause_of(updates, begin, blame.samples);
  return blame;
}

}  // namespace stoker::app
