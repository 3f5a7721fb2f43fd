// SPDX-License-Identifier: Apache-2.0
#include "config/read/corrected_words.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>

#include "config/table/foreign_words.h"
#include "config/table/parse_value.h"
#include "core/format.h"
#include "core/text/address.h"

namespace stoker::config {
namespace {

bool has(const std::vector<std::string>& names, const std::string& word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

bool names_run(const std::string& key) { return has({"model", "weights", "checkpoint", "ckpt", "run"}, key); }

/// How many words from `begin` on are numbers.
size_t numbers_at(const std::vector<std::string>& words, size_t begin) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  size_t end = begin;
  double ignored = 0;
  while (end < words.size() && read_number(words[end], {-kAny, kAny}, ignored).empty()) ++end;
  return end - begin;
}

/// Whether a word that should name a run names a file or a folder of another kind.
bool is_input(const std::string& word) {
  std::error_code ignored;
  const std::string ending = core::lower_case(std::filesystem::path(word).extension().string());
  if (std::filesystem::is_directory(word, ignored)) {
    return !std::filesystem::exists(word + "/checkpoints", ignored) &&
           !std::filesystem::exists(word + "/state.json", ignored);
  }
  return std::filesystem::exists(word, ignored) &&
         !has({".ts", ".pt", ".pth", ".safetensors", ".onnx", ".ckpt", ".bin"}, ending);
}

std::string comma_joined(const std::vector<std::string>& words, size_t begin, size_t count) {
  std::string text = words[begin];
  for (size_t i = begin + 1; i < begin + count; ++i) text += "," + words[i];
  return text;
}

}  // namespace

CorrectedWords::CorrectedWords(const CommandLine& line, const Table& table, const FlagNames& names,
                               std::vector<std::string>& problems)
    : line_(line),
      syntax_(*line.syntax),
      table_(table),
      names_(names),
      trains_(syntax_.takes(*table.find("epochs"))),
      problems_(problems) {}

void CorrectedWords::add_missing(const std::string& name, const std::string& first) {
  const std::string place = syntax_.arguments.front().name;
  if (name != place && place.find("RUN") == 0 && is_input(first)) {  // train predict photo.jpg
    is_corrected_ = true;
    meant_.insert(std::find(meant_.begin(), meant_.end(), first), place);
    problems_.push_back("missing " + place + ": " + shown(first) + " is an input; train runs lists runs");
    return;
  }
  meant_.push_back(name);
  problems_.push_back("missing " + name + ": " + syntax_.usage);
}

bool CorrectedWords::wants_help() const { return has(meant_, "--help"); }

std::string CorrectedWords::whole_command() const {
  if (!is_corrected_ && line_.mistake.empty()) return "";
  std::string text = syntax_.shown_name();
  std::string before;
  for (const std::string& word : meant_) {
    const FlagTarget* const target = names_.target_of(before);
    const bool is_network = target != nullptr && target->option == "model";
    const std::string near = is_network ? near_name(word, line_.networks) : "";  // a known one is its own nearest
    text += " " + core::shell_word(near.empty() || word.find_first_of("./") != std::string::npos ? word : near);
    before = word;
  }
  if (meant_.empty() && syntax_.name.empty()) text += " --data-dir FOLDER";
  if (unknown_first_.empty()) return text;
  std::vector<std::string> commands;
  for (const Syntax* const other : line_.others) {
    const std::string first = other->first_word();
    if (!first.empty() && (commands.empty() || commands.back() != first)) commands.push_back(first);
  }
  return text + " if " + core::shell_word(unknown_first_) +
         " is a folder of images; commands: " + core::list_text(commands, commands.size()) +
         "; without a command train trains";
}

void CorrectedWords::correct(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (const FlagTarget* const target = names_.target_of(names_.with_canonical_dashes(word)))
      given_.push_back(target->flag != nullptr ? target->flag->name : target->option);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = names_.with_canonical_dashes(words[i]);
    const FlagTarget* const target = names_.target_of(word);
    if (words[i] == "--") {
      for (; i < words.size(); ++i) keep(words[i]);
    } else if (target != nullptr) {
      keep(words[i]);
      if (word.find('=') != std::string::npos || i + 1 == words.size()) continue;
      i += keep_value(words, i + 1, *target);
    } else if (word.size() > 1 && word[0] == '-') {
      i += correct_flag(words, i, word);
    } else if (!correct_pair(words, word, i == 0) && !correct_path(word, i == 0)) {
      corrected_.push_back(word);
      if (i == 0 || !syntax_.name.empty()) meant_.push_back(word);  // training takes no such words
      ++plain_words_;
    }
  }
}

void CorrectedWords::keep(const std::string& word) {
  corrected_.push_back(word);
  meant_.push_back(word);
}

bool CorrectedWords::takes_several(const FlagTarget& target) const {
  const Row* const row = table_.find(target.option);
  return row != nullptr && (row->is_list || row->has_parts || row->placeholder.find('|') != std::string::npos);
}

size_t CorrectedWords::keep_value(const std::vector<std::string>& words, size_t begin, const FlagTarget& target) {
  const std::string& next = words[begin];
  if (target.is_switch ? !target.has_value(next) : begins_long_flag(next)) return 0;
  const size_t count = takes_several(target) ? numbers_at(words, begin) : 1;
  if (count < 2) {
    keep(next);
    return 1;
  }
  const std::string text = comma_joined(words, begin, count);
  is_corrected_ = true;
  problems_.push_back(target.written + ": values have commas between them; write " + target.written + " " + text);
  keep(text);
  return count;
}

/// By its whole name (trainer.devices), else by its last part (trainer.max_epochs, +optim.lr).
bool CorrectedWords::translate(const std::string& name, const std::string& text, Options& options,
                               std::string& note) const {
  if (!trains_) return false;
  const std::string key = name.substr(name.find_last_of(".+~") + 1);
  for (const std::string& one : {name, key}) {
    options.clear();
    if (translate_foreign_option(one, text, options, note)) return true;
  }
  const Row* const row = table_.find(key);
  if (key == name || key.size() < 2 || (row == nullptr && table_.find_shorthand(key) == nullptr)) return false;
  options = {{row != nullptr ? row->name : key, text}};
  return true;
}

size_t CorrectedWords::correct_flag(const std::vector<std::string>& words, size_t at, const std::string& word) {
  const size_t equals = std::min(word.find('='), word.size());
  const size_t begin = std::min(word.find_first_not_of('-'), equals);
  const std::string name = kebab(word.substr(begin, equals - begin));
  size_t behind = 0;  // words that are its value
  if (equals == word.size() && at + 1 < words.size()) {
    const std::string& next = words[at + 1];
    behind = next.empty() || next[0] != '-' ? std::max<size_t>(1, numbers_at(words, at + 1)) : 0;
  }
  const std::string text = equals < word.size() ? word.substr(equals + 1)
                           : behind > 0         ? comma_joined(words, at + 1, behind)
                                                : "true";
  const std::string place = syntax_.arguments.empty() ? "" : syntax_.arguments.front().name;
  if (place.rfind("RUN", 0) == 0 && text != "true" && names_run(name)) {
    correct_place(name, text, core::printable(word.substr(0, equals)) + ": a run is named without a flag");
    return behind;
  }
  Options options;
  std::string note;
  const bool is_ours = !old_name_hint(name, true).empty() || !names_.commands_with(name).empty();
  const std::string problem = core::printable(word.substr(0, equals)) + ": unknown flag";
  if (!is_ours && syntax_.name.empty() && correct_run_dir(words, name, problem)) return behind;
  if (!is_ours && translate(name, text, options, note)) {
    replace(problem, options, note);
    return behind;
  }
  corrected_.push_back(word);
  if (behind > 0) corrected_.push_back(text);
  if (word[1] != '-' && names_.all().count(word.substr(1, 1)) > 0) meant_.push_back(word);  // -b64
  const std::string near = word[1] == '-' && !is_ours ? near_name(name, names_.long_names()) : "";
  if (!near.empty()) meant_.push_back("--" + near);
  if (!near.empty() && text != "true") meant_.push_back(text);
  return behind;
}

/// key=value, as Ultralytics and Hydra take options.
bool CorrectedWords::correct_pair(const std::vector<std::string>& words, const std::string& word, bool is_first) {
  const size_t equals = word.find('=');
  std::error_code ignored;
  if (equals == std::string::npos || std::filesystem::exists(word, ignored)) return false;
  const std::string name = kebab(word.substr(0, equals)), key = name.substr(name.find_last_of(".+~") + 1);
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '-'; };
  if (key.empty() || !std::all_of(key.begin(), key.end(), is_of_name)) return false;
  const std::string text = word.substr(equals + 1);
  const std::string problem = not_expected(word, is_first);
  if (!trains_) return !syntax_.arguments.empty() && correct_place(key, text, problem);
  if (syntax_.name.empty() && correct_run_dir(words, key, problem)) return true;
  Options options;
  std::string note;
  if (translate(name, text, options, note)) {
    replace(problem, options, note);
  } else if (key.size() > 1 && (table_.find(key) || table_.find_shorthand(key))) {
    replace(problem, {{table_.find(key) ? table_.find(key)->name : key, text}}, "");
  } else {
    is_corrected_ = true;
    problems_.push_back(problem + suggestion(key, names_.long_names(), "--"));
    if (const std::string near = near_name(key, names_.long_names()); !near.empty())
      meant_.insert(meant_.end(), {"--" + near, text});
  }
  return true;
}

/// project and name are together the folder of a run.
bool CorrectedWords::correct_run_dir(const std::vector<std::string>& words, const std::string& key,
                                     const std::string& problem) {
  if (key != "name" && key != "project") return false;
  const bool is_given = has(given_, "run-dir");
  replace(problem, is_given ? Options() : Options{{"run-dir", foreign_run_dir(words)}}, "--run-dir has both");
  given_.push_back("run-dir");
  return true;
}

/// model=best.pt data=photos of commands that take such words by their place.
bool CorrectedWords::correct_place(const std::string& key, const std::string& text, const std::string& problem) {
  const bool is_run = names_run(key);
  is_corrected_ = true;
  if (is_run || has({"data", "source", "input", "images"}, key)) {
    problems_.push_back(problem + "; write " + core::shell_word(text));
    corrected_.insert(is_run ? corrected_.begin() : corrected_.end(), text);
    meant_.insert(is_run ? meant_.begin() : meant_.end(), text);
  } else if (names_.all().count(key) > 0) {
    replace(problem, {{key, text}}, "");
  } else {
    problems_.push_back(problem + suggestion(key, names_.long_names(), "--"));
  }
  return true;
}

namespace {

/// Whether a folder holds folders, and nothing that is called like a split.
bool holds_classes_alone(const std::string& folder) {
  std::error_code error;
  int64_t folders = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = core::lower_case(at->path().filename().string());
    for (const char* const split : {"train", "val", "test", "t10k"}) {
      if (name.rfind(split, 0) == 0) return false;
    }
    std::error_code ignored;
    folders += name[0] != '.' && at->is_directory(ignored);
  }
  return folders >= 2;
}

}  // namespace

std::string CorrectedWords::not_expected(const std::string& word, bool is_first) const {
  return (is_first && line_.mistake.empty() && syntax_.name.empty() ? "unknown command " : "unexpected word ") +
         shown(word);
}

/// A file, a network, or a first word that is not a command, where an option should stand.
bool CorrectedWords::correct_path(const std::string& word, bool is_first) {
  if (word.empty()) return false;
  std::error_code ignored;
  if (core::is_address(word) && syntax_.name.empty()) {
    problems_.push_back(core::printable(word) + " is an address; " + core::copy_first(word) + "name the folder");
    is_corrected_ = true;
    for (const char* const part : {"--data-dir", "FOLDER"}) keep(part);
    given_.emplace_back("data-dir");
    return true;
  }
  const std::string problem = not_expected(word, is_first);
  if (!syntax_.name.empty()) {  // train plan photos
    const bool is_surplus = trains_ && plain_words_ >= syntax_.arguments.size();
    if (!is_surplus || has(given_, "data-dir") || !std::filesystem::is_directory(word, ignored)) return false;
    replace(problem, {{"data-dir", word}}, "");
    return true;
  }
  const std::string option = option_meant_by(word, line_.networks);
  if (option == "data-dir" && !std::filesystem::exists(word, ignored) && word.find('/') == std::string::npos) {
    const bool is_command = std::any_of(line_.others.begin(), line_.others.end(),
                                        [&](const Syntax* other) { return other->first_word() == word; });
    if (!is_first || is_command) return false;
    if (line_.mistake.empty()) unknown_first_ = word;
  }
  if (has(given_, option) && option != "config") {
    const bool is_folder = !unknown_first_.empty() && std::filesystem::is_directory(word, ignored);
    if (is_folder) {  // train tune photos: the first word is none of ours
      for (std::vector<std::string>* const words : {&corrected_, &meant_}) {
        std::replace(words->begin(), words->end(), unknown_first_, word);
      }
    }
    unknown_first_.clear();
    return is_folder;
  }
  given_.push_back(option);
  Options options = {{option, word}};
  if (option == "data-dir" && holds_classes_alone(word) && !has(given_, "val-fraction") && !has(given_, "val-split"))
    options.push_back({"val-fraction", "0.1"});
  replace(problem, options, "", /*names_ours=*/unknown_first_.empty());
  return true;
}

void CorrectedWords::replace(const std::string& problem, const Options& options, const std::string& note,
                             bool names_ours) {
  is_corrected_ = true;
  std::string ours;
  for (auto [name, text] : options) {
    const Row* const row = table_.find(name);
    if (row != nullptr) text = in_small_letters(*row, text);
    const bool has_brackets = text.size() > 1 && (text[0] == '[' || text[0] == '(');
    if (has_brackets && row != nullptr && (row->is_list || row->has_parts)) text = without_brackets(text);
    const bool is_plain = row != nullptr && row->is_switch && (text == "true" || text == "false");
    std::vector<std::string> words = {(is_plain && text == "false" ? "--no-" : "--") + name};
    if (!is_plain) words.push_back(text);
    for (const std::string& word : words) {
      keep(word);
      ours += (ours.empty() ? "write " : " ") + core::shell_word(word);
    }
  }
  if (ours.empty()) ours = "leave it out" + (note.empty() ? "" : ": " + note);
  problems_.push_back(problem + (names_ours ? "; " + ours : ""));
}

}  // namespace stoker::config
