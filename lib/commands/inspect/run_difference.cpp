// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/run_difference.h"

#include <algorithm>
#include <map>
#include <set>

#include "commands/inspect/update_record.h"
#include "core/format.h"
#include "engine/checkpoint/run_identity.h"
#include "engine/checkpoint/trained_state.h"
#include "engine/digest/tensor_digest.h"

namespace stoker::train {
namespace {

using core::format;

constexpr size_t kMaxNamed = 5;

/// The recorded state after each update: digests of images and weights.
std::map<int64_t, UpdateDigests> points_of(const RecordedRun& run) {
  std::map<int64_t, UpdateDigests> points = run.digests;
  for (const auto& [updates, path] : run.checkpoints) {
    const std::string weights = engine::read_lineage(path).weights;
    if (!weights.empty() && points.count(updates) == 0) points[updates].weights = weights;
  }
  return points;
}

std::vector<DifferentText> compare_texts(const core::Json& a, const core::Json& b) {
  std::set<std::string> names;
  for (const core::Json* const object : {&a, &b}) {
    if (!object->is_object()) continue;
    for (const auto& item : object->items()) names.insert(item.key());
  }
  const auto text = [](const core::Json& object, const std::string& name) {
    if (!object.is_object() || !object.contains(name)) return std::string();
    const core::Json& value = object.at(name);
    return value.is_string() ? value.get<std::string>() : core::json_line(value);
  };
  std::vector<DifferentText> different;
  for (const std::string& name : names) {
    if (text(a, name) != text(b, name)) different.push_back({name, text(a, name), text(b, name)});
  }
  return different;
}

/// One update as it comes out when it is recomputed.
struct UpdateTrace {
  int64_t epoch = 0;  ///< from 1
  double learning_rate = 0;
  std::vector<SampleRecord> samples;
  std::vector<std::pair<std::string, std::string>> tensors;  ///< names and digests, after it
};

struct RunTrace {
  std::map<int64_t, UpdateTrace> updates;  ///< from the beginning of the window, whose state alone is known, to its end
  std::shared_ptr<const data::Source> source;
  DivergencePoint broken;  ///< the first record that is not what is computed; none: `what` is empty
};

std::vector<std::pair<std::string, std::string>> digests_of(engine::Learner& learner) {
  std::vector<std::pair<std::string, std::string>> digests;
  for (const model::NamedTensor& entry : engine::trained_state(learner)) {
    digests.emplace_back(entry.name, engine::tensor_digest(entry.tensor));
  }
  return digests;
}

/// Sees what the record has, and the digest of all images.
class Tracer : public engine::StepWatcher {
 public:
  explicit Tracer(const engine::Task& task) : record(task, /*keeps_images=*/false) {}
  void on_batch(const engine::SeenBatch& seen) override {
    images.on_batch(seen);
    record.on_batch(seen);
  }
  UpdateRecorder record;
  engine::ImageDigest images;
};

/// Records of the update that was just computed that differ from the computed values.
DivergencePoint broken_record(const RecordedRun& run, Recomputation& part, const std::string& images) {
  const engine::RunProgress at = part.at();
  DivergencePoint broken{at.updates, at.epoch + 1, {}, ""};
  const auto recorded = run.digests.find(at.updates);
  const bool has_record = recorded != run.digests.end();
  if (has_record && recorded->second.images != images) broken.what.push_back(run.path + " recorded other images");
  const auto checkpoint = run.checkpoints.find(at.updates);
  if (checkpoint != run.checkpoints.end()) {
    const engine::StateDifference state =
        engine::compare_states(engine::trained_state(part.learner()), engine::read_trained_state(checkpoint->second));
    if (!state.is_equal()) {
      broken.tensor = state.different.empty() ? state.only_one.front() : state.different.front();
      broken.what.push_back(format("{} is not what the run computes: {} differs by up to {:.3g}", checkpoint->second,
                                   broken.tensor, state.largest));
    }
  }
  if (broken.what.empty() && has_record &&
      recorded->second.weights != engine::tensor_digest(model::state_of(*part.learner().model))) {
    broken.what.push_back(run.path + " recorded other weights than its options and data give");
  }
  return broken;
}

RunTrace trace_run(const config::CommandLine& line, const RecordedRun& run, const Window& window) {
  RunTrace trace;
  Recomputation part(line, run, run.checkpoint_before(window.equal), window.different);
  trace.source = part.shared_source();
  part.advance_to(window.equal);
  trace.updates[window.equal].tensors = digests_of(part.learner());
  while (part.at().updates < window.different && trace.broken.what.empty()) {
    Tracer tracer(part.task());
    part.advance(&tracer);
    const engine::RunProgress at = part.at();
    trace.updates[at.updates] = {at.epoch + 1, at.learning_rate, tracer.record.samples(), digests_of(part.learner())};
    trace.broken = broken_record(run, part, tracer.images.hex());
  }
  return trace;
}

std::string name_in(const RunTrace& run, const SampleRecord& sample) {
  return core::printable(run.source->relative_name(sample.sample));
}

void compare_samples(const RunTrace& run_a, const RunTrace& run_b, const UpdateTrace& a, const UpdateTrace& b,
                     std::vector<std::string>& what) {
  std::vector<std::string> images, labels, others;
  for (size_t i = 0; i < std::min(a.samples.size(), b.samples.size()); ++i) {
    const SampleRecord &x = a.samples[i], &y = b.samples[i];
    const std::string name = name_in(run_a, x), other = name_in(run_b, y);
    if (name != other) {
      others.push_back(name + " / " + other);
      continue;
    }
    if (x.image != y.image) images.push_back(name);
    if (x.label != y.label || x.targets != y.targets) {
      labels.push_back(format("{}: {} / {}", name, truth_text(x, *run_a.source), truth_text(y, *run_b.source)));
    }
  }
  if (a.samples.size() != b.samples.size()) {
    what.push_back(format("images: {} / {} of them", a.samples.size(), b.samples.size()));
  }
  const auto add = [&](const char* kind, const std::vector<std::string>& list) {
    if (list.empty()) return;
    what.push_back(
        format("{} {} of {} differ: {}", list.size(), kind, a.samples.size(), core::list_text(list, kMaxNamed)));
  };
  add("samples", others);
  add("images", images);
  add("labels", labels);
}

/// State of the optimizer or the average, which a run may do without.
bool is_beside_weights(const std::string& tensor) { return tensor.find(": ") != std::string::npos; }

void compare_tensors(const UpdateTrace& a, const UpdateTrace& b, DivergencePoint& parting) {
  std::map<std::string, std::string> others(b.tensors.begin(), b.tensors.end());
  std::vector<std::string> different;
  size_t compared = 0;
  for (const auto& [name, digest] : a.tensors) {
    const auto other = others.find(name);
    if (other == others.end() && is_beside_weights(name)) continue;
    ++compared;
    if (other == others.end() || other->second != digest) different.push_back(name);
    if (other != others.end()) others.erase(other);
  }
  for (const auto& [name, digest] : others) {
    if (is_beside_weights(name)) continue;
    ++compared;
    different.push_back(name);
  }
  if (different.empty()) return;
  parting.tensor = different.front();
  parting.what.push_back(
      format("{} is the first of {} of {} tensors that differ after it", parting.tensor, different.size(), compared));
}

DivergencePoint first_difference(const RunTrace& a, const RunTrace& b) {
  for (const auto& [update, x] : a.updates) {
    const auto other = b.updates.find(update);
    if (other == b.updates.end()) break;
    const UpdateTrace& y = other->second;
    DivergencePoint parting{update, x.epoch, {}, ""};
    compare_samples(a, b, x, y, parting.what);
    if (x.learning_rate != y.learning_rate) {
      parting.what.push_back(format("learning rate {:.10g} / {:.10g}", x.learning_rate, y.learning_rate));
    }
    compare_tensors(x, y, parting);
    if (!parting.what.empty()) return parting;
  }
  return {};
}

/// The program that computed a checkpoint. When its libraries were checked, and for how long, is no difference.
core::Json program_of(const std::string& checkpoint) {
  core::Json program = engine::read_lineage(checkpoint).program;
  const auto backend = program.is_object() ? program.find("backend") : program.end();
  if (backend != program.end() && backend->is_string()) {
    const std::string text = backend->get<std::string>();
    *backend = text.substr(0, text.find(", checked "));
  }
  return program;
}

}  // namespace

DifferentSetup compare_setups(const std::string& checkpoint_a, const std::string& checkpoint_b) {
  const core::Json a = engine::read_manifest(checkpoint_a).extra, b = engine::read_manifest(checkpoint_b).extra;
  DifferentSetup found;
  found.options = compare_texts(engine::saved_options(a), engine::saved_options(b));
  if (a.contains("data_fingerprint") && b.contains("data_fingerprint")) {
    found.same_data = a.at("data_fingerprint") == b.at("data_fingerprint");
  }
  found.program = compare_texts(program_of(checkpoint_a), program_of(checkpoint_b));
  return found;
}

Window compare_records(const RecordedRun& a, const RecordedRun& b) {
  const std::map<int64_t, UpdateDigests> of_a = points_of(a), of_b = points_of(b);
  Window window;
  for (const auto& [update, x] : of_a) {
    const auto other = of_b.find(update);
    if (other == of_b.end()) continue;
    const UpdateDigests& y = other->second;
    ++window.compared;
    const bool same_images = x.images.empty() || y.images.empty() || x.images == y.images;
    if (!same_images || x.weights != y.weights) {
      window.different = update;
      return window;
    }
    window.equal = update;
  }
  return window;
}

DivergencePoint find_divergence(const config::CommandLine& line, const RecordedRun& a, const RecordedRun& b,
                                const Window& window) {
  const RunTrace of_a = trace_run(line, a, window), of_b = trace_run(line, b, window);
  DivergencePoint first = first_difference(of_a, of_b);
  for (const RunTrace* const trace : {&of_a, &of_b}) {
    const DivergencePoint& broken = trace->broken;
    if (broken.what.empty() || (!first.what.empty() && first.update < broken.update)) continue;
    if (first.what.empty() || broken.update < first.update) {
      first = broken;
    } else {
      first.what.insert(first.what.end(), broken.what.begin(), broken.what.end());
      if (first.tensor.empty()) first.tensor = broken.tensor;
    }
  }
  return first;
}

}  // namespace stoker::train
