// SPDX-License-Identifier: Apache-2.0
#include "weights/load/pretrained.h"

#include <c10/core/GradMode.h>

#include <map>

#include "core/error.h"
#include "core/format.h"
#include "weights/file/weight_file.h"
#include "weights/load/tensors.h"
#include "weights/names/name_plan.h"

namespace stoker::weights {
namespace {

using core::format;
using core::printable;
using model::NamedTensor;

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string shape_text(at::ScalarType type, at::IntArrayRef shape) {
  std::string text = format("{}[", c10::toString(type));
  for (size_t i = 0; i < shape.size(); ++i) text += format("{}{}", i > 0 ? "," : "", shape[i]);
  return text + "]";
}

/// Numbers of one kind become each other; a fraction never becomes a count.
bool convertible(at::ScalarType from, at::ScalarType to) {
  return at::isFloatingType(from) == at::isFloatingType(to) && from != at::kBool;
}

class Loading {
 public:
  Loading(model::ImageModel& model, const std::string& network, const std::string& path)
      : model_(model), path_(path), file_(open_weight_file(path)), reader_(file_) {
    targets_ = model::state_of(model);
    std::vector<std::string> wanted;
    for (const NamedTensor& target : targets_) wanted.push_back(target.name);
    std::vector<GroupedName> given;
    for (const StoredTensor& tensor : file_.tensors) given.push_back({tensor.group, tensor.name});
    plan_ = plan_names(network, wanted, given, printable(path));
    for (const NamePlan::Source& source : plan_.sources) sources_.emplace(source.ours, &source);
  }

  PretrainedReport run() {
    for (const NamedTensor& target : targets_) take(target);
    for (const auto& [name, source] : sources_) {
      if (is_head(name) && !fresh_.empty()) continue;  // of a classifier that is being replaced
      problems_.push_back(printable(name) + " is not of this model");
    }
    if (!problems_.empty()) {
      throw core::Error(core::ErrorKind::data, format("{}: {}", printable(path_), core::list_text(problems_, 20)),
                        "check --model, --num-classes and --in-chans against those of the checkpoint");
    }
    const c10::NoGradGuard no_gradients;
    for (auto& [target, value] : loaded_) target.tensor.copy_(value);
    return report();
  }

 private:
  bool is_head(const std::string& name) const { return begins_with(name, model_.head_prefix()); }

  /// Finds what makes a tensor of the network, and reads it where it fits.
  void take(const NamedTensor& target) {
    const auto found = sources_.find(target.name);
    if (found == sources_.end()) {
      if (is_head(target.name)) {
        fresh_.push_back(target.name);
      } else if (!ends_with(target.name, ".num_batches_tracked")) {  // PyTorch before 0.4.1 had none
        problems_.push_back(target.name + " is missing");
      }
      return;
    }
    const std::vector<size_t> places = found->second->theirs;
    sources_.erase(found);
    const StoredTensor& stored = file_.tensors[places[0]];
    const bool fits = target.tensor.sizes() == at::IntArrayRef(stored.shape) &&
                      convertible(torch_type(stored.type), target.tensor.scalar_type());
    if (fits) {
      loaded_.emplace_back(target, reader_.read(places[0]));
    } else if (is_head(target.name)) {
      fresh_.push_back(target.name);
    } else {
      problems_.push_back(format("{} is {} instead of {}", target.name,
                                 shape_text(torch_type(stored.type), stored.shape),
                                 shape_text(target.tensor.scalar_type(), target.tensor.sizes())));
    }
  }

  PretrainedReport report() const {
    std::string first = format("{} tensors from {}", loaded_.size(), printable(path_));
    if (!fresh_.empty()) {
      first += "; the classifier has another shape there, so it starts fresh: " + core::list_text(fresh_);
    }
    PretrainedReport lines = {first};
    return lines;
  }

  model::ImageModel& model_;
  const std::string& path_;
  WeightFile file_;
  TensorReader reader_;
  std::vector<NamedTensor> targets_;
  NamePlan plan_;
  std::map<std::string, const NamePlan::Source*> sources_;  // not used yet
  std::vector<std::pair<NamedTensor, torch::Tensor>> loaded_;
  std::vector<std::string> fresh_, problems_;
};

}  // namespace

PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& /*backbone*/,
                                 const std::string& path) {
  return Loading(model, network, path).run();
}

}  // namespace stoker::weights
