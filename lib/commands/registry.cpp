// SPDX-License-Identifier: Apache-2.0
// Every command of the program, and what its names have been.
#include <algorithm>
#include <filesystem>
#include <map>

#include "commands/audit/audit.h"
#include "commands/bench/bench.h"
#include "commands/check/check.h"
#include "commands/command.h"
#include "commands/eval/eval.h"
#include "commands/export/export.h"
#include "commands/import/import.h"
#include "commands/inspect/inspect.h"
#include "commands/pack/pack.h"
#include "commands/plan/plan.h"
#include "commands/predict/predict.h"
#include "commands/preview/preview.h"
#include "commands/train/train.h"
#include "config/table/parse_value.h"
#include "config/table/table.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::train {

// Commands that need no LibTorch.
Command list_command();
Command runs_command();
Command sweep_command();

namespace {

core::Error wrong(const std::string& message, const std::string& hint) {
  return {core::ErrorKind::usage, message, hint};
}

/// Commands of older programs, with what does the same now.
const std::map<std::string, std::string>& former_names() {
  static const std::map<std::string, std::string> names = {{"ls", "runs"},
                                                           {"watch", "runs --follow"},
                                                           {"report", "runs --html"},
                                                           {"replay", "inspect replay"},
                                                           {"verify", "inspect verify"},
                                                           {"diff", "inspect diff"},
                                                           {"blame", "inspect blame"},
                                                           {"models", "list models"},
                                                           {"presets", "list presets"},
                                                           {"completion", "list completion"}};
  return names;
}

std::vector<std::string> first_words(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    const std::string first = command.first_word();
    if (!first.empty() && (names.empty() || names.back() != first)) names.push_back(first);
  }
  return names;
}

const Command* find(const std::vector<Command>& commands, const std::string& name) {
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

/// Command names that other programs use, each with the command here that does the same; "" trains.
const std::map<std::string, std::string>& names_of_others() {
  static const std::map<std::string, std::string> names = [] {
    const std::pair<const char*, const char*> meanings[] = {
        {"", "fit train training finetune fine-tune learn start run pretrain"},
        {"--resume", "resume continue restart go-on"},
        {"--version", "version v ver"},
        {"--help", "usage man commands"},
        {"--print-config", "config cfg settings"},
        {"eval", "val valid validate validation test testing evaluate evaluation score metrics"},
        {"predict", "pred infer inference classify prediction predictions label"},
        {"export", "convert onnx deploy torchscript"},
        {"sweep", "tune tuner hpo hyperopt optimize optimise search grid-search ablate"},
        {"bench lr", "lr-find lr-finder find-lr lrfind"},
        {"bench all", "benchmark speed profile"},
        {"check", "checks doctor info env"},
        {"runs", "status history summary logs"},
        {"preview", "visualize visualise view plot"},
        {"plan", "estimate"},
        {"audit", "clean lint dedupe"}};
    std::map<std::string, std::string> all;
    for (const auto& [ours, theirs] : meanings) {
      for (const std::string& name : config::split_words(theirs, ' ')) all[name] = ours;
    }
    return all;
  }();
  return names;
}

/// The task behind a word of other programs that no command does here; empty for any other word.
std::string task_without_command(const std::string& word) {
  static const std::map<std::string, std::string> tasks = {{"detect", "detection"},
                                                           {"detection", "detection"},
                                                           {"segment", "segmentation"},
                                                           {"segmentation", "segmentation"},
                                                           {"pose", "detection of keypoints"},
                                                           {"obb", "detection"},
                                                           {"track", "tracking"},
                                                           {"tracking", "tracking"}};
  const auto found = tasks.find(core::lower_case(word));
  return found == tasks.end() ? "" : found->second;
}

/// detect train, task=segment mode=val: refused, whatever follows.
void refuse_tasks(const std::vector<std::string>& words) {
  std::error_code ignored;
  for (const std::string& word : words) {
    const bool is_named = word.rfind("task=", 0) == 0, is_first = &word == &words.front();
    const std::string task = is_named   ? task_without_command(word.substr(5))
                             : is_first ? task_without_command(word)
                                        : "";
    if (task.empty() || std::filesystem::exists(word, ignored)) continue;
    throw wrong(
        core::format("{}: {} is not supported", config::shown(word), task),
        "train learns classes, labels, numbers and head poses of whole images (--task); boxes: crop the objects "
        "into CLASS/ folders, then train --data-dir FOLDER");
  }
}

/// Ultralytics names a task in front, or both as task=classify mode=train: what is left is the mode in front.
void leave_out_tasks(std::vector<std::string>& words) {
  words.erase(
      std::remove_if(words.begin(), words.end(), [](const std::string& word) { return word.rfind("task=", 0) == 0; }),
      words.end());
  const auto mode =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.rfind("mode=", 0) == 0; });
  if (mode != words.end()) {
    std::rotate(words.begin(), mode, mode + 1);
    words[0] = words[0].substr(5);
  } else if (words.size() > 1 && words[0] == "classify" &&
             (names_of_others().count(words[1]) > 0 || words[1] == "predict" || words[1] == "export")) {
    words.erase(words.begin());
  }
}

/// The command that a first word probably means which is not a command.
ChosenCommand meant(const std::vector<Command>& commands, std::vector<std::string> words) {
  const std::string written = words[0];
  const auto former = former_names().find(written);
  if (former != former_names().end()) {
    throw wrong(core::format("train {} is now train {}", written, former->second),
                core::format("train {} --help", former->second.substr(0, former->second.find(" --"))));
  }
  refuse_tasks(words);
  leave_out_tasks(words);
  if (words.empty()) words = {"train"};
  const std::string unknown = "unknown command " + config::shown(written);
  const std::string plain = core::lower_case(config::kebab(words[0]));
  const auto other = names_of_others().find(plain);
  const std::string ours = other == names_of_others().end() ? plain : other->second;
  const size_t blank = std::min(ours.find(' '), ours.size());
  const Command* const command =
      ours.empty() || ours[0] == '-' ? &commands.front() : find(commands, ours.substr(0, blank));
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (command != nullptr) {
    if (blank < ours.size()) rest.insert(rest.begin(), ours.substr(blank + 1));
    if (ours == "--resume" && (rest.empty() || rest[0][0] == '-')) rest.insert(rest.begin(), "RUN");
    if (ours == "sweep") {
      rest.insert(rest.begin(), {"sweeps/lr", "--over", "lr=0.1,0.03,0.01"});
      return {command, rest,
              unknown + "; train sweep compares values of options, train bench lr tries learning rates alone"};
    }
    if (!command->name.empty()) return {command, rest, unknown + "; did you mean " + ours + "?"};
    if (!ours.empty()) {
      rest.insert(rest.begin(), ours);
      return {command, rest, unknown + "; did you mean " + ours + "?"};
    }
    return {command, rest, unknown + "; training is train without a command"};
  }
  std::error_code ignored;
  const std::string nearest = config::near_name(words[0], first_words(commands));
  const bool is_path = words[0].find_first_of("/.=") != std::string::npos;
  if (!nearest.empty() && !is_path && !std::filesystem::exists(words[0], ignored)) {
    return {find(commands, nearest), rest, unknown + "; did you mean " + nearest + "?"};
  }
  return {&commands.front(), words};
}

/// A command line without a word: the first steps, and nothing is trained by chance.
core::Error first_steps() {
  return wrong("neither data nor a command is named",
               "train trains networks for images and sounds; the first steps:\n"
               "  train --data-dir photos --val-fraction 0.1   trains on photos/CLASS/*.jpg, into runs/photos\n"
               "  train --preset fashion_mnist                 trains the example, Fashion-MNIST\n"
               "  train eval runs/photos                       evaluates the run, with confidence intervals\n"
               "  train predict runs/photos new/*.jpg          predicts the classes of new images\n"
               "train --help has the usual options and all commands, train COMMAND --help those of one");
}

}  // namespace

std::vector<Command> all_commands() {
  return {train_command(),  eval_command(),  predict_command(), sweep_command(),   plan_command(),
          check_command(),  bench_command(), pack_command(),    preview_command(), import_command(),
          export_command(), audit_command(), runs_command(),    inspect_command(), replay_command(),
          verify_command(), diff_command(),  blame_command(),   list_command()};
}

ChosenCommand choose_command(const std::vector<Command>& commands, int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words[0] == "help") {  // train help eval
    words.erase(words.begin());
    words.push_back("--help");
  }
  if (words.empty()) throw first_steps();
  const auto is_name = [](const std::string& word) { return !word.empty() && word[0] != '-'; };
  if (!is_name(words[0])) return {&commands.front(), words};
  if (words.size() > 1) {
    const Command* const part = find(commands, words[0] + " " + words[1]);
    if (part != nullptr) return {part, {words.begin() + 2, words.end()}};
  }
  const Command* const command = find(commands, words[0]);
  if (command == nullptr) return meant(commands, words);
  return {command, {words.begin() + 1, words.end()}};
}

}  // namespace stoker::train
