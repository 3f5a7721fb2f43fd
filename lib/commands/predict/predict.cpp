// SPDX-License-Identifier: Apache-2.0
// `train predict`: what a checkpoint says of images without labels.
#include <algorithm>

#include "commands/eval/evaluate_together.h"
#include "commands/eval/open_inputs.h"
#include "commands/predict/predict.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

Outcome predict_as_rank(const Context& context, const PredictFlags& flags, const JoinedRanks& ranks) {
  LoadedModel loaded = load_configuration(context.line, ranks, {flags.checkpoint, flags.which});
  if (context.configuration.flags.print_config) return print_config(loaded);
  if (ranks.place().size > 1 && std::count(flags.inputs.begin(), flags.inputs.end(), "-") > 0) {
    throw Error(ErrorKind::usage, "several processes cannot read one standard input", "give a list as @FILE");
  }
  const auto open = [&](const config::Configuration& given, const std::vector<std::string>& trained) {
    return open_inputs(flags.inputs, given.options.data, trained);
  };
  load_network(open, ranks, loaded);

  TableColumns columns;
  columns.logits = flags.logits;
  columns.top_k = flags.top_k;
  columns.probabilities = flags.probabilities;
  columns.json = flags.json || core::ends_with(flags.output, ".json") || core::ends_with(flags.output, ".jsonl");
  const std::unique_ptr<ImageTable> table = image_table(loaded, columns);
  int64_t images = 0;
  const int64_t bad = predict_together(ranks, loaded, [&](const data::Batch& batch, const torch::Tensor& outputs) {
    if (ranks.is_root()) add_results(loaded, batch, outputs, *table);
    images += batch.image_count();
  });
  if (images == 0) {
    throw Error(ErrorKind::data,
                format("none of the {} images of {} could be read", bad, core::printable(flags.inputs.front())),
                "the warnings above say why");
  }
  const Outcome outcome = {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
  if (!ranks.is_root()) return outcome;
  write_result(flags.output, table->text());
  if (flags.output != "-") core::log_info("{} predictions in {}", images, flags.output);
  if (bad > 0) core::log_warning("bad images left out: {}", bad);
  return outcome;
}

}  // namespace

Outcome predict(const Context& context, const PredictFlags& flags) {
  return evaluate_on_devices(context, [&](const JoinedRanks& ranks) { return predict_as_rank(context, flags, ranks); });
}

}  // namespace stoker::train
