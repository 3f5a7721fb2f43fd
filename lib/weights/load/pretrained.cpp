// SPDX-License-Identifier: Apache-2.0
#include "weights/load/pretrained.h"

#include <c10/core/GradMode.h>

#include "core/error.h"
#include "core/format.h"
#include "weights/file/weight_file.h"
#include "weights/load/fitting.h"
#include "weights/load/tensors.h"
#include "weights/names/name_plan.h"

namespace stoker::weights {
namespace {

using core::format;
using core::printable;
using model::NamedTensor;

std::vector<std::string> names_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : tensors) names.push_back(entry.name);
  return names;
}

constexpr size_t kNamed = 8;

/// The origin of the weights by the file, in words.
std::string origin_text(const WeightFile& file, const NamePlan& plan) {
  std::string text = format("{}, names of {}", file.format, plan.dialect);
  if (!plan.group.empty()) text += ", under " + printable(plan.group);
  if (!plan.prefix.empty()) text += ", without " + plan.prefix;
  return text;
}

[[noreturn]] void refuse_weights(const std::string& path, const std::string& network, const NamePlan& plan,
                                 const WeightFile& file, const std::vector<std::string>& problems) {
  std::string reason = core::list_text(problems, 20);
  for (const OpaqueEntry& entry : file.opaque) {
    if (entry.group == plan.group) {
      reason += format("{}{} comes out of {}, which nothing here builds", reason.empty() ? "" : ", ",
                       printable(entry.name), entry.type);
    }
  }
  std::string hint = "check --model, --num-classes and --in-chans against those of the checkpoint";
  if (2 * plan.matched < plan.sources.size()) {
    std::vector<std::string> names;
    for (const NamePlan::Source& source : plan.sources) names.push_back(printable(file.tensors[source.theirs[0]].name));
    reason = format("{} of its {} tensors have names of {}, as far as libraries are known; it has {}", plan.matched,
                    plan.sources.size(), network, core::list_text(names, 8));
    hint = "train import FILE lists them; --model names the network that they are for";
  }
  throw core::Error(core::ErrorKind::data, format("{}: {}", printable(path), reason), hint);
}

PretrainedReport report_of(const std::string& path, const WeightFile& file, const NamePlan& plan, const Fitted& fitted,
                           size_t copies) {
  PretrainedReport lines;
  lines.push_back(format("{} tensors from {} ({})", fitted.values.size(), printable(path), origin_text(file, plan)));
  if (copies > 1) lines.push_back(format("loaded into {} backbones; what follows them starts fresh", copies));
  if (fitted.rows_kept >= 0) {
    lines.push_back(format("classifier: {} of {} classes are known by name and keep their rows, the others start fresh",
                           fitted.rows_kept, fitted.rows));
  }
  if (!fitted.fresh_asked.empty()) {
    lines.push_back("the classifier starts fresh (--fresh-head): " + core::list_text(fitted.fresh_asked));
  }
  if (!fitted.fresh_shape.empty()) {
    lines.push_back("the classifier has another shape there, so it starts fresh: " +
                    core::list_text(fitted.fresh_shape));
  }
  if (!fitted.fresh_absent.empty()) {
    lines.push_back("the file has no classifier, so it starts fresh: " + core::list_text(fitted.fresh_absent));
  }
  for (const std::string& change : fitted.changed) lines.push_back("changed " + change);
  std::vector<std::string> left_out;
  for (const std::vector<std::string>* part : {&plan.left_out, &fitted.left_out}) {
    for (const std::string& name : *part) left_out.push_back(printable(name));
  }
  if (!file.passed_over.empty()) {
    lines.push_back(
        format("passed over, since nothing in a file is run: {}", core::list_text(file.passed_over, kNamed)));
  }
  if (plan.profiler_counters > 0) {
    lines.push_back(format("left out: {} counters of a profiler (total_ops, total_params)", plan.profiler_counters));
  }
  if (!left_out.empty()) lines.push_back("left out: " + core::list_text(left_out));
  if (!plan.other_groups.empty()) lines.push_back("not read: " + core::list_text(plan.other_groups, 4));
  if (!plan.remark.empty()) lines.push_back(plan.remark);
  return lines;
}

/// The tensors of a part of the network under the names that it has by itself.
std::vector<NamedTensor> targets_of(const Recipient& recipient) { return model::state_of(*recipient.network); }

}  // namespace

PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const std::string& path, const StartOptions& start) {
  return load_pretrained(model, network, backbone, open_weight_file(path), start);
}

PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const WeightFile& file, const StartOptions& start) {
  const std::string& path = file.path();
  const std::vector<GroupedName> given = names_in(file);
  std::vector<Recipient> recipients = {{&model, true}};
  std::string kind = network;
  NamePlan plan = plan_names(network, names_of(model::state_of(model)), given, printable(path));
  const std::vector<model::ImageModel*> backbones = model.backbones();
  if (!backbones.empty() && 2 * plan.matched < model::state_of(model).size()) {
    recipients.clear();
    for (model::ImageModel* part : backbones) recipients.push_back({part, false});
    kind = backbone;
    plan = plan_names(backbone, names_of(targets_of(recipients[0])), given, printable(path));
  }

  if (start.norm_eps > 0) plan.norm_eps = start.norm_eps;
  TensorReader reader(file);
  std::vector<Fitted> fitted;
  for (const Recipient& recipient : recipients) {
    fitted.push_back(fit(recipient, targets_of(recipient), plan, file, reader, {start.fresh_head, start.head_rows}));
    if (!fitted.back().problems.empty()) refuse_weights(path, kind, plan, file, fitted.back().problems);
  }
  const c10::NoGradGuard no_gradients;
  for (Fitted& one : fitted) {
    for (auto& [target, value] : one.values) target.tensor.copy_(value);
  }
  return report_of(path, file, plan, fitted[0], recipients.size());
}

}  // namespace stoker::weights
