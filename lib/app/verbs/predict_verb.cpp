// SPDX-License-Identifier: Apache-2.0
// `train predict`: what a checkpoint says of images without labels.
#include <algorithm>

#include "app/app.h"
#include "app/output/result_output.h"
#include "app/setup/open_inputs.h"
#include "app/verbs/evaluate_together.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

Outcome predict_as_rank(const Invocation& invocation, const JoinedRanks& ranks) {
  LoadedModel loaded = load_configuration(invocation, ranks, invocation.configuration.command.checkpoint);
  const config::CommandLine& command = loaded.given->command;
  if (command.print_config) return print_config(loaded);
  if (ranks.place().size > 1 && std::count(command.inputs.begin(), command.inputs.end(), "-") > 0) {
    throw Error(ErrorKind::usage, "several processes cannot read one standard input", "give a list as @FILE");
  }
  load_network(open_inputs, ranks, loaded);

  const std::unique_ptr<ImageTable> table = image_table(loaded, /*truth=*/false);
  int64_t images = 0;
  const int64_t bad = predict_together(ranks, loaded, [&](const data::Batch& batch, const torch::Tensor& outputs) {
    if (ranks.is_root()) add_results(loaded, batch, outputs, *table);
    images += batch.image_count();
  });
  if (images == 0) {
    throw Error(ErrorKind::data,
                format("none of the {} images of {} could be read", bad, core::printable(command.inputs.front())),
                "the warnings above say why");
  }
  const Outcome outcome = {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
  if (!ranks.is_root()) return outcome;
  write_result(command.output, table->text());
  if (!command.output.empty() && command.output != "-") core::log_info("{} predictions in {}", images, command.output);
  if (bad > 0) core::log_warning("bad images left out: {}", bad);
  return outcome;
}

}  // namespace

Outcome predict(const Invocation& invocation) { return evaluate_on_devices(invocation, predict_as_rank); }

}  // namespace stoker::app
