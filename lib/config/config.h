// SPDX-License-Identifier: Apache-2.0
// From a command line to resolved options: defaults < preset < config files in order < flags.
// Everything that is wrong is reported at once, with file:line and the nearest name.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "config/table/table.h"
#include "core/system/machine.h"

namespace stoker::config {

/// What `train pack` was asked for, as it was written; empty: not given.
struct PackWords {
  std::string shard_size = "512MB";
  std::string max_side, quality;
  std::vector<std::string> splits;
  bool progressive_to_baseline = false;
  bool verify = false, index = false;
};

/// What the command line asked for besides option values.
struct CommandLine {
  std::string verb;  ///< "" (train), "eval", "predict", ...
  bool help = false;
  bool version = false;
  bool print_config = false;
  bool dry_run = false;
  bool help_markdown = false;  ///< hidden: writes docs/options.md to stdout
  std::vector<std::string> config_files;
  std::string preset;
  bool names_data = false;  ///< --data-dir or --dataset given by flag, file or preset
  // eval and predict
  std::string checkpoint;      ///< run directory or checkpoint directory
  std::string which = "best";  ///< best, last
  std::string input;           ///< predict: folder or file; pack: data set
  std::string output;          ///< predict: CSV path, "-" is stdout; eval: folder for CSV files; pack: folder
  bool logits = false;
  std::string split;                  ///< eval: the split to evaluate; empty: the validation split
  std::vector<std::string> run_dirs;  ///< report
  std::string bench;                  ///< bench: what to time ("loader", "step", "all")
  bool json = false;                  ///< bench, check, plan: figures as JSON on standard output
  PackWords pack;
};

/// Options with the table that is bound to them. Movable only as a whole (held by pointer).
struct Configuration {
  Options options;
  Table table{options};
  CommandLine command;
  std::vector<std::string> notes;  ///< for the banner: what was accepted without effect, or assumed

  Configuration() = default;
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;
};

/// Parses flags, preset and config files into `out`. Throws core::Error{usage} for flags and
/// Error{config} for files, listing every problem, one per line.
void parse_command_line(int argc, const char* const* argv, Configuration& out);

/// Reads one YAML text strictly and assigns its values; `path` is for messages. Appends problems to
/// `problems`.
void read_yaml(const std::string& text, const std::string& path, Origin::Kind kind, Table& table,
               std::vector<std::string>& problems);

/// Takes over the configuration of a finished run for eval and predict: everything but what belongs to a
/// process or a machine (device, threads, workers, logs). Flags, files and presets keep precedence. Throws
/// Error{config}. Call before resolve_machine.
void read_run_config(const std::string& text, const std::string& path, Configuration& configuration);

/// Facts about the data that resolve() needs, known after the scan.
struct DataFacts {
  int64_t num_classes = 0;    ///< or targets, where the task learns numbers
  int64_t channels = 0;       ///< most common: 1 or 3
  int64_t median_height = 0;  ///< pixels; of a deterministic sample of at most 100 images
  int64_t median_width = 0;
  int64_t train_images = 0;
  bool has_videos = false;                 ///< samples are clips, or frames of videos
  std::vector<int64_t> class_images = {};  ///< of the training split, per class; empty where numbers are learned
  bool has_fixed_size = false;             ///< samples stay as they are: neither cropped, nor resized, nor mirrored
  /// Per channel, of samples that are floats; empty for bytes.
  std::vector<double> input_mean = {}, input_deviation = {};
  int64_t input_samples = 0;  ///< that these were measured on
  std::vector<double> target_mean = {},
                      target_deviation = {};  ///< per target, of the training split; empty for classes
  /// Of data that is only judged or asked about, what training takes from its training split is not known: class
  /// weights, means and scales.
  bool of_training = true;
  bool has_float_samples = false;  ///< numbers, not pixels of 8 bits
};

/// Facts about the network: what it is usually trained with.
struct ModelFacts {
  std::string name;
  double drop_rate = 0;
  double drop_path_rate = 0;
};

/// Fills every `auto` from facts, checks rules that span options, and notes each choice with its reason in the row's
/// origin. One step per kind of facts, since each needs options that the one before it has settled: resolve_machine
/// before anything else, resolve_data after the scan, then resolve_model, resolve_batch and resolve_drop_last, and
/// resolve_measured for what is measured last. All throw Error{config} listing all problems (Error{unavailable} for a
/// device that is not there).
void resolve_machine(Configuration& configuration, const core::MachineFacts& machine);
void resolve_data(Configuration& configuration, const DataFacts& data);
/// Once more for the network, whenever its name is known.
void resolve_model(Configuration& configuration, const ModelFacts& model);
/// What batch-size auto becomes.
struct BatchChoice {
  int64_t batch_size = 0;
  int64_t accumulation_steps = 0;  ///< 0: as it is, or as total-batch-size makes it
  std::string reason;
};
/// Fills an automatic batch-size and what follows from it: accumulation-steps, lr, val-batch-size; until then these
/// stay open. After resolve_data(). Throws as above.
void resolve_batch(Configuration& configuration, const BatchChoice& choice);
/// Fills an automatic drop-last for an epoch of `train_images` once batch-size is known. The last batch is left out
/// when it is not full, not the only one, and
///  - would be an update of its own with fewer than an eighth of the images of a full update, each of which would count
///    more than eight times as much as the others; or
///  - is a single image, and the network cannot train on one: batch norm over maps of one value.
/// `trains_on_one_image`: whether the network can; not known: drop-last stays open where that decides.
void resolve_drop_last(Configuration& configuration, int64_t train_images, std::optional<bool> trains_on_one_image);
/// Gives an option what was measured after that, unless somebody has set it. Throws as above.
void resolve_measured(Row& row, const std::string& text, const std::string& reason);

/// YAML of all values, grouped, reloadable with -c; with_origin adds a comment with each value's origin.
std::string render_yaml(const Table& table, bool with_origin);
/// --help of a verb ("" is train), 100 columns.
std::string render_help(const Table& table, const std::string& verb);
/// docs/options.md.
std::string render_markdown(const Table& table);
/// name = value lines of training-relevant options only: what must not change on resume.
std::vector<std::pair<std::string, std::string>> training_relevant_values(const Table& table);

/// Presets embedded at build time from configs/*.yaml: name -> text. Throws Error{config} listing the names.
const std::string& preset_text(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace stoker::config
