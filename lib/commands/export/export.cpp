// SPDX-License-Identifier: Apache-2.0
// `train export`: a trained network as a file that other programs run, with test vectors beside it.
#include "commands/export/export.h"

#include <ATen/Functions.h>
#include <sys/stat.h>
#include <torch/types.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "commands/eval/evaluate_together.h"
#include "commands/eval/loaded_model.h"
#include "commands/export/exported_network.h"
#include "commands/import/weights_output.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/child_process.h"
#include "core/system/file.h"
#include "deploy/trace/traced_network.h"
#include "deploy/translate/translator.h"
#include "engine/saved/safetensors.h"
#include "engine/saved/weights.h"
#include "model/script/network_library.h"
#include "model/script/script_network.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/run_directory.h"

namespace stoker::train {
namespace {

// Runs a file of ONNX by another program's implementation, in a process of its own: stoker-check-onnx, which alone
// links OpenCV's networks. Their libraries bring a second copy of what LibTorch brings, so they stay out of this one.

struct OnnxAnswers {
  std::string reader;          ///< "OpenCV 4.6.0"
  bool takes_batches = false;  ///< else it could run images one by one alone
  torch::Tensor outputs;       ///< float32, as the file has them
};

using core::Error;
using core::ErrorKind;

constexpr const char* kChecker = "stoker-check-onnx";
constexpr uint64_t kMaxAnswers = uint64_t{1} << 32;

/// Removed with all that is in it.
class Scratch {
 public:
  Scratch() {
    const std::string plain = core::temporary_folder() + "/stoker-check";
    core::remove_temporaries_of(plain);  // a killed process leaves them behind
    path_ = core::temporary_of(plain);
    if (::mkdir(path_.c_str(), 0700) != 0) throw core::errno_error(errno, "make", path_, ErrorKind::cannot_create);
  }
  ~Scratch() { core::remove_tree(path_); }
  Scratch& operator=(Scratch&&) = delete;  // not copied, not moved
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Throws Error{unavailable} where it is not installed.
std::string checker_program() {
  std::string program = core::find_beside_program(kChecker, "../libexec/stoker");
  if (!program.empty()) return program;
  throw Error(ErrorKind::unavailable, core::format("--check: {} is not installed beside this program", kChecker),
              "build with OpenCV's dnn module (libopencv-dnn-dev), or leave --check out");
}

/// `inputs`: float32 or uint8 [images, ...]. Throws Error{unavailable} as checker_program(), Error{config} with the
/// reader's words where it cannot read or run the file.
OnnxAnswers run_onnx(const std::string& path, const torch::Tensor& inputs) {
  const std::string program = checker_program();
  const Scratch scratch;
  const std::string questions = scratch / "inputs.safetensors", answers = scratch / "answers";
  engine::write_safetensors(questions, {{"inputs", inputs}});
  const int code = core::run_child({{program, path, questions, answers}});
  if (code != 0) {
    throw Error(ErrorKind::config, core::format("--check: {} could not run {}", kChecker, core::printable(path)),
                "its messages are above; other programs may support more operators");
  }
  const std::string bytes = core::read_file(answers, kMaxAnswers);
  const size_t line_end = bytes.find('\n');
  OnnxAnswers result;
  std::istringstream line(bytes.substr(0, line_end));
  int64_t rows = 0, columns = 0;
  std::string name, version, batches;
  line >> rows >> columns >> name >> version >> batches;
  result.takes_batches = batches == "batches";
  result.reader = name + " " + version;
  const bool is_whole = line_end != std::string::npos && rows == inputs.size(0) && columns > 0 &&
                        bytes.size() - line_end - 1 == static_cast<size_t>(rows * columns) * sizeof(float);
  if (!is_whole) throw Error(ErrorKind::bug, core::format("--check: {} printed an incomplete answer", kChecker));
  result.outputs = torch::empty({rows, columns}, at::kFloat);
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(line_end) + 1, bytes.end(),
            static_cast<char*>(result.outputs.data_ptr()));
  return result;
}

namespace fs = std::filesystem;
using core::Error;
using core::ErrorKind;
using core::format;

constexpr int64_t kMadeUp = 8;                                   // test vectors where no images are named
constexpr int64_t kMaxVectors = 100;                             // and where they are
constexpr double kOnnxTolerance = 1e-4, kTorchTolerance = 1e-5;  // of predictions

struct FileFormat {
  const char* name;
  const char* ending;
};
constexpr FileFormat kFormats[] = {{"onnx", ".onnx"}, {"torchscript", ".pt"}, {"safetensors", ".safetensors"}};

/// From --format, or the ending of --output.
const FileFormat& format_of(const ExportFlags& flags) {
  const std::string ending = fs::path(flags.output).extension().string();
  for (const FileFormat& known : kFormats) {
    if (flags.format.empty() ? ending == known.ending : flags.format == known.name) return known;
  }
  if (ending.empty() || flags.output.empty()) return kFormats[0];
  throw Error(ErrorKind::usage, format("--output: unknown file extension: {}", core::printable(flags.output)),
              "use .onnx, .pt or .safetensors, or set --format");
}

/// Where the file goes: into the run, unless a checkpoint alone was named.
std::string output_path(const ExportFlags& flags, const FileFormat& wanted) {
  if (!flags.output.empty()) return flags.output;
  const bool is_checkpoint = core::file_exists(flags.checkpoint + "/manifest.json");
  const std::string folder = is_checkpoint ? "." : flags.checkpoint + "/export";
  core::make_directories(folder);
  return folder + "/model" + wanted.ending;
}

/// Normalised samples of what the command line names, at most kMaxVectors of them; undefined where it names none.
torch::Tensor named_samples(const std::vector<std::string>& inputs, LoadedModel& loaded) {
  if (inputs.empty()) return {};
  const JoinedRanks alone;
  const auto open = [&](const config::Configuration& given, const std::vector<std::string>& trained) {
    return open_inputs(inputs, given.options.data, trained);
  };
  load_network(open, alone, loaded);
  config::ResolvedOptions options = loaded.options();
  options.train.tta = config::TestTimeAugmentation::none;  // it takes one crop of an image
  const auto feed = evaluation_feed(options, loaded.source, loaded.device);
  std::vector<torch::Tensor> samples;
  int64_t count = 0;
  feed->begin_epoch(0);
  for (data::Batch batch; count < kMaxVectors && feed->next(batch);) {
    samples.push_back(batch.images.to(torch::kCPU).contiguous().clone());
    count += batch.image_count();
  }
  if (count == 0)
    throw Error(ErrorKind::data, "none of the images could be read", "the warnings above name the causes");
  if (count < loaded.source->size())
    core::log_info("test vectors of the first {} images", std::min(count, kMaxVectors));
  return at::cat(samples).slice(0, 0, kMaxVectors);
}

config::Preprocessing record_of(const LoadedModel& loaded) {
  if (!loaded.record) {
    throw Error(ErrorKind::data, format("{} has no preprocess.json: an older program wrote it", loaded.saved.path),
                "run the training command with one more --epochs: the next checkpoint has one");
  }
  return *loaded.record;
}

std::map<std::string, std::string> metadata_of(const LoadedModel& loaded, const config::Preprocessing& record) {
  return {{"preprocess", core::json_line(config::to_json(record))},
          {"class_names", core::json_line(core::Json(record.names))},
          {"model", loaded.options().model.model},
          {"producer", "stoker " STOKER_VERSION},
          {"updates", std::to_string(loaded.saved.state.updates)}};
}

std::string onnx_file(const deploy::TracedNetwork& traced, const ExportedNetwork& network,
                      const std::map<std::string, std::string>& metadata) {
  deploy::OnnxModel model = deploy::translate_to_onnx(traced, network.input_name(), {network.output_name()});
  model.producer = "stoker";
  model.producer_version = STOKER_VERSION;
  model.name = metadata.at("model");
  model.inputs.at(0).description = network.input_description();
  model.outputs.at(0).description = network.output_description();
  model.metadata.assign(metadata.begin(), metadata.end());
  return deploy::onnx_bytes(model);
}

/// A file, and how to run the network in it.
struct Exported {
  std::string bytes;
  std::string reader;  ///< who `run` is
  std::function<torch::Tensor(const torch::Tensor& input)> run;
};

/// A network of a file keeps its own code: what is written is that file with the weights of the run.
Exported unchanged(model::ScriptNetwork& network, const std::map<std::string, std::string>& metadata,
                   const std::string& path) {
  Exported exported = {network.saved(metadata), "LibTorch's loader of the file", {}};
  exported.run = [bytes = exported.bytes, path](const torch::Tensor& input) {
    const torch::NoGradGuard no_gradients;
    return model::open_foreign_network(bytes, path)->forward(input);
  };
  return exported;
}

Exported as_traced(const ExportedNetwork& network, const torch::Tensor& inputs, bool is_onnx,
                   const std::map<std::string, std::string>& metadata) {
  const torch::Tensor example = at::cat({inputs, inputs}).slice(0, 0, 2).contiguous();
  const deploy::TracedNetwork traced = deploy::trace_network(
      network.model(), [&](const torch::Tensor& images) { return network.forward(images); }, example);
  return {is_onnx ? onnx_file(traced, network, metadata) : traced.torchscript(metadata), "the recorded graph",
          [traced](const torch::Tensor& input) { return traced.forward(input); }};
}

/// Requires the predictions of another implementation to be those of this program.
void compare(const ExportedNetwork& network, const torch::Tensor& outputs, const torch::Tensor& expected,
             const std::string& reader, double tolerance) {
  const torch::Tensor other = network.predictions_of(outputs.reshape_as(expected)),
                      own = network.predictions_of(expected);
  const double difference = (other - own).abs().max().item<double>();
  const int64_t samples = expected.size(0);
  if (!(difference <= tolerance)) {
    throw Error(ErrorKind::config,
                format("--check: {} disagrees: predictions differ by up to {:.3g} on {} samples; {:.0e} is allowed",
                       reader, difference, samples, tolerance),
                "the file was still written; please report this");
  }
  core::log_info("checked   {} agrees on {} samples: predictions differ by at most {:.2g}", reader, samples,
                 difference);
}

/// Compares the exported network with this program on the CPU, in float32.
void prove_export(config::ResolvedOptions options, const config::Preprocessing& record, int64_t samples) {
  NetworkUse use;
  use.input = {record.channels * record.views, record.height, record.width};
  if (record.frames > 0) use.input.insert(use.input.begin(), record.frames);
  use.evaluation_batches = {samples};
  options.precision.amp = false;
  options.device.device = "cpu";
  prove_backend(options, use);
}

}  // namespace

Outcome export_network(const Context& context, const ExportFlags& flags) {
  log_to_stderr();
  const FileFormat& wanted = format_of(flags);
  const ExportBoundary boundary = {flags.with_preprocessing, flags.with_predictions};
  const bool is_weights = std::string_view(wanted.name) == "safetensors";
  if (is_weights && (boundary.bytes_in || boundary.predictions_out || flags.check)) {
    throw Error(ErrorKind::usage, "--format safetensors writes weights alone, which compute nothing by themselves",
                "leave out --with-preprocessing, --with-predictions and --check, or choose onnx or torchscript");
  }
  if (flags.check && std::string_view(wanted.name) == "onnx") checker_program();
  LoadedModel loaded = load_configuration(context.line, JoinedRanks(), {flags.checkpoint, flags.which});
  const config::Preprocessing record = record_of(loaded);
  const std::string path = output_path(flags, wanted);
  refuse_output_over_input(path, flags.inputs, {});
  refuse_output_over_input(path, files_of_run(loaded.saved.path), {});
  const bool is_stream = output_file(path).empty();
  if (is_stream && flags.check) {
    throw Error(ErrorKind::usage, "--check reads the file again, but " + core::printable(path) + " is no file",
                "leave --check out, or name a file");
  }
  torch::Tensor samples = named_samples(flags.inputs, loaded);
  if (!samples.defined()) loaded.settings->settle(config::facts_of(record));
  const std::map<std::string, std::string> metadata = metadata_of(loaded, record);
  const Outcome outcome = {core::kExitOk, "exported", loaded.saved.state.updates, loaded.saved.path};
  if (is_weights) {
    std::map<std::string, std::string> with_kind = metadata;
    with_kind["format"] = "pt";
    write_weights(path, loaded.saved.weights, with_kind);
    core::log_info("written   {}: {} tensors", core::printable(path), loaded.saved.weights.size());
    return outcome;
  }

  prove_export(loaded.options(), record, samples.defined() ? samples.size(0) : kMadeUp);
  const std::shared_ptr<model::ImageModel> model = build_model(loaded.options(), torch::kCPU);
  engine::load_weights(*model, loaded.saved.weights, loaded.saved.path);
  model->eval();
  const ExportedNetwork network(model, build_task(loaded.options(), torch::kCPU), record, boundary);
  if (!samples.defined()) samples = network.made_up(kMadeUp);
  const torch::Tensor inputs = network.input_of(samples), expected = network.expected(samples);
  const bool is_onnx = std::string_view(wanted.name) == "onnx";
  const auto script = std::dynamic_pointer_cast<model::ScriptNetwork>(model);
  const bool keeps_code = script && !is_onnx && !boundary.bytes_in && !boundary.predictions_out;
  const Exported exported =
      keeps_code ? unchanged(*script, metadata, path) : as_traced(network, inputs, is_onnx, metadata);
  write_result(path, exported.bytes);
  core::log_info("written   {}: {} -> {}", core::printable(path), network.input_name(), network.output_name());
  if (!is_stream) {
    const std::string vectors = fs::path(path).replace_extension(".vectors.safetensors").string();
    write_weights(vectors, {{network.input_name(), inputs}, {network.output_name(), expected}}, metadata);
    core::log_info("vectors   {}: {} samples with their {}", core::printable(vectors), inputs.size(0),
                   network.output_name());
  }
  if (loaded.options().train.tta != config::TestTimeAugmentation::none) {
    core::log_warning("--tta is not part of the exported network");
  }
  if (!flags.check) return outcome;
  if (is_onnx) {
    const OnnxAnswers answers = run_onnx(path, inputs);
    compare(network, answers.outputs, expected, answers.reader, kOnnxTolerance);
    if (!answers.takes_batches)
      core::log_info("          {} runs it image by image alone, not as a batch", answers.reader);
  } else {
    compare(network, exported.run(inputs), expected, exported.reader, kTorchTolerance);
  }
  return outcome;
}

}  // namespace stoker::train
