// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/held_out.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"

namespace stoker::data {
namespace {

/// Samples of another source, at rising indices.
class SubsetSource : public ForwardingSource {
 public:
  SubsetSource(std::shared_ptr<const Source> whole, std::vector<uint32_t> indices)
      : ForwardingSource(std::move(whole)), indices_(std::move(indices)) {
    core::Hasher hasher;
    hasher.add("subset of " + behind().fingerprint());
    hasher.add(indices_.data(), indices_.size() * sizeof(uint32_t));
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  /// The list of the whole is held only once, by both parts of a split: each has its share. A cache serves both.
  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.list_bytes = static_cast<int64_t>(indices_.size() * sizeof(uint32_t)) +
                        (size() == 0 ? 0 : memory.list_bytes * size() / behind().size());
    return memory;
  }

 private:
  int64_t index_behind(int64_t index) const override { return indices_[static_cast<size_t>(index)]; }
  std::vector<int64_t> run_ends() const override {
    std::vector<int64_t> ends = ForwardingSource::run_ends();
    for (int64_t& end : ends) end = std::lower_bound(indices_.begin(), indices_.end(), end) - indices_.begin();
    return ends;
  }

  std::vector<uint32_t> indices_;
};

}  // namespace

std::optional<Fold> fold_of(const config::DataOptions& options) {
  constexpr int64_t kMostFolds = 1000;
  if (!options.val_split || options.val_split->rfind("fold:", 0) != 0) return std::nullopt;
  int number = 0, of = 0;
  char rest = 0;
  const int read = std::sscanf(options.val_split->c_str(), "fold:%9d/%9d%c", &number, &of, &rest);
  if (read == 2 && number >= 1 && of >= 2 && number <= of && of <= kMostFolds) return Fold{number, of};
  throw core::Error(core::ErrorKind::config,
                    core::format("--val-split {} is not a valid fold", core::printable(*options.val_split)),
                    "fold:2/5 validates on the second of five parts of the training split");
}

bool holds_out(const config::DataOptions& options) {
  return options.val_split ? fold_of(options).has_value() : options.val_fraction > 0;
}

bool has_no_val_split(const config::DataOptions& options) {
  return holds_out(options) || options.val_split == config::kNoValidation;
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction) {
  std::vector<uint32_t> kept, held;
  for (int64_t i = 0; i < whole->size(); ++i) {
    const double position = static_cast<double>(core::hash64(whole->relative_name(i)) >> 11) * 0x1.0p-53;
    (position < fraction ? held : kept).push_back(static_cast<uint32_t>(i));
  }
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

namespace {

int64_t label_at(const Source& source, int64_t index) { return source.label(index); }

/// The position of a sample's class; 0 where there are none.
int64_t class_at(const Source& source, int64_t index) {
  return source.num_targets() > 0 ? 0 : std::max<int64_t>(0, source.label(index));
}

/// The hash of a sample's name, and its index.
using SampleOfHash = std::pair<uint64_t, uint32_t>;

/// Samples of each class, those with the lowest hashes of `prefix` and their names first.
std::map<int64_t, std::vector<SampleOfHash>> classes_by_hash(const Source& whole,
                                                             int64_t (*class_of)(const Source&, int64_t),
                                                             const std::string& prefix = "") {
  std::map<int64_t, std::vector<SampleOfHash>> classes;
  for (int64_t i = 0; i < whole.size(); ++i) {
    classes[class_of(whole, i)].emplace_back(core::hash64(prefix + whole.relative_name(i)), static_cast<uint32_t>(i));
  }
  for (auto& entry : classes) std::sort(entry.second.begin(), entry.second.end());
  return classes;
}

/// The end of the first `count` samples, moved so that a file that is listed twice is on one side; some are left.
int64_t end_of_names(const std::vector<SampleOfHash>& samples, int64_t count) {
  const auto goes_on = [&](int64_t at) {
    return at > 0 && at < static_cast<int64_t>(samples.size()) &&
           samples[static_cast<size_t>(at)].first == samples[static_cast<size_t>(at - 1)].first;
  };
  int64_t end = count;
  while (goes_on(end)) ++end;
  if (end < static_cast<int64_t>(samples.size())) return end;
  for (end = count; goes_on(end);) --end;
  return end;
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> parts_of(
    const std::shared_ptr<const Source>& whole, std::vector<uint32_t> kept, std::vector<uint32_t> held) {
  std::sort(kept.begin(), kept.end());
  std::sort(held.begin(), held.end());
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

}  // namespace

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_stratified(
    const std::shared_ptr<const Source>& whole, double fraction) {
  const auto classes = classes_by_hash(*whole, label_at);
  if (classes.size() < 2) return hold_out(whole, fraction);
  std::vector<uint32_t> kept, held;
  for (const auto& [label, samples] : classes) {
    const auto count = static_cast<int64_t>(samples.size());
    const int64_t wanted = std::llround(fraction * static_cast<double>(count));
    const int64_t taken = count < 2 ? 0 : std::clamp<int64_t>(wanted, 1, count - 1);
    const int64_t end = end_of_names(samples, taken);
    for (int64_t i = 0; i < count; ++i) (i < end ? held : kept).push_back(samples[static_cast<size_t>(i)].second);
  }
  return parts_of(whole, std::move(kept), std::move(held));
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold(
    const std::shared_ptr<const Source>& whole, int64_t fold, int64_t count) {
  std::vector<uint32_t> kept, held;
  int64_t next = -1;  // of all classes, so that the folds are equally large, too
  for (const auto& [label, samples] : classes_by_hash(*whole, label_at)) {
    const SampleOfHash* before = nullptr;
    for (const SampleOfHash& sample : samples) {
      next += before == nullptr || before->first != sample.first;  // a file that is listed twice is in one fold
      (next % count == fold ? held : kept).push_back(sample.second);
      before = &sample;
    }
  }
  return parts_of(whole, std::move(kept), std::move(held));
}

namespace {

/// Samples that stay together, by the position of each class that they have; the last position stands for all samples.
struct SampleGroup {
  uint64_t hash = 0;
  std::vector<uint32_t> samples;
  std::map<size_t, double> counts;
};

/// Which groups are held out, and how many samples of each class.
class GroupedSplit {
 public:
  GroupedSplit(std::vector<SampleGroup> groups, size_t classes, double fraction)
      : groups_(std::move(groups)),
        fraction_(fraction),
        is_held_(groups_.size()),
        all_(classes + 1),
        held_(classes + 1),
        groups_with_(classes + 1) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const auto& [k, count] : groups_[g].counts) {
        all_[k] += count;
        groups_with_[k].push_back(g);
      }
    }
  }

  void choose() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (cost_of(g) < 0 && leaves_some(g)) hold(g);
    }
    for (size_t k = 0; k < held_.size(); ++k) {
      if (held_[k] == 0 && groups_with_[k].size() > 1) hold_cheapest(k, /*leaves_some_of_all=*/true);
    }
    if (held_.back() == 0 && groups_.size() > 1) hold_cheapest(held_.size() - 1, /*leaves_some_of_all=*/false);
  }

  /// (kept, held out)
  std::pair<std::vector<uint32_t>, std::vector<uint32_t>> sides() const {
    std::vector<uint32_t> kept, held;
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<uint32_t>& side = is_held_[g] ? held : kept;
      side.insert(side.end(), groups_[g].samples.begin(), groups_[g].samples.end());
    }
    return {std::move(kept), std::move(held)};
  }

 private:
  /// The amount that holding a group out adds to the squared distances of classes from the shares that are wanted.
  double cost_of(size_t g) const {
    double cost = 0;
    for (const auto& [k, count] : groups_[g].counts) {
      if (k + 1 == all_.size()) continue;  // or one class would stand in for another
      const double lacking = fraction_ * all_[k] - held_[k];
      cost += count * (count - 2 * lacking) / all_[k];
    }
    return cost;
  }

  bool leaves_some(size_t g) const {
    return std::all_of(groups_[g].counts.begin(), groups_[g].counts.end(),
                       [&](const auto& of) { return all_[of.first] - held_[of.first] > of.second; });
  }

  void hold(size_t g) {
    is_held_[g] = true;
    for (const auto& [k, count] : groups_[g].counts) held_[k] += count;
  }

  void hold_cheapest(size_t k, bool leaves_some_of_all) {
    size_t best = groups_.size();
    for (const size_t g : groups_with_[k]) {
      if (is_held_[g] || (leaves_some_of_all && !leaves_some(g))) continue;
      if (best == groups_.size() || cost_of(g) < cost_of(best)) best = g;
    }
    if (best < groups_.size()) hold(best);
  }

  const std::vector<SampleGroup> groups_;
  const double fraction_;
  std::vector<bool> is_held_;
  std::vector<double> all_, held_;
  std::vector<std::vector<size_t>> groups_with_;  ///< by class
};

}  // namespace

namespace {

size_t classes_of(const Source& whole) { return static_cast<size_t>(std::max<int64_t>(1, whole.num_classes())); }

/// By hash.
std::vector<SampleGroup> groups_in_order(const Source& whole, const std::vector<std::string>& groups) {
  const size_t classes = classes_of(whole);
  std::map<std::pair<bool, std::string>, SampleGroup> by_name;  // those without a name by that of the sample
  for (int64_t i = 0; i < whole.size(); ++i) {
    const std::string& name = groups[static_cast<size_t>(i)];
    const bool is_alone = name.empty();
    SampleGroup& group = by_name[{is_alone, is_alone ? whole.relative_name(i) : name}];
    group.samples.push_back(static_cast<uint32_t>(i));
    ++group.counts[static_cast<size_t>(class_at(whole, i))];
    ++group.counts[classes];
  }
  std::vector<SampleGroup> in_order;
  for (auto& [name, group] : by_name) {
    group.hash = core::hash64(name.second);
    in_order.push_back(std::move(group));
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const SampleGroup& a, const SampleGroup& b) { return a.hash < b.hash; });
  return in_order;
}

}  // namespace

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_fold_of_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, int64_t fold, int64_t count) {
  const size_t classes = classes_of(*whole);
  std::vector<SampleGroup> in_order = groups_in_order(*whole, groups);
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const SampleGroup& a, const SampleGroup& b) { return a.samples.size() > b.samples.size(); });
  std::vector<double> all(classes + 1);
  for (const SampleGroup& group : in_order) {
    for (const auto& [k, samples] : group.counts) all[k] += samples;
  }
  std::vector<std::vector<double>> folds(static_cast<size_t>(count), std::vector<double>(classes + 1));
  std::vector<uint32_t> kept, held;
  for (const SampleGroup& group : in_order) {
    // The squared distances of the folds' shares of each class from equal ones grow least; else the smallest fold.
    const auto cost_of = [&](const std::vector<double>& of) {
      double cost = 0;
      for (const auto& [k, samples] : group.counts) {
        if (k < classes) cost += samples * (samples + 2 * of[k]) / (all[k] * all[k]);
      }
      return std::pair(cost, of[classes]);
    };
    const auto best = std::min_element(folds.begin(), folds.end(),
                                       [&](const auto& a, const auto& b) { return cost_of(a) < cost_of(b); });
    for (const auto& [k, samples] : group.counts) (*best)[k] += samples;
    std::vector<uint32_t>& side = best - folds.begin() == fold ? held : kept;
    side.insert(side.end(), group.samples.begin(), group.samples.end());
  }
  return parts_of(whole, std::move(kept), std::move(held));
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_groups(
    const std::shared_ptr<const Source>& whole, const std::vector<std::string>& groups, double fraction) {
  GroupedSplit split(groups_in_order(*whole, groups), classes_of(*whole), fraction);
  split.choose();
  auto [kept, held] = split.sides();
  return parts_of(whole, std::move(kept), std::move(held));
}

std::shared_ptr<const Source> part_of_each_class(const std::shared_ptr<const Source>& whole, double fraction) {
  if (fraction == 1) return whole;
  std::vector<uint32_t> kept;
  for (const auto& [label, samples] :
       classes_by_hash(*whole, class_at, "fraction ")) {  // another hash than the split's
    const auto count = static_cast<int64_t>(samples.size());
    const double wanted = fraction < 1 ? std::round(fraction * static_cast<double>(count)) : fraction;
    const auto taken = static_cast<int64_t>(std::clamp(wanted, 1.0, static_cast<double>(count)));
    for (int64_t i = 0; i < taken; ++i) kept.push_back(samples[static_cast<size_t>(i)].second);
  }
  if (static_cast<int64_t>(kept.size()) == whole->size()) return whole;
  std::sort(kept.begin(), kept.end());
  return std::make_shared<SubsetSource>(whole, std::move(kept));
}

std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most) {
  if (whole->size() <= most) return whole;
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < most; ++i) kept.push_back(static_cast<uint32_t>(i * whole->size() / most));
  return std::make_shared<SubsetSource>(whole, std::move(kept));
}

}  // namespace stoker::data
