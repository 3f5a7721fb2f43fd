// SPDX-License-Identifier: Apache-2.0
// From a command line to the options that were given: defaults < preset < config files in order < flags. Everything
// that is wrong is reported at once, with file:line and the nearest name. config/resolution.h continues from there.
#pragma once

#include <string>
#include <vector>

#include "config/options.h"
#include "config/table/table.h"

namespace stoker::config {

struct Syntax;

/// The flags that several commands have in common.
struct CommonFlags {
  bool help = false, help_all = false, version = false;
  bool print_config = false;
  bool verbose = false;
  bool trust_model = false;  ///< code in the file that --model names may run; no file can allow it
  std::vector<std::string> config_files;
  std::string preset;
  bool names_data = false;  ///< --data-dir or --dataset given by flag, file or preset
};

/// A command with the words behind its name.
struct CommandLine {
  std::vector<std::string> words;
  const Syntax* syntax = nullptr;
  std::vector<const Syntax*> others = {};  ///< for hints: all commands
  std::vector<std::string> networks = {};  ///< values of --model besides files; empty: not checked here
  std::string mistake = "";                ///< what was wrong with the first word; `words` are corrected
};

/// Options as they were given, with the table that is bound to them. Movable only as a whole (held by pointer).
struct Configuration {
  Options options;
  Table table{options};
  CommonFlags flags;
  bool trains = true;              ///< else a network is used that has been trained
  std::vector<std::string> notes;  ///< for the banner: what was accepted and ignored, or assumed

  Configuration() = default;
  Configuration& operator=(Configuration&&) = delete;  // not copied, not moved
};

/// Parses flags, preset and config files into `out`; flags and words of the command go where its syntax is bound to.
/// Throws core::Error{usage} for flags and Error{config} for files, listing every problem, one per line.
void parse_command_line(const CommandLine& line, Configuration& out);
/// Throws Error{config} where a configuration file names a log outside of the run directory. Called before it is
/// opened.
void refuse_log_file_elsewhere(const Configuration& configuration);
/// Whether a configuration file may name this log: it lies below the run directory, links resolved, ends in ".log", and
/// neither in checkpoints/ nor in a folder that begins with a dot.
bool is_log_of_run(const std::string& path, const std::string& run_dir);
/// The data set that a word of the command line names. Throws Error{usage} for one that is not UTF-8.
void name_data(const std::string& dataset, Options& options);
/// The options of a command line that was parsed before, over what `out` holds. Throws Error{config} for files.
void parse_options(const CommandLine& line, Configuration& out);

/// Reads one YAML text strictly and assigns its values; `path` is for messages. Appends problems to
/// `problems`.
void read_yaml(const std::string& text, const std::string& path, Origin::Kind kind, Table& table,
               std::vector<std::string>& problems);

/// Takes over the configuration of a finished run for eval and predict: everything but what belongs to a
/// process or a machine (device, threads, workers, logs). Flags, files and presets keep precedence. Throws
/// Error{config}.
void read_run_config(const std::string& text, const std::string& path, Configuration& configuration);

/// The name of a run from its command line: the preset and the names of configuration files; empty where it names
/// neither.
std::string run_name_of(const CommonFlags& flags);
/// Where a run is written that no option names: "runs/" and `run_name`, else the name of the data set.
std::string usual_run_dir(const std::string& run_name, const std::string& data_dir);

/// YAML of all values, grouped, reloadable with -c; with_origin adds a comment with each value's origin.
std::string render_yaml(const Table& table, bool with_origin);
// Help of the commands; `commands` are all of them, the training command first.
using Commands = std::vector<const Syntax*>;
/// --help of a command, 100 columns.
std::string render_help(const Table& table, const Commands& commands, const Syntax& chosen);
/// --help of train: examples, commands and the usual options, 80 columns.
std::string render_short_help(const Table& table, const Commands& commands);
/// One line for each option: name, default, what it does.
std::string render_option_list(const Table& table);
/// docs/options.md.
std::string render_markdown(const Table& table, const Commands& commands);
/// train.1, the manual page.
std::string render_man(const Table& table, const Commands& commands, const std::string& version);
/// A JSON schema of configuration files.
std::string render_schema();
/// A script that completes the command line in `shell`; `networks` are the values of --model. Throws Error{usage} for
/// other shells than those of completion_shells().
std::string render_completion(const Table& table, const Commands& commands, const std::string& shell,
                              const std::vector<std::string>& networks);
std::vector<std::string> completion_shells();

/// Presets embedded at build time from configs/*.yaml: name -> text. Throws Error{config} listing the names.
const std::string& preset_text(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace stoker::config
