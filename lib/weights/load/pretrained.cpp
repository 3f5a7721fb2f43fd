// SPDX-License-Identifier: Apache-2.0
#include "weights/load/pretrained.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/format.h"
#include "model/model.h"
#include "weights/file/opaque_tensors.h"
#include "weights/file/weight_file.h"
#include "weights/load/fitting.h"
#include "weights/names/known_weights.h"
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
                                 const WeightFile& file, const Fitted& fitted) {
  std::string reason = core::list_text(fitted.problems, 20);
  std::string hint = "check --model, --width, --num-classes and --in-chans against those of the checkpoint";
  if (path.find("-of-0") != std::string::npos) {
    hint = "the file is one of several: give the index that lies beside them (model.safetensors.index.json)";
  }
  if (!fitted.unread.empty()) {
    reason = opaque_reason(fitted.unread) + (fitted.problems.empty() ? "" : "; " + reason);
    hint = opaque_hint(fitted.unread);
  }
  if (2 * (plan.matched + plan.objects.size()) < plan.sources.size()) {
    std::vector<std::string> names;
    for (const NamePlan::Source& source : plan.sources) names.push_back(printable(file.tensors[source.theirs[0]].name));
    reason = format("{} of its {} tensors have names of {}, of the supported libraries; it has {}", plan.matched,
                    plan.sources.size(), network, core::list_text(names, 8));
    hint = "train import FILE lists them; --model names the network that they are for";
  }
  throw core::Error(core::ErrorKind::data, format("{}: {}", printable(path), reason), hint);
}

PretrainedReport report_of(const std::string& path, const WeightFile& file, const NamePlan& plan, const Fitted& fitted,
                           size_t copies, const StartOptions& start) {
  PretrainedReport lines;
  lines.push_back(format("{} tensors from {} ({})", fitted.values.size(), printable(path), origin_text(file, plan)));
  if (copies > 1)
    lines.push_back(format("loaded into {} backbones; the layers behind them are randomly initialised", copies));
  if (fitted.rows_kept >= 0) {
    lines.push_back(format("classifier: {} of {} classes match by name and keep their weights{}", fitted.rows_kept,
                           fitted.rows, fitted.rows_kept < fitted.rows ? "; the others are randomly initialised" : ""));
  }
  if (fitted.has_unnamed_head && fitted.fresh_shape.empty()) {
    lines.push_back(
        "the classifier is taken over output by output: the file names no classes (--fresh-head starts at random)");
  }
  if (!fitted.fresh_asked.empty()) {
    lines.push_back("the classifier is randomly initialised (--fresh-head): " + core::list_text(fitted.fresh_asked));
  }
  if (!fitted.fresh_classes.empty()) {
    lines.push_back("the classifier is of other classes in the file and is randomly initialised: " +
                    core::list_text(fitted.fresh_classes));
  }
  if (!fitted.fresh_shape.empty()) {
    lines.push_back("the classifier has another shape in the file and is randomly initialised: " +
                    core::list_text(fitted.fresh_shape));
  }
  if (!fitted.fresh_absent.empty()) {
    lines.push_back("the file has no classifier; it is randomly initialised: " + core::list_text(fitted.fresh_absent));
  }
  for (const std::string& change : fitted.changed) lines.push_back("changed " + change);
  std::vector<std::string> left_out;
  for (const std::vector<std::string>* part : {&plan.left_out, &fitted.left_out}) {
    for (const std::string& name : *part) left_out.push_back(printable(name));
  }
  if (!file.passed_over.empty()) {
    lines.push_back(
        format("skipped, since nothing in a file is executed: {}", core::list_text(file.passed_over, kNamed)));
  }
  if (plan.profiler_counters > 0) {
    lines.push_back(format("left out: {} counters of a profiler (total_ops, total_params)", plan.profiler_counters));
  }
  if (!left_out.empty()) lines.push_back("left out: " + core::list_text(left_out));
  if (!plan.other_groups.empty()) lines.push_back("not read: " + core::list_text(plan.other_groups, 4));
  if (!plan.remark.empty() && !start.same_padding) lines.push_back(plan.remark);
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
  const std::vector<ObjectName> objects = objects_in(file);
  std::vector<Recipient> recipients = {{&model, true}};
  std::string kind = network;
  NamePlan plan = plan_names(network, names_of(model::state_of(model)), given, printable(path), objects);
  const std::vector<model::ImageModel*> backbones = model.backbones();
  if (!backbones.empty() && 2 * (plan.matched + plan.objects.size()) < model::state_of(model).size()) {
    recipients.clear();
    for (model::ImageModel* part : backbones) recipients.push_back({part, false});
    kind = backbone;
    plan = plan_names(backbone, names_of(targets_of(recipients[0])), given, printable(path), objects);
  }

  if (start.norm_eps > 0) plan.norm_eps = start.norm_eps;
  TensorReader reader(file);
  std::vector<Fitted> fitted;
  for (const Recipient& recipient : recipients) {
    fitted.push_back(fit(recipient, targets_of(recipient), plan, file, reader,
                         {start.fresh_head, start.head_rows, start.head_classes}));
    if (!fitted.back().is_whole()) refuse_weights(path, kind, plan, file, fitted.back());
  }
  const c10::NoGradGuard no_gradients;
  for (Fitted& one : fitted) {
    for (auto& [target, value] : one.values) target.tensor.copy_(value);
  }
  return report_of(path, file, plan, fitted[0], recipients.size(), start);
}

namespace {

[[noreturn]] void refuse_name(const std::string& name, const std::string& network, const LocalWeights& local,
                              std::vector<std::string> passed_over) {
  for (const std::string& path : local.unfinished) passed_over.push_back(printable(path) + ": an unfinished download");
  const std::string folders = core::list_text(local.folders, local.folders.size());
  const bool is_folder = local.folders.size() == 1 && local.folders[0] == name;
  const bool is_path = ends_as_weights(name) || name.find('/') != std::string::npos;
  const std::vector<std::string> networks = model::model_names();
  const bool is_network = std::find(networks.begin(), networks.end(), network) != networks.end();  // not a file of one
  const std::string theirs = is_folder || !is_network ? "" : network_of_name(name);
  const bool is_of_other = !theirs.empty() && theirs != network;
  std::string message =
      is_folder     ? format("no weights that fit {} in {}", network, printable(name))
      : is_of_other ? format("{}: weights of {}, which do not fit {}", printable(name), theirs, network)
      : is_path     ? format("cannot read {}: No such file or directory", printable(name))
                    : format("no weights of {}{}", printable(name), name == network ? "" : " that fit " + network);
  if (!is_folder) message += format("; looked into {}", folders.empty() ? "no folder: HOME is not set" : folders);
  for (const std::string& file : passed_over) message += "\n  passed over " + file;
  std::string folder = local.folders.empty() ? "" : local.folders[0];
  folder = folder.substr(0, folder.rfind(" (absent)"));
  std::vector<std::string> ways;
  if (!is_folder && !is_of_other) ways = ways_to_fetch(name, network, folder);
  std::string hint =
      "name a file, a folder or a run of train, or another network: --model resnet18; train list weights prints those "
      "that have pretrained weights";
  if (is_folder && passed_over.empty()) {
    hint = format(
        "images to train on are named with --data-dir {} --pretrained; weights by a file, a folder, a run, or as "
        "train list weights prints them",
        core::shell_word(name));
  } else if (is_of_other) {
    const bool has_own = !ways_to_fetch(network, network, "").empty();
    hint = format("--model {} fits them; {}", theirs,
                  has_own ? format("weights of {0}: --init-from {0}", network)
                          : format("without --init-from {} begins with random weights", network));
  } else if (!ways.empty()) {
    hint = format("train downloads nothing by itself. Run {}, then repeat yours (or name a file with --init-from):",
                  ways.size() == 1 ? "this command" : "one of these commands");
    for (const std::string& way : ways) hint += "\n    " + way;
  }
  throw core::Error(core::ErrorKind::no_input, message, hint);
}

bool is_fault_of_file(core::ErrorKind kind) {
  using Kind = core::ErrorKind;
  return kind == Kind::data || kind == Kind::no_input || kind == Kind::permission || kind == Kind::io;
}

}  // namespace

void require_local_weights(const std::string& name, const std::string& network) {
  const LocalWeights local = find_local_weights(name, network);
  if (local.files.empty()) refuse_name(name, network, local, {});
}

LoadedWeights load_by_name(model::ImageModel& model, const std::string& network, const std::string& backbone,
                           const std::string& name, const StartOptions& start) {
  const std::string& kind = model.backbones().empty() ? network : backbone;
  const LocalWeights local = find_local_weights(name, kind);
  LoadedWeights loaded;
  std::vector<std::string> passed_over;
  for (const std::string& path : local.files) {
    try {
      const WeightFile file = open_weight_file(path);
      loaded.file = path;
      loaded.sha256 = file.sha256();
      const std::string mismatch = mismatch_of_name(path, loaded.sha256);
      if (!mismatch.empty()) throw core::Error(core::ErrorKind::data, printable(path) + ": " + mismatch);
      loaded.report = load_pretrained(model, network, backbone, file, start);
    } catch (const core::Error& error) {
      if (!is_fault_of_file(error.kind())) throw;
      passed_over.emplace_back(error.what());
      continue;
    }
    for (const std::string& file : passed_over) loaded.report.push_back("passed over " + file);
    loaded.report.push_back(format("{} is {}: the newest that fits, of {}", printable(name), printable(path),
                                   core::counted(static_cast<int64_t>(local.files.size()), "file")));
    return loaded;
  }
  refuse_name(name, kind, local, std::move(passed_over));
}

namespace {

using core::format;

/// For each family that other libraries have: one network, and a tensor that all of the family have and no other.
struct Family {
  const char *network, *tensor;
};
constexpr Family kFamilies[] = {{"resnet18", "layer1.0.conv1.weight"},
                                {"efficientnet_b0", "features.1.0.block.0.0.weight"},
                                {"mobilenet_v3_small", "features.1.block.0.0.weight"},
                                {"mobilenet_v2", "features.1.conv.0.0.weight"},
                                {"densenet121", "features.denseblock1.denselayer1.norm1.weight"},
                                {"regnet_y_400mf", "trunk_output.block1.block1-0.f.a.0.weight"},
                                {"swin_t", "features.1.0.attn.qkv.weight"},
                                {"convnext_tiny", "features.1.0.layer_scale"},
                                {"vit_s_16", "encoder.pos_embedding"}};

std::vector<std::string> names_of(const model::ImageModel& network) {
  std::vector<std::string> names;
  for (const model::NamedTensor& entry : model::state_of(network)) names.push_back(entry.name);
  return names;
}

NamePlan plan_for(const std::string& network, const std::vector<std::string>& wanted, const WeightFile& file) {
  return plan_names(network, wanted, names_in(file), core::printable(file.path()), objects_in(file));
}

/// The shape of what makes the tensor `ours`; empty where nothing does.
std::vector<int64_t> shape_in(const WeightFile& file, const NamePlan& plan, const std::string& ours) {
  for (const NamePlan::Source& source : plan.sources) {
    if (source.ours == ours) return file.tensors[source.theirs[0]].shape;
  }
  return {};
}

model::ModelSpec spec_of(const model::ImageModel& usual, const std::string& network, const WeightFile& file) {
  model::ModelSpec spec;
  spec.name = network;
  const NamePlan plan = plan_for(network, names_of(usual), file);
  std::vector<int64_t> head = shape_in(file, plan, usual.head_prefix() + "weight");
  if (head.empty()) head = shape_in(file, plan, usual.head_prefix() + "bias");  // beside a weight that is an object
  if (!head.empty()) spec.num_classes = std::max<int64_t>(1, head[0]);
  int64_t patch = 0;
  for (const model::NamedTensor& entry : model::state_of(usual)) {
    if (entry.tensor.dim() != 4) continue;
    const std::vector<int64_t> input = shape_in(file, plan, entry.name);
    if (input.size() == 4) spec.in_chans = std::max<int64_t>(1, input[1]);
    patch = entry.tensor.size(2);
    break;
  }
  const std::vector<int64_t> positions = shape_in(file, plan, "encoder.pos_embedding");
  if (positions.size() == 3 && positions[1] > 1) {
    spec.img_size.height = spec.img_size.width =
        patch * std::max<int64_t>(1, std::lround(std::sqrt(static_cast<double>(positions[1] - 1))));
  }
  // Numbers that a damaged file may have, not those of a network.
  if (spec.num_classes > 1'000'000 || spec.in_chans > 10'000 || spec.img_size.width > 10'000) {
    throw core::Error(core::ErrorKind::data,
                      core::printable(file.path()) + ": its classifier or its input is too large");
  }
  return spec;
}

std::shared_ptr<model::ImageModel> usual_network(const std::string& network) {
  model::ModelSpec spec;
  spec.name = network;
  return model::make_model(spec);
}

/// "resnet": what the networks of a family have in common.
std::string family_of(const std::string& network) {
  if (network.find("resne") != std::string::npos) return "resnet";  // resnext50_32x4d, wide_resnet50_2
  return network.substr(0, network.find_first_of("0123456789_"));
}

}  // namespace

Conversion convert_as_is(const WeightFile& file) {
  NamePlan plan = plan_for("", {}, file);
  std::sort(plan.sources.begin(), plan.sources.end(),
            [](const NamePlan::Source& a, const NamePlan::Source& b) { return a.theirs[0] < b.theirs[0]; });
  TensorReader reader(file);
  Conversion conversion;
  for (const NamePlan::Source& source : plan.sources) {
    conversion.tensors.push_back({source.ours, reader.read(source.theirs[0])});
  }
  std::vector<OpaqueEntry> left_out;
  for (const OpaqueEntry& entry : file.opaque) {
    if (entry.is_tensor) left_out.push_back(entry);
  }
  if (left_out.empty()) return conversion;
  if (conversion.tensors.empty()) {
    throw core::Error(core::ErrorKind::data, core::printable(file.path()) + ": " + opaque_reason(left_out),
                      opaque_hint(left_out));
  }
  conversion.report.push_back("left out: " + opaque_reason(left_out) + "; " + opaque_hint(left_out));
  return conversion;
}

Conversion convert_for(const std::string& network, const WeightFile& file) {
  const std::shared_ptr<model::ImageModel> usual = usual_network(network);
  if (!usual->backbones().empty()) {
    throw core::Error(core::ErrorKind::config, network + " is made of other networks, whose weights are converted",
                      "name the network of its backbones with --model");
  }
  const std::shared_ptr<model::ImageModel> model = model::make_model(spec_of(*usual, network, file));
  Conversion conversion;
  conversion.report = load_pretrained(*model, network, "", file);
  conversion.tensors = model::state_of(*model);
  return conversion;
}

std::vector<std::string> networks_of(const WeightFile& file) {
  std::vector<std::string> found;
  TensorReader reader(file);
  for (const Family& family : kFamilies) {
    if (plan_for(family.network, {family.tensor}, file).matched == 0) continue;
    for (const std::string& network : model::model_names()) {
      if (family_of(network) != family_of(family.network) || network == "resnet9") continue;
      const model::ModelSpec spec = spec_of(*usual_network(network), network, file);
      const auto model = model::make_model(spec);
      const NamePlan plan = plan_for(network, names_of(*model), file);
      const Fitted fitted = fit({model.get(), true}, model::state_of(*model), plan, file, reader);
      if (!fitted.is_whole()) continue;
      const std::string classes =
          fitted.fresh_absent.empty() ? format("{} classes", spec.num_classes) : "no classifier";
      found.push_back(format("{} ({}, {} channels, names of {})", network, classes, spec.in_chans, plan.dialect));
      break;  // no two of a family have the same tensors
    }
  }
  return found;
}

}  // namespace stoker::weights
