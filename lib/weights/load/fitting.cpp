// SPDX-License-Identifier: Apache-2.0
#include "weights/load/fitting.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/format.h"
#include "model/low_rank.h"

namespace stoker::weights {
namespace {

/// 0 where `count` is not a square.
int64_t side_of(int64_t count) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(count))));
  return side * side == count ? side : 0;
}

std::vector<int64_t> without_ones(at::IntArrayRef shape) {
  std::vector<int64_t> sides;
  for (const int64_t side : shape) {
    if (side != 1) sides.push_back(side);
  }
  return sides;
}

}  // namespace

bool equal_without_ones(at::IntArrayRef one, at::IntArrayRef other) { return without_ones(one) == without_ones(other); }

torch::Tensor adapt_input_channels(const torch::Tensor& weight, int64_t channels) {
  const int64_t given = weight.size(1);
  const torch::Tensor exact = weight.to(at::kFloat);
  if (channels == 1) return exact.sum(1, /*keepdim=*/true);
  if (given != 1 && given != 3) return {};
  const int64_t times = (channels + given - 1) / given;
  return exact.repeat({1, times, 1, 1}).slice(1, 0, channels) *
         (static_cast<double>(given) / static_cast<double>(channels));
}

torch::Tensor resample_positions(const torch::Tensor& positions, int64_t rows, int64_t columns) {
  const int64_t from = side_of(positions.size(1) - 1), width = positions.size(2);
  if (from == 0) return {};
  const torch::Tensor exact = positions.to(at::kFloat);
  const torch::Tensor grid = exact.slice(1, 1).reshape({1, from, from, width}).permute({0, 3, 1, 2});  // [1, E, n, n]
  const torch::Tensor resampled = at::_upsample_bicubic2d_aa(grid, {rows, columns}, /*align_corners=*/false);
  return at::cat({exact.slice(1, 0, 1), resampled.permute({0, 2, 3, 1}).reshape({1, rows * columns, width})}, 1);
}

torch::Tensor rescale_norm(const torch::Tensor& weight, const torch::Tensor& variance, double theirs, double ours) {
  const torch::Tensor exact = variance.to(at::kDouble);
  return (weight.to(at::kDouble) * ((exact + ours) / (exact + theirs)).sqrt()).to(at::kFloat);
}

namespace {

using core::format;
using core::printable;
using model::NamedTensor;

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

std::string kind_text(at::ScalarType type, at::IntArrayRef shape) {
  std::string text = format("{}[", c10::toString(type));
  for (size_t i = 0; i < shape.size(); ++i) text += format("{}{}", i > 0 ? "," : "", shape[i]);
  return text + "]";
}

/// Fractions become fractions and counts counts, of any width.
bool convertible(at::ScalarType from, at::ScalarType to) {
  return at::isFloatingType(from) == at::isFloatingType(to) && from != at::kBool;
}

/// Counters, which PyTorch before 0.4.1 did not have, and what a Swin computes from its shape.
bool may_be_absent(const std::string& name) {
  return core::ends_with(name, ".num_batches_tracked") || core::ends_with(name, ".relative_position_index") ||
         core::ends_with(name, ".relative_coords_table");
}

class Fitting {
 public:
  Fitting(const Recipient& recipient, const std::vector<NamedTensor>& targets, const NamePlan& plan,
          const WeightFile& file, TensorReader& reader, const HeadChoice& head)
      : recipient_(recipient), targets_(targets), plan_(plan), file_(file), reader_(reader), head_(head) {
    for (const NamePlan::Source& source : plan.sources) sources_.emplace(source.ours, &source);
    for (const NamePlan::Object& object : plan.objects) objects_.emplace(object.ours, object.place);
    const auto first = std::find_if(targets.begin(), targets.end(),
                                    [](const NamedTensor& target) { return target.tensor.dim() == 4; });
    if (first != targets.end()) input_ = first->name;
  }

  Fitted run() {
    for (const NamedTensor& target : targets_) take(target);
    for (const NamedTensor& target : targets_) take_object(target.name);
    sort_out_the_rest();
    if (plan_.norm_eps > 0) rescale_norms();
    return std::move(fitted_);
  }

 private:
  bool is_head(const std::string& name) const { return begins_with(name, recipient_.network->head_prefix()); }
  /// All that follows the feature map, which a backbone does not have.
  bool is_classifier(const std::string& name) const {
    const std::string head = recipient_.network->head_prefix();
    return begins_with(name, head.substr(0, head.find('.') + 1));
  }

  void take(const NamedTensor& target) {
    const auto found = sources_.find(target.name);
    if (found == sources_.end()) {
      if (objects_.count(target.name) > 0) return;  // see take_object()
      if (is_head(target.name)) {
        fitted_.fresh_absent.push_back(target.name);
      } else if (!may_be_absent(target.name)) {
        fitted_.problems.push_back(target.name + " is missing");
      }
      return;
    }
    const NamePlan::Source& source = *found->second;
    sources_.erase(found);
    const StoredTensor& first = file_.tensors[source.theirs[0]];
    const std::vector<int64_t> shape = shape_of(source);
    if (is_head(target.name) && head_.is_fresh) {
      fitted_.fresh_asked.push_back(target.name);
      return;
    }
    if (is_head(target.name) && keep_rows(target, source, shape)) return;
    if (convertible(torch_type(first.type), target.tensor.scalar_type()) && accept(target, source, shape)) {
      fitted_.has_unnamed_head |= is_head(target.name) && head_.classes == 0;
      return;
    }
    if (is_head(target.name)) {
      fitted_.fresh_shape.push_back(target.name);
    } else {
      fitted_.problems.push_back(format("{} is {} instead of {}", target.name, kind_text(torch_type(first.type), shape),
                                        kind_text(target.tensor.scalar_type(), target.tensor.sizes())));
    }
  }

  /// A tensor of a classifier that starts at random anyway is not needed: after all others, which show whether it does.
  void take_object(const std::string& name) {
    const auto object = objects_.find(name);
    if (object == objects_.end()) return;
    if (is_head(name)) {
      for (auto* const fresh : {&fitted_.fresh_shape, &fitted_.fresh_classes, &fitted_.fresh_absent}) {
        if (!fresh->empty()) return fresh->push_back(name);
      }
      if (head_.is_fresh) return fitted_.fresh_asked.push_back(name);
    }
    if (!may_be_absent(name)) fitted_.unread.push_back(file_.opaque[object->second]);
  }

  /// The shape of the parts below one another; that of the first part where they do not fit.
  std::vector<int64_t> shape_of(const NamePlan::Source& source) const {
    std::vector<int64_t> shape = file_.tensors[source.theirs[0]].shape;
    for (size_t i = 1; i < source.theirs.size(); ++i) {
      const std::vector<int64_t>& part = file_.tensors[source.theirs[i]].shape;
      if (shape.empty() || part.size() != shape.size() ||
          !std::equal(part.begin() + 1, part.end(), shape.begin() + 1)) {
        return file_.tensors[source.theirs[0]].shape;
      }
      shape[0] += part[0];
    }
    return shape;
  }

  torch::Tensor read(const NamePlan::Source& source) {
    if (source.theirs.size() == 1) return with_low_rank(source.ours, reader_.read(source.theirs[0]));
    std::vector<torch::Tensor> parts;
    for (const size_t place : source.theirs) parts.push_back(reader_.read(place));
    return at::cat(parts, 0);
  }

  /// Merged, where a run with --lora wrote them.
  torch::Tensor with_low_rank(const std::string& name, const torch::Tensor& weight) {
    if (!core::ends_with(name, "weight")) return weight;
    const std::string prefix = name.substr(0, name.size() - std::string("weight").size());
    const auto first = sources_.find(prefix + "lora_A"), second = sources_.find(prefix + "lora_B");
    if (first == sources_.end() || second == sources_.end()) return weight;
    const auto entry = [&](const NamePlan::Source& of) { return NamedTensor{of.ours, reader_.read(of.theirs[0])}; };
    const std::vector<NamedTensor> whole =
        model::merged({{name, weight}, entry(*first->second), entry(*second->second)});
    if (whole.size() != 1) return weight;
    sources_.erase(first);
    sources_.erase(second);
    return whole[0].tensor;
  }

  /// Rows of classes that the file has by name; the others keep what the network has. Outputs that are not one for each
  /// class (one score for two classes) are of no use to other classes. False where names are the same, or unknown.
  bool keep_rows(const NamedTensor& target, const NamePlan::Source& source, const std::vector<int64_t>& shape) {
    const at::IntArrayRef wanted = target.tensor.sizes();
    if (head_.rows.empty() || wanted.empty() || shape.size() != wanted.size() ||
        !std::equal(shape.begin() + 1, shape.end(), wanted.begin() + 1)) {
      return false;
    }
    const auto count = static_cast<int64_t>(head_.rows.size());
    const auto from = [&](int64_t row) {
      const int64_t there = head_.rows[static_cast<size_t>(row)];
      return there < shape[0] ? there : -1;  // an output that the file has not
    };
    bool is_same = true, has_any = false;
    for (int64_t row = 0; row < count; ++row) {
      is_same = is_same && head_.rows[static_cast<size_t>(row)] == row;
      has_any = has_any || from(row) >= 0;
    }
    if (is_same && shape[0] == wanted[0]) return false;  // whatever the outputs stand for
    const bool has_row_of_each = wanted[0] == count && shape[0] >= head_.classes;
    if (!has_row_of_each || !has_any) {
      fitted_.fresh_classes.push_back(target.name);
      return true;
    }
    const torch::Tensor theirs = read(source);
    torch::Tensor value = target.tensor.detach().to(at::kCPU).clone();
    fitted_.rows_kept = 0;
    fitted_.rows = wanted[0];
    for (int64_t row = 0; row < wanted[0]; ++row) {
      if (from(row) < 0) continue;
      value.select(0, row).copy_(theirs.select(0, from(row)));
      ++fitted_.rows_kept;
    }
    keep(target, value);
    return true;
  }

  void keep(const NamedTensor& target, torch::Tensor value) { fitted_.values.emplace_back(target, std::move(value)); }

  /// Whether what the file has becomes the target; shapes are compared before anything is read.
  bool accept(const NamedTensor& target, const NamePlan::Source& source, const std::vector<int64_t>& shape) {
    const at::IntArrayRef given(shape), wanted = target.tensor.sizes();
    if (given == wanted) {
      keep(target, read(source));
      return true;
    }
    if (equal_without_ones(given, wanted)) {
      keep(target, read(source).reshape(wanted));
      return true;
    }
    if (target.name == input_ && given.size() == 4 && given[0] == wanted[0] && given.slice(2) == wanted.slice(2)) {
      return keep_changed(
          target, adapt_input_channels(read(source), wanted[1]),
          wanted[1] == 1
              ? format("its {} input channels summed to 1: a gray picture in all of them gives the same where each was "
                       "normalised by the mean and std of this run",
                       given[1])
              : format("its {} input channels repeated to {}, scaled by {:g}", given[1], wanted[1],
                       static_cast<double>(given[1]) / static_cast<double>(wanted[1])));
    }
    if (core::ends_with(target.name, "pos_embedding") && given.size() == 3 && given[0] == 1 && given[2] == wanted[2]) {
      const auto [rows, columns] = recipient_.network->position_grid();
      return keep_changed(target, resample_positions(read(source), rows, columns),
                          format("resampled from {} to {} positions, bicubic", given[1] - 1, wanted[1] - 1));
    }
    return false;
  }

  bool keep_changed(const NamedTensor& target, const torch::Tensor& value, const std::string& how) {
    if (!value.defined()) return false;
    fitted_.changed.push_back(target.name + ": " + how);
    keep(target, value);
    return true;
  }

  /// The tensors of the file that no tensor of the network uses.
  void sort_out_the_rest() {
    const bool fresh = !fitted_.fresh_shape.empty() || !fitted_.fresh_absent.empty() || !fitted_.fresh_asked.empty() ||
                       !fitted_.fresh_classes.empty();
    for (const auto& [name, source] : sources_) {
      if (is_head(name) && fresh) continue;  // of a classifier that is being replaced
      if (!recipient_.has_classifier && is_classifier(name)) {
        fitted_.left_out.push_back(file_.tensors[source->theirs[0]].name);
      } else {
        fitted_.problems.push_back(printable(name) + " is not of this model");
      }
    }
  }

  /// Makes batch norms with our epsilon give the results that they gave with theirs.
  void rescale_norms() {
    size_t count = 0;
    double ours = 0;
    for (const auto& module : recipient_.network->named_modules("", /*include_self=*/false)) {
      const auto* norm = module.value()->as<torch::nn::BatchNorm2d>();
      if (norm == nullptr || norm->options.eps() == plan_.norm_eps) continue;
      torch::Tensor* weight = value_of(module.key() + ".weight");
      const torch::Tensor* variance = value_of(module.key() + ".running_var");
      if (weight == nullptr || variance == nullptr) continue;
      ours = norm->options.eps();
      *weight = rescale_norm(*weight, *variance, plan_.norm_eps, ours);
      ++count;
    }
    if (count == 0) return;
    fitted_.changed.push_back(format(
        "the weights of {} batch norms, whose epsilon is {:g} there and {:g} here, so that norms with that epsilon "
        "give the same results",
        count, plan_.norm_eps, ours));
  }

  torch::Tensor* value_of(const std::string& name) {
    for (auto& [target, value] : fitted_.values) {
      if (target.name == name) return &value;
    }
    return nullptr;
  }

  const Recipient& recipient_;
  const std::vector<NamedTensor>& targets_;
  const NamePlan& plan_;
  const WeightFile& file_;
  TensorReader& reader_;
  const HeadChoice& head_;
  std::string input_;                                       // name of the first convolution
  std::map<std::string, const NamePlan::Source*> sources_;  // that nothing was made of yet
  std::map<std::string, size_t> objects_;                   // places in WeightFile::opaque by our names
  Fitted fitted_;
};

}  // namespace

std::vector<GroupedName> names_in(const WeightFile& file) {
  std::vector<GroupedName> names;
  for (const StoredTensor& tensor : file.tensors) names.push_back({tensor.group, tensor.name});
  return names;
}

std::vector<ObjectName> objects_in(const WeightFile& file) {
  std::vector<ObjectName> names;
  for (const OpaqueEntry& entry : file.opaque) names.push_back({entry.group, entry.name, entry.is_tensor});
  return names;
}

Fitted fit(const Recipient& recipient, const std::vector<NamedTensor>& targets, const NamePlan& plan,
           const WeightFile& file, TensorReader& reader, const HeadChoice& head) {
  return Fitting(recipient, targets, plan, file, reader, head).run();
}

at::ScalarType torch_type(NumberType type) {
  constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                       at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};
  return kTypes[static_cast<size_t>(type)];
}

torch::Tensor TensorReader::read(size_t place) {
  const StoredTensor& tensor = file_.tensors.at(place);
  torch::Tensor& storage = storages_[tensor.storage];
  if (!storage.defined()) {
    storage = at::empty({static_cast<int64_t>(file_.storages.at(tensor.storage).bytes)}, at::kByte);
    file_.read_storage(tensor.storage, storage.data_ptr());
  }
  return storage.view(torch_type(tensor.type))
      .as_strided(tensor.shape, tensor.strides, static_cast<int64_t>(tensor.offset));
}

}  // namespace stoker::weights
