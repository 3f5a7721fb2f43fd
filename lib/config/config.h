// SPDX-License-Identifier: Apache-2.0
// From a command line to the options that were given: defaults < preset < config files in order < flags. Everything
// that is wrong is reported at once, with file:line and the nearest name. config/resolution.h goes on from there.
#pragma once

#include <string>
#include <vector>

#include "config/options.h"
#include "config/table/table.h"

namespace stoker::config {

/// What `train pack` was asked for, as it was written; empty: not given.
struct PackWords {
  std::string shard_size = "512MB";
  std::string max_side, quality;
  std::vector<std::string> splits;
  bool progressive_to_baseline = false;
  bool verify = false, index = false;
};

/// What `train plan` was asked for, as it was written; empty: not given.
struct PlanWords {
  std::string devices;   ///< counts to compare: "1,2,4"
  std::string machines;  ///< "4"
  std::string link;      ///< "25Gbit" or "1Gbit,1ms"
  std::string trial;     ///< hidden: the file for what this rank of a trial has measured
};

/// What `train export` was asked for; empty: not given.
struct ExportWords {
  std::string format;               ///< onnx, torchscript, safetensors
  bool with_preprocessing = false;  ///< bytes in
  bool with_predictions = false;    ///< probabilities out
  bool check = false;
};

/// What the command line asked for besides option values.
struct CommandLine {
  std::string verb;  ///< "" (train), "eval", "predict", ...
  bool help = false;
  bool help_all = false;
  bool version = false;
  bool print_config = false;
  bool dry_run = false;
  bool all_files = false;  ///< --dry-run and check: look at every file
  bool verbose = false;
  bool fresh = false;          ///< an older run in the run directory is set aside
  bool help_markdown = false;  ///< hidden: writes docs/options.md to stdout
  bool trust_model = false;    ///< code in the file that --model names may run; no file can say so
  std::string on_end;          ///< a command of the shell, run when a training run ends; empty: none
  std::string document;        ///< hidden: "man" or "schema"; completion: the shell
  std::vector<std::string> config_files;
  std::string preset;
  bool names_data = false;  ///< --data-dir or --dataset given by flag, file or preset
  // eval and predict
  std::string checkpoint;           ///< run directory or checkpoint directory; audit: empty asks no network
  std::string which = "best";       ///< best, last
  std::string input;                ///< pack, audit: data set; import: file; eval: labelled data, or empty
  std::vector<std::string> inputs;  ///< predict: files, folders, patterns, "@list" or "-"
  int64_t top_k = 1;                ///< predict: classes that are named
  bool probabilities = false;       ///< predict: of every class
  std::string network;              ///< import: the network whose names the tensors get; empty: they keep theirs
  std::string output;               ///< predict: CSV path, "-" is stdout; eval: folder for CSV files; pack: folder
  bool logits = false;
  std::string against;                ///< eval: another run or checkpoint to compare with; empty: none
  int64_t suspects = 200;             ///< audit: labels that are listed of each split
  int64_t resamples = 2000;           ///< eval: of the bootstrap; 0: no intervals
  std::string split;                  ///< eval: the split to evaluate; empty: the validation split
  std::vector<std::string> run_dirs;  ///< report
  std::string bench;                  ///< bench: what to time ("loader", "step", "all")
  bool once = false;                  ///< watch: print and end
  int64_t update = 0;                 ///< replay: from 1; 0: not given
  int64_t stretches = 3;              ///< verify: between checkpoints, that are computed again; 0: all
  bool json = false;                  ///< bench, check, plan, audit: figures as JSON on standard output
  PackWords pack;
  ExportWords exported;
  PlanWords plan;
};

/// Options as they were given, with the table that is bound to them. Movable only as a whole (held by pointer).
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
/// Error{config}.
void read_run_config(const std::string& text, const std::string& path, Configuration& configuration);

/// What the command line calls a run: the preset and the names of configuration files; empty where it names neither.
std::string run_name_of(const CommandLine& command);

/// YAML of all values, grouped, reloadable with -c; with_origin adds a comment with each value's origin.
std::string render_yaml(const Table& table, bool with_origin);
/// --help of a verb ("" is train), 100 columns.
std::string render_help(const Table& table, const std::string& verb);
/// --help of train: examples, verbs and the usual options, 80 columns.
std::string render_short_help(const Table& table);
/// docs/options.md.
std::string render_markdown(const Table& table);

/// train.1, the manual page.
std::string render_man(const Table& table, const std::string& version);
/// A JSON schema of configuration files.
std::string render_schema();
/// A script that completes the command line in `shell`; `networks` are the values of --model. Throws Error{usage} for
/// other shells than those of completion_shells().
std::string render_completion(const Table& table, const std::string& shell, const std::vector<std::string>& networks);
std::vector<std::string> completion_shells();

/// Presets embedded at build time from configs/*.yaml: name -> text. Throws Error{config} listing the names.
const std::string& preset_text(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace stoker::config
