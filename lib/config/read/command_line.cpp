// SPDX-License-Identifier: Apache-2.0
// The order of precedence: built-in values < preset < configuration files in order < flags.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/read/flags.h"
#include "config/read/syntax.h"
#include "config/table/parse_value.h"
#include "config/yaml/foreign_yaml.h"
#include "config/yaml/yaml_tree.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"

namespace stoker::config {
namespace {

constexpr const char* kDefaultPreset = "fashion_mnist";

/// A mistake, and the exit code for it.
struct Problems {
  std::vector<std::string> flags;
  std::vector<std::string> missing_files;
  std::vector<std::string> files;

  bool any() const { return !flags.empty() || !missing_files.empty() || !files.empty(); }
};

void apply_flags(const std::vector<FlagValue>& values, Configuration& out, std::vector<std::string>& problems) {
  for (const FlagValue& value : values) {
    std::vector<Assignment> assignments;
    const std::string written = value.written.substr(value.written.find_first_not_of('-'));  // an alias, perhaps
    std::string problem = out.table.expand(out.table.find(written) ? written : value.name, value.text, assignments);
    out.table.note_use(value.name, {Origin::Kind::flag, value.written});
    for (const Assignment& assignment : assignments) {
      if (problem.empty())
        problem = out.table.set(*assignment.row, assignment.text, {Origin::Kind::flag, value.written});
    }
    if (!problem.empty()) problems.push_back(value.written + ": " + problem);
  }
}

void apply_file(const std::string& path, const Syntax& syntax, Configuration& out, Problems& problems) {
  std::string text;
  try {
    text = core::read_file(path, kMaxYamlBytes);
  } catch (const core::Error& error) {
    if (error.kind() == core::ErrorKind::os || error.kind() == core::ErrorKind::io) throw;
    const bool is_missing = error.kind() == core::ErrorKind::no_input || error.kind() == core::ErrorKind::permission;
    (is_missing ? problems.missing_files : problems.files).push_back(error.what());
    return;
  }
  std::vector<std::string> flags;
  for (const Flag& flag : syntax.flags) flags.push_back(flag.name);
  read_yaml_with_notes(text, path, Origin::Kind::file, flags, out.table, problems.files, out.notes);
}

void apply_preset(const std::string& name, const std::string& why, Configuration& out, Problems& problems) {
  std::vector<std::string> found;
  try {
    read_yaml(preset_text(name), "preset " + name, Origin::Kind::preset, out.table, found);
  } catch (const core::Error& error) {
    found.push_back(std::string(error.what()) + " (" + error.hint() + ")");
  }
  problems.files.insert(problems.files.end(), found.begin(), found.end());
  if (why.empty()) return;
  for (Row& row : out.table.rows()) {
    if (row.origin.kind == Origin::Kind::preset) row.origin.detail += why;
  }
}

[[noreturn]] void throw_problems(const Problems& problems, const Syntax& syntax, const std::string& correction) {
  std::vector<std::string> all = problems.flags;
  all.insert(all.end(), problems.missing_files.begin(), problems.missing_files.end());
  all.insert(all.end(), problems.files.begin(), problems.files.end());
  std::string message = all.front();
  if (all.size() > 1) {
    message =
        core::format("{} problems with the {}:", all.size(), problems.flags.empty() ? "configuration" : "command line");
    for (const std::string& problem : all) message += "\n  " + problem;
  }
  if (!problems.flags.empty()) {
    const std::string help = syntax.shown_name() + (syntax.name.empty() ? " --help-all" : " --help");
    throw core::Error(core::ErrorKind::usage, message, correction.empty() ? help + " lists every flag" : correction);
  }
  if (!problems.missing_files.empty()) {
    throw core::Error(core::ErrorKind::no_input, message, "check the path given with --config");
  }
  const bool is_yaml = message.find(": not valid YAML: ") != std::string::npos;
  throw core::Error(core::ErrorKind::config, message,
                    is_yaml ? "a line is `name: value`, indented by spaces; train --print-config prints a whole file"
                            : "train --help-all lists every option with its range");
}

bool names_data(const Configuration& configuration) {
  const DataOptions& o = configuration.options.data;
  return configuration.table.row_of(o.data_dir).origin.kind != Origin::Kind::built_in ||
         configuration.table.row_of(o.dataset).origin.kind != Origin::Kind::built_in;
}

/// Whether a folder is that of the default preset, by whatever path.
bool is_example(const std::string& data_dir) {
  Configuration example;
  std::vector<std::string> ignored;
  read_yaml(preset_text(kDefaultPreset), "", Origin::Kind::preset, example.table, ignored);
  std::error_code absent;
  return std::filesystem::equivalent(data_dir, example.options.data.data_dir, absent);
}

/// The value of an option as a part of a file name.
std::string name_part(const Row& row) {
  std::string text = row.render();
  std::replace(text.begin(), text.end(), '/', '-');
  return text;
}

/// {lr} in run-dir stands for the value of --lr as it was given; {n} is left for who makes the directory.
void name_run_dir(Configuration& out, std::vector<std::string>& problems) {
  Auto<std::string>& run_dir = out.options.run.run_dir;
  if (run_dir.is_auto()) return;
  std::string path = run_dir.value();
  for (size_t begin = path.find('{'); begin != std::string::npos; begin = path.find('{', begin + 1)) {
    const size_t end = path.find('}', begin);
    if (end == std::string::npos) break;
    const std::string name = path.substr(begin + 1, end - begin - 1);
    if (name == "n") continue;
    const Row* const row = out.table.find(name);
    if (row == nullptr || row->field == &run_dir) {
      problems.push_back("--run-dir: " + shown("{" + name + "}") + " names no option; {n} is the next free number");
      continue;
    }
    path.replace(begin, end - begin + 1, name_part(*row));
  }
  run_dir = path;
}

/// Head poses are what these data sets hold, and 300W-LP is judged on AFLW2000.
void follow_dataset(const Syntax& syntax, Configuration& out) {
  DataOptions& o = out.options.data;
  const bool is_300w = o.dataset == DatasetType::w300lp;
  if (!is_300w && o.dataset != DatasetType::biwi) return;
  const auto bring = [&](Row& row, const std::string& text) {
    if (row.origin.kind != Origin::Kind::built_in || !syntax.takes(row)) return;
    out.table.set(row, text, {Origin::Kind::preset, "for this dataset"});
  };
  bring(out.table.row_of(o.task), "head-pose");
  const auto has = [&](const char* split) { return std::filesystem::is_directory(o.data_dir + "/" + split); };
  if (is_300w && has("300W_LP")) bring(out.table.row_of(o.train_split), "300W_LP");
  if (is_300w && has("AFLW2000") && o.val_fraction == 0) bring(out.table.row_of(o.val_split), "AFLW2000");
}

/// The level that Python trainers take from the environment, where no option sets another.
void apply_environment(Configuration& out) {
  const char* const given = std::getenv("TRAINER_LOG_LEVEL");
  Row& row = out.table.row_of(out.options.log.log_level);
  if (given == nullptr || row.origin.kind != Origin::Kind::built_in) return;
  std::string level = core::lower_case(given);
  if (level == "critical") level = "error";
  const std::string problem = out.table.set(row, level, {Origin::Kind::preset, "TRAINER_LOG_LEVEL"});
  if (!problem.empty()) out.notes.push_back("ignoring TRAINER_LOG_LEVEL: " + problem);
}

void note_what_has_no_effect(Configuration& out) {
  for (const Shorthand& shorthand : out.table.shorthands()) {
    if (shorthand.used.kind == Origin::Kind::built_in || shorthand.note.empty()) continue;
    out.notes.push_back(
        core::format("{} ({}) is accepted and ignored: {}", shorthand.name, shorthand.used.detail, shorthand.note));
  }
}

/// Data that only the command line can be missing: the example is trained, or its options hold for its folder.
void use_example(const Syntax& syntax, Configuration& out, Problems& problems) {
  CommonFlags& flags = out.flags;
  if (!syntax.name.empty() || !flags.preset.empty() || !flags.config_files.empty()) return;
  const bool is_named = out.table.row_of(out.options.data.data_dir).origin.kind == Origin::Kind::flag;
  if (is_named && is_example(out.options.data.data_dir)) {
    apply_preset(kDefaultPreset, ", for this data set", out, problems);
    flags.preset = kDefaultPreset;
    out.notes.push_back(core::format("known data set: with the options of preset {}", kDefaultPreset));
  } else if (!flags.names_data) {
    flags.preset = kDefaultPreset;
    apply_preset(kDefaultPreset, ", since no data was named", out, problems);
    out.notes.push_back(
        core::format("no data was named: trains the example {}; your own: train --data-dir FOLDER", kDefaultPreset));
  }
}

/// A name that no network has is reported with what else is wrong. timm's resnet18.a1_in1k is resnet18, and the tag its
/// weights.
void check_network(const std::vector<std::string>& networks, Configuration& out, Problems& problems) {
  Row& row = out.table.row_of(out.options.model.model);
  const auto is_known = [&](const std::string& name) {
    return std::find(networks.begin(), networks.end(), name) != networks.end();
  };
  const std::string given = row.render();
  if (networks.empty() || row.origin.kind == Origin::Kind::built_in || is_known(given) || core::file_exists(given))
    return;
  std::string name = given;
  for (const std::string hub : {"hf-hub:", "hf_hub:", "timm/"}) {
    if (name.rfind(hub, 0) == 0) name.erase(0, hub.size());
  }
  name.erase(std::min(name.find('.'), name.size()));
  const std::string ending = given.substr(given.find_last_of('.') + 1);
  const bool is_file = given.find('/') != std::string::npos || ending == "ts" || ending == "pt" || ending == "pth";
  if (name != given && is_known(name)) {
    out.table.set(row, name, row.origin);
    Row& weights = out.table.row_of(out.options.model.init_from);
    const bool is_asked = out.options.model.init_from == kDefaultWeights;
    if (is_asked) out.table.set(weights, given, weights.origin);
    out.notes.push_back(
        core::format("model {} is {}{}", core::printable(given), name,
                     is_asked ? ", with the weights of that tag"
                              : ": no weights are loaded; --pretrained loads those of this tag, where timm has them"));
  } else if (name == given || (!is_file && !near_name(name, networks).empty())) {
    problems.files.push_back(core::format("{}: unknown model {}{} (train list models prints all)", row.origin.detail,
                                          shown(given), suggestion(name, networks)));
  }
}

void parse(const CommandLine& line, bool options_alone, Configuration& out) {
  Problems problems;
  CommonFlags& flags = out.flags;
  std::string correction;
  const std::vector<FlagValue> values = parse_flags(line, out.table, flags, options_alone, problems.flags, correction);
  if ((flags.help || flags.help_all || flags.version) && correction.empty()) return;

  if (!flags.preset.empty()) apply_preset(flags.preset, "", out, problems);
  for (const std::string& path : flags.config_files) apply_file(path, *line.syntax, out, problems);
  apply_flags(values, out, problems.flags);
  apply_environment(out);

  flags.names_data = names_data(out);
  follow_dataset(*line.syntax, out);
  check_network(line.networks, out, problems);
  use_example(*line.syntax, out, problems);
  name_run_dir(out, problems.flags);
  if (problems.any()) throw_problems(problems, *line.syntax, correction);
  note_what_has_no_effect(out);
}

}  // namespace

std::string run_name_of(const CommonFlags& flags) {
  std::string name = flags.preset;
  for (const std::string& path : flags.config_files) {
    name += (name.empty() ? "" : "+") + std::filesystem::path(path).stem().string();
  }
  return name;
}

std::string usual_run_dir(const std::string& run_name, const std::string& data_dir) {
  std::string name = run_name;
  if (name.empty()) {
    std::filesystem::path folder = data_dir;
    if (!folder.has_filename()) folder = folder.parent_path();
    name = folder.filename().string();
  }
  if (name.empty() || name == "." || name == "..") name = "run";
  std::replace(name.begin(), name.end(), '/', '-');
  return "runs/" + name;
}

/// Whether a file is missing, empty or begins with the time of a line, as every log does.
static bool begins_as_log(const std::string& path) {
  const std::string form = "0000-00-00T";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return true;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // a pipe would be waited for
  std::string begin(form.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  std::replace_if(
      begin.begin(), begin.end(), [](unsigned char c) { return std::isdigit(c) != 0; }, '0');
  return begin.empty() || begin == form;
}

bool is_log_of_run(const std::string& path, const std::string& run_dir) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto whole = [&](const std::string& name) {  // links resolved, as far as the path is there
    fs::path resolved = fs::weakly_canonical(fs::absolute(name, ignored), ignored).lexically_normal();
    return ignored ? fs::path() : resolved;
  };
  const fs::path inside = whole(path).lexically_relative(whole(run_dir));
  if (inside.empty() || ignored || inside.extension() != ".log" || *inside.begin() == "checkpoints") return false;
  return std::none_of(inside.begin(), inside.end(), [](const fs::path& part) { return part.native()[0] == '.'; });
}

/// A configuration file may come from anybody, and a log may end up where a shell or a service reads it: a file names
/// logs inside the run directory, the command line any. Nothing hidden, no existing file that is not a log, and no
/// name of a record of the run, either: run-dir may stand in a file and may be somebody's home.
void refuse_log_file_elsewhere(const Configuration& out) {
  const std::string& log_file = out.options.log.log_file;
  const Origin& origin = out.table.row_of(out.options.log.log_file).origin;
  if (log_file.empty() || origin.kind != Origin::Kind::file) return;
  const Auto<std::string>& named = out.options.run.run_dir;
  const std::string run_dir =
      named.is_auto() ? usual_run_dir(run_name_of(out.flags), out.options.data.data_dir) : named.value();
  const bool is_allowed = is_log_of_run(log_file, run_dir);
  if (is_allowed && begins_as_log(log_file)) return;
  if (is_allowed) {
    throw core::Error(core::ErrorKind::config,
                      core::format("{}: log-file: {} exists and is not a log file", core::printable(origin.detail),
                                   core::printable(log_file)),
                      "name another file, or name it on the command line: --log-file");
  }
  throw core::Error(
      core::ErrorKind::config,
      core::format("{}: log-file: {} is not a .log file in the run directory {}, "
                   "outside checkpoints/ and hidden folders",
                   core::printable(origin.detail), core::printable(log_file), core::printable(run_dir)),
      core::format("log-file: {}/more.log (paths are relative to the current folder), or name any file on the command "
                   "line: --log-file",
                   core::printable(run_dir)));
}

void name_data(const std::string& dataset, Options& options) {
  if (!core::is_utf8(dataset)) {
    throw core::Error(core::ErrorKind::usage,
                      core::format("the data set's name {} is not valid UTF-8, so that no record could hold it",
                                   core::printable(dataset)),
                      "rename the folder, or name a symbolic link to it");
  }
  options.data.data_dir = dataset;
}

void parse_command_line(const CommandLine& line, Configuration& out) { parse(line, /*options_alone=*/false, out); }

void parse_options(const CommandLine& line, Configuration& out) { parse(line, /*options_alone=*/true, out); }

}  // namespace stoker::config
