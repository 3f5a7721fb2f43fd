// SPDX-License-Identifier: Apache-2.0
// `train import`: what a file of weights holds, and the same as safetensors.
#include "commands/import/import.h"
#include "commands/import/weights_output.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/text/csv.h"
#include "train/failure/result_output.h"
#include "weights/file/weight_file.h"
#include "weights/load/pretrained.h"

namespace stoker::train {
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

Outcome import_weights(const Context&, const ImportFlags& flags) {
  log_to_stderr();
  refuse_output_over_input(flags.output, {flags.file}, {});
  const weights::WeightFile file = weights::open_weight_file(flags.file);
  core::log_info("{}", file_text(file));
  if (flags.output.empty() && flags.network.empty()) {
    const std::vector<std::string> networks = weights::networks_of(file);
    core::log_info("{}", networks.empty()
                             ? "no network that is known here has these names and shapes; --model NAME tries one"
                             : "weights of " + core::list_text(networks));
    write_result("-", core::terminal_text(listing(file)));
    return {core::kExitOk, "listed"};
  }
  const weights::Conversion conversion =
      flags.network.empty() ? weights::convert_as_is(file) : weights::convert_for(flags.network, file);
  for (const std::string& line : conversion.report) core::log_info("{}", line);
  if (flags.output.empty()) return {core::kExitOk, "fits"};
  write_weights(flags.output, conversion.tensors, {{"format", "pt"}});
  core::log_info("{} tensors in {}", conversion.tensors.size(), core::printable(flags.output));
  return {core::kExitOk, "imported"};
}

}  // namespace stoker::train
