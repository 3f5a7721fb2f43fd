// SPDX-License-Identifier: Apache-2.0
// `train import`: what a file of weights holds, and the same as safetensors.
#include "app/app.h"
#include "app/export/weights_output.h"
#include "app/output/result_output.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/text/csv_row.h"
#include "weights/file/weight_file.h"
#include "weights/load/convert.h"

namespace stoker::app {
namespace {

using core::format;

/// One row per tensor, in the order of the file.
std::string listing(const weights::WeightFile& file) {
  std::string text = core::csv_row({"name", "type", "shape", "dictionary"}) + "\n";
  for (const weights::StoredTensor& tensor : file.tensors) {
    std::string shape;
    for (const int64_t side : tensor.shape) shape += (shape.empty() ? "" : "x") + std::to_string(side);
    text += core::csv_row({core::printable(tensor.name), weights::safetensors_name(tensor.type), shape,
                           core::printable(tensor.group)}) +
            "\n";
  }
  return text;
}

std::string file_text(const weights::WeightFile& file) {
  uint64_t bytes = 0;
  for (const weights::Storage& storage : file.storages) bytes += storage.bytes;
  return format("{}: {}, {} tensors, {}", core::printable(file.path()), file.format, file.tensors.size(),
                core::bytes_text(static_cast<double>(bytes)));
}

}  // namespace

Outcome import_weights(const Invocation& invocation) {
  log_to_stderr();
  const config::CommandLine& command = invocation.configuration.command;
  const weights::WeightFile file = weights::open_weight_file(command.input);
  core::log_info("{}", file_text(file));
  if (command.output.empty() && command.network.empty()) {
    const std::vector<std::string> networks = weights::networks_of(file);
    core::log_info("weights of {}",
                   networks.empty() ? "no network that is known by its names" : core::list_text(networks));
    write_result("-", listing(file));
    return {core::kExitOk, "listed"};
  }
  const weights::Conversion conversion =
      command.network.empty() ? weights::convert_as_is(file) : weights::convert_for(command.network, file);
  for (const std::string& line : conversion.report) core::log_info("{}", line);
  if (command.output.empty()) return {core::kExitOk, "fits"};
  replace_safetensors(command.output, conversion.tensors, {{"format", "pt"}});
  core::log_info("{} tensors in {}", conversion.tensors.size(), core::printable(command.output));
  return {core::kExitOk, "imported"};
}

}  // namespace stoker::app
