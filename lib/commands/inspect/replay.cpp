// SPDX-License-Identifier: Apache-2.0
// `train inspect replay`: a past update of a run, recomputed: what the network saw, and what it made of it.
#include <algorithm>
#include <chrono>
#include <numeric>

#include "commands/inspect/inspect.h"
#include "commands/inspect/recomputation.h"
#include "commands/inspect/update_record.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/time/clock.h"
#include "engine/digest/tensor_digest.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// Sees all that a record holds, and the digest under which the run remembers the images.
class Replayed : public engine::StepWatcher {
 public:
  explicit Replayed(const engine::Task& task) : record_(task, /*keeps_images=*/true) {}
  void on_batch(const engine::SeenBatch& seen) override {
    images_.on_batch(seen);
    record_.on_batch(seen);
  }
  void on_gradients(const engine::Learner& learner) override { record_.on_gradients(learner); }
  const UpdateRecorder& record() const { return record_; }
  std::string images() const { return images_.hex(); }

 private:
  UpdateRecorder record_;
  engine::ImageDigest images_;
};

void refuse_bad_update(int64_t update, const RecordedRun& run) {
  if (update < 1)
    throw Error(ErrorKind::usage, "--update N is missing: which update to replay, from 1",
                "train inspect replay RUN --update N");
  require_done(update, run);
}

/// Options and data must be those of the run: of a checkpoint around the update.
void refuse_other_run(const Recomputation& part, const RecordedRun& run, int64_t update) {
  if (run.checkpoints.empty()) return;
  const auto after = run.checkpoints.lower_bound(update);
  const std::string& path = (after != run.checkpoints.end() ? after : std::prev(after))->second;
  const std::vector<std::string> differences = part.differences(path);
  if (differences.empty()) return;
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  if (part.options().run.override_resume) {
    core::log_warning("--override-resume accepts that this is not what the run computed:{}", list);
    return;
  }
  throw Error(ErrorKind::config, format("what would be replayed differs from the run that wrote {}:{}", path, list),
              "restore the data, leave out flags that change the run, or replay regardless with --override-resume");
}

void log_start(const RecordedRun& run, const std::string& checkpoint, int64_t updates) {
  if (!checkpoint.empty()) {
    core::log_info("from      {} ({} update{} to recompute)", checkpoint, updates, updates == 1 ? "" : "s");
  } else if (run.checkpoints.empty()) {
    core::log_info("from      the start ({} updates to recompute)", updates);
  } else {
    core::log_warning(
        "no checkpoint from before this update is left: {} update{} recomputed from the beginning; "
        "--keep-last keeps more of them",
        updates, updates == 1 ? " is" : "s are");
  }
}

/// How a recomputed digest compares with the recorded one.
struct Comparison {
  bool images_differ = false, weights_differ = false, was_recorded = false;
};

Comparison compare(const RecordedRun& run, int64_t update, const std::string& images, const std::string& weights) {
  Comparison found;
  const auto recorded = run.digests.find(update);
  if (recorded != run.digests.end()) {
    found.was_recorded = true;
    found.images_differ = recorded->second.images != images;
    found.weights_differ = recorded->second.weights != weights;
  }
  const auto checkpoint = run.checkpoints.find(update);
  if (checkpoint != run.checkpoints.end()) {
    const std::string saved = engine::read_lineage(checkpoint->second).weights;
    if (!saved.empty()) {
      found.was_recorded = true;
      found.weights_differ = found.weights_differ || saved != weights;
    }
  }
  return found;
}

std::string verdict(bool was_recorded, bool differs) {
  return !was_recorded ? "not recorded" : differs ? "differs from the recording" : "as recorded";
}

void log_replay(const Recomputation& part, const Replayed& seen, const Comparison& found, const std::string& weights) {
  constexpr size_t kWorst = 3;
  const UpdateRecorder& record = seen.record();
  std::vector<SampleRecord> samples = record.samples();
  core::log_info("images    {}  {}  {}", samples.size(), seen.images(),
                 verdict(found.was_recorded, found.images_differ));
  core::log_info("weights   after it {}  {}", weights, verdict(found.was_recorded, found.weights_differ));
  core::log_info("loss      {:.6g}, mean over the images; learning rate {:.6g}", record.mean_loss(),
                 part.at().learning_rate);
  std::stable_sort(samples.begin(), samples.end(), [](const SampleRecord& a, const SampleRecord& b) {
    return std::isnan(a.loss) != std::isnan(b.loss) ? std::isnan(a.loss) : a.loss > b.loss;
  });
  for (size_t i = 0; i < std::min(kWorst, samples.size()); ++i) {
    core::log_info("  {:<10.4g}{}  {}", samples[i].loss,
                   core::printable(part.source().relative_name(samples[i].sample)),
                   truth_text(samples[i], part.source()));
  }
  core::log_info("gradient  norm {:.6g}", record.gradient_norm());
  for (const GradientRecord& layer : by_layer(record.gradients()))
    core::log_info("  {:<10.4g}{}", layer.norm, layer.name);
}

}  // namespace

Outcome replay(const Context& context, const ReplayFlags& flags) {
  if (flags.json) log_to_stderr();
  const RecordedRun run = read_recorded_run(flags.run);
  refuse_bad_update(flags.update, run);
  const std::string checkpoint = run.checkpoint_before(flags.update - 1);
  Recomputation part(context.line, run, checkpoint, flags.update);
  refuse_other_run(part, run, flags.update);
  log_start(run, checkpoint, flags.update - part.at().updates);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t from = part.at().updates;
  part.advance_to(flags.update - 1);
  Replayed seen(part.task());
  part.advance(&seen);
  const engine::RunProgress at = part.at();
  const std::string weights = engine::tensor_digest(model::state_of(*part.learner().model));
  const Comparison found = compare(run, flags.update, seen.images(), weights);
  core::log_info("update    {} of {}: epoch {}, update {} of {}; {} recomputed in {}", at.updates,
                 core::printable(run.path), at.epoch + 1, at.update_in_epoch, part.plan().updates(), at.updates - from,
                 core::duration_text(core::seconds_since(begin)));
  log_replay(part, seen, found, weights);

  const std::string folder =
      flags.output.empty() ? format("{}/replay/update-{:08d}", run.path, flags.update) : flags.output;
  core::make_directories(folder);
  core::Json json = record_json(seen.record(), part.source());
  json.update({{"run", core::printable(run.path)},
               {"update", at.updates},
               {"epoch", at.epoch + 1},
               {"update_in_epoch", at.update_in_epoch},
               {"learning_rate", at.learning_rate},
               {"checkpoint", checkpoint.empty() ? core::Json(nullptr) : core::Json(core::printable(checkpoint))},
               {"updates_computed", at.updates - from},
               {"digests", {{"images", seen.images()}, {"weights", weights}}},
               {"recorded", found.was_recorded ? core::Json{{"images_equal", !found.images_differ},
                                                            {"weights_equal", !found.weights_differ}}
                                               : core::Json(nullptr)}});
  const std::string text = core::json_page(json);
  core::write_file_atomically(folder + "/replay.json", text, /*durable=*/false);
  const int64_t pictures = write_images(folder, seen.record(), part.source(), part.options().data);
  core::log_info("written   {}: replay.json, batch.safetensors{}", core::printable(folder),
                 pictures > 0 ? format(", sheet.png, images/ ({} files)", pictures) : "");
  if (flags.json) write_result("-", text);
  if (found.images_differ || found.weights_differ) {
    const std::string libraries = changed_libraries(run, flags.update, part.options());
    throw Error(ErrorKind::data,
                format("update {} of {} is not reproduced: {} differ from the record", flags.update,
                       core::printable(run.path), found.images_differ ? "its images" : "the weights after it"),
                !libraries.empty()    ? "other libraries read and compute it: " + libraries
                : found.images_differ ? "the data changed, or the record was; train inspect verify checks the run"
                                      : "another machine, LibTorch or number of threads computes other bits; "
                                        "train inspect verify checks the run");
  }
  return {core::kExitOk, "replayed", at.updates, checkpoint};
}

}  // namespace stoker::train
