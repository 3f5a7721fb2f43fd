// SPDX-License-Identifier: Apache-2.0
#include "config/read/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "config/read/syntax.h"
#include "config/table/foreign_words.h"
#include "config/table/parse_value.h"
#include "core/format.h"

namespace stoker::config {
namespace {

bool has(const std::vector<std::string>& names, const std::string& word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

/// The meaning of a registered name.
struct FlagTarget {
  std::string option;          ///< row, alias or shorthand; empty for a flag of the command itself
  const Flag* flag = nullptr;  ///< of the command, or of all commands
  bool is_own = false;         ///< of the command
  bool is_switch = false;
  bool negated = false;  ///< `--no-x`
  std::string written;
  std::vector<std::string> words;  ///< of a switch, its values besides true and false

  /// Behind a switch these words are its value: `--amp auto`. Others are words of their own.
  bool has_value(const std::string& word) const {
    const std::string small = core::lower_case(word);
    return small == "true" || small == "false" || small == "auto" || has(words, small);
  }
};

bool begins_long_flag(const std::string& word) {
  return word.size() > 2 && word[0] == '-' && word[1] == '-' && std::isalpha(static_cast<unsigned char>(word[2]));
}

class FlagParser {
 public:
  FlagParser(const CommandLine& line, const Table& table, CommonFlags& common, bool options_alone,
             std::vector<std::string>& problems)
      : line_(line),
        syntax_(*line.syntax),
        common_(common_flags(syntax_, common)),
        table_(table),
        options_alone_(options_alone),
        problems_(problems) {
    app_.set_help_flag();
    app_.allow_extras();
    register_all();
  }

  std::vector<FlagValue> parse(const std::vector<std::string>& words) {
    correct(words);
    std::vector<std::string> ready = normalized(corrected_);
    std::reverse(ready.begin(), ready.end());  // the order in which CLI11 takes a vector
    try {
      app_.parse(std::move(ready));
    } catch (const CLI::Error& error) {
      problems_.push_back(error.what());
    }
    std::vector<FlagValue> values = collect();
    sort_remaining();
    return values;
  }

  /// The whole command as it was probably meant; "" where nothing was corrected.
  std::string correction() const {
    if (!is_corrected_ && line_.mistake.empty()) return "";
    std::string text = syntax_.shown_name();
    std::string before;
    for (const std::string& word : meant_) {
      const FlagTarget* const target = target_of(before);
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

 private:
  using Options = std::vector<std::pair<std::string, std::string>>;  ///< name and text

  /// Fills corrected_ and meant_: words as other programs take them (photos, epochs=3, --lr0 0.1) become ours, each
  /// with a problem.
  void correct(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (const FlagTarget* const target = target_of(with_canonical_dashes(word)))
        given_.push_back(target->flag != nullptr ? target->flag->name : target->option);
    }
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string word = with_canonical_dashes(words[i]);
      const FlagTarget* const target = target_of(word);
      if (words[i] == "--") {
        for (; i < words.size(); ++i) keep(words[i]);
      } else if (target != nullptr) {
        keep(words[i]);
        if (word.find('=') != std::string::npos || i + 1 == words.size()) continue;
        const std::string& next = words[i + 1];
        if (target->is_switch ? target->has_value(next) : !begins_long_flag(next)) keep(words[++i]);
      } else if (word.size() > 1 && word[0] == '-') {
        i += correct_flag(words, word, i + 1 < words.size() ? words[i + 1] : "-");
      } else if (!correct_pair(words, word, i == 0) && !correct_path(word, i == 0)) {
        keep(word);
      }
    }
  }

  void keep(const std::string& word) {
    corrected_.push_back(word);
    meant_.push_back(word);
  }

  /// Whether the word behind it belongs to it. What stays unknown is reported later, and left out of what was meant.
  bool correct_flag(const std::vector<std::string>& words, const std::string& word, const std::string& next) {
    const size_t equals = std::min(word.find('='), word.size());
    const size_t begin = std::min(word.find_first_not_of('-'), equals);
    const std::string name = kebab(word.substr(begin, equals - begin));
    const bool has_next = equals == word.size() && (next.empty() || next[0] != '-');
    const std::string text = equals < word.size() ? word.substr(equals + 1) : has_next ? next : "true";
    const std::string place = syntax_.arguments.empty() ? "" : syntax_.arguments.front().name;
    if (place.rfind("RUN", 0) == 0 && text != "true" && names_run(name)) {
      correct_place(name, text, core::printable(word.substr(0, equals)) + ": a run is named without a flag");
      return has_next;
    }
    Options options;
    std::string note;
    const bool is_ours = !old_name_hint(name, true).empty() || !commands_with(name).empty();
    const std::string problem = core::printable(word.substr(0, equals)) + ": unknown flag";
    if (!is_ours && syntax_.name.empty() && correct_run_dir(words, name, problem)) return has_next;
    if (!is_ours && syntax_.name.empty() && translate_foreign_option(name, text, options, note)) {
      replace(problem, options, note);
      return has_next;
    }
    corrected_.push_back(word);
    if (has_next) corrected_.push_back(next);
    if (word[1] != '-' && by_name_.count(word.substr(1, 1)) > 0) meant_.push_back(word);  // -b64
    const std::string near = word[1] == '-' && !is_ours ? near_name(name, long_names()) : "";
    if (!near.empty()) meant_.push_back("--" + near);
    if (!near.empty() && text != "true") meant_.push_back(text);
    return has_next;
  }

  /// key=value, as Ultralytics and Hydra take options.
  bool correct_pair(const std::vector<std::string>& words, const std::string& word, bool is_first) {
    const size_t equals = word.find('=');
    std::error_code ignored;
    if (equals == std::string::npos || std::filesystem::exists(word, ignored)) return false;
    std::string key = kebab(word.substr(0, equals));
    key = key.substr(key.find_last_of(".+~") + 1);  // trainer.max_epochs, +optim.lr
    const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '-'; };
    if (key.empty() || !std::all_of(key.begin(), key.end(), is_of_name)) return false;
    const std::string text = word.substr(equals + 1);
    const std::string problem = not_expected(word, is_first);
    if (!syntax_.arguments.empty()) return correct_place(key, text, problem);
    if (!syntax_.name.empty()) return false;
    if (correct_run_dir(words, key, problem)) return true;
    Options options;
    std::string note;
    if (translate_foreign_option(key, text, options, note)) {
      replace(problem, options, note);
    } else if (key.size() > 1 && (table_.find(key) || table_.find_shorthand(key))) {
      replace(problem, {{table_.find(key) ? table_.find(key)->name : key, text}}, "");
    } else {
      is_corrected_ = true;
      problems_.push_back(problem + suggestion(key, long_names(), "--"));
      if (const std::string near = near_name(key, long_names()); !near.empty())
        meant_.insert(meant_.end(), {"--" + near, text});
    }
    return true;
  }

  /// project and name are together the folder of a run.
  bool correct_run_dir(const std::vector<std::string>& words, const std::string& key, const std::string& problem) {
    if (key != "name" && key != "project") return false;
    const bool is_given = has(given_, "run-dir");
    replace(problem, is_given ? Options() : Options{{"run-dir", foreign_run_dir(words)}}, "--run-dir has both");
    given_.push_back("run-dir");
    return true;
  }

  bool names_run(const std::string& key) const { return has({"model", "weights", "checkpoint", "ckpt", "run"}, key); }

  /// model=best.pt data=photos of commands that take such words by their place.
  bool correct_place(const std::string& key, const std::string& text, const std::string& problem) {
    const bool is_run = names_run(key);
    is_corrected_ = true;
    if (is_run || has({"data", "source", "input", "images"}, key)) {
      problems_.push_back(problem + "; write " + core::shell_word(text));
      corrected_.insert(is_run ? corrected_.begin() : corrected_.end(), text);
      meant_.insert(is_run ? meant_.begin() : meant_.end(), text);
    } else if (by_name_.count(key) > 0) {
      replace(problem, {{key, text}}, "");
    } else {
      problems_.push_back(problem + suggestion(key, long_names(), "--"));
    }
    return true;
  }

  std::string not_expected(const std::string& word, bool is_first) const {
    return (is_first && line_.mistake.empty() && syntax_.name.empty() ? "unknown command " : "unexpected word ") +
           shown(word);
  }

  /// A file, a network, or a first word that is not a command, where an option should stand.
  bool correct_path(const std::string& word, bool is_first) {
    if (word.empty()) return false;
    std::error_code ignored;
    const std::string problem = not_expected(word, is_first);
    if (!syntax_.name.empty()) {  // train plan photos
      const bool takes_data = syntax_.arguments.empty() && by_name_.count("data-dir") > 0 && !has(given_, "data-dir");
      if (!takes_data || !std::filesystem::is_directory(word, ignored)) return false;
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
    replace(problem, {{option, word}}, "", /*names_ours=*/unknown_first_.empty());
    return true;
  }

  void replace(const std::string& problem, const Options& options, const std::string& note, bool names_ours = true) {
    is_corrected_ = true;
    std::string ours;
    for (auto [name, text] : options) {
      const Row* const row = table_.find(name);
      if (row != nullptr) text = in_small_letters(*row, text);
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

  std::vector<std::string> long_names() const {
    std::vector<std::string> names;
    for (const auto& [name, target] : by_name_)
      if (name.size() > 1) names.push_back(name);
    return names;
  }

  void register_all() {
    for (const std::vector<Flag>* const flags : {&syntax_.flags, &common_}) {
      for (const Flag& flag : *flags) {
        FlagTarget target;
        target.flag = &flag;
        target.is_own = flags == &syntax_.flags;
        target.is_switch = flag.is_switch();
        register_names(flag.name, flag.aliases, target);
      }
    }
    for (const Row& row : table_.rows()) {
      if (!syntax_.takes(row)) continue;
      register_option(row.name, row.aliases, row.is_switch, row.is_switch, row.choices);
    }
    for (const Shorthand& shorthand : table_.shorthands()) {
      if (!accepts(syntax_, table_, shorthand)) continue;
      register_option(shorthand.name, {}, shorthand.is_switch, shorthand.has_negation, {});
    }
  }

  void register_option(const std::string& name, const std::vector<std::string>& aliases, bool is_switch,
                       bool has_negation, const std::vector<std::string>& words) {
    FlagTarget target;
    target.words = words;
    target.option = name;
    target.is_switch = is_switch;
    register_names(name, aliases, target);
    if (!has_negation) return;
    target.negated = true;
    std::vector<std::string> negated;
    for (const std::string& alias : aliases) negated.push_back("no-" + alias);
    register_names("no-" + name, negated, target);
  }

  void register_names(const std::string& name, const std::vector<std::string>& aliases, const FlagTarget& target) {
    register_one(name, target);
    for (const std::string& alias : aliases) register_one(alias, target);
  }

  void register_one(const std::string& name, FlagTarget target) {
    target.written = (name.size() == 1 ? "-" : "--") + name;
    CLI::Option* option = target.is_switch ? app_.add_flag(target.written) : app_.add_option(target.written);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (!target.is_switch) option->expected(1)->allow_extra_args(false);
    by_name_[name] = target;
    by_option_[option] = target;
  }

  /// `_` becomes `-` in names, `-vb` becomes `--vb`, the value behind a switch is joined to it, and a name that lacks
  /// its value is reported and left out.
  std::vector<std::string> normalized(const std::vector<std::string>& words) {
    std::vector<std::string> ready;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--") {
        ready.insert(ready.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
        break;
      }
      const std::string word = with_canonical_dashes(words[i]);
      const FlagTarget* target = target_of(word);
      const size_t equals = word.find('=');
      if (!target) {
        ready.push_back(word);
      } else if (equals != std::string::npos && equals + 1 == word.size()) {
        if (target->is_switch) {
          problems_.push_back(target->written + ": no value given; write true or false");
        } else {
          ready.insert(ready.end(), {target->written, ""});
        }
      } else if (target->is_switch && equals == std::string::npos && i + 1 < words.size() &&
                 target->has_value(words[i + 1])) {
        ready.push_back(word + "=" + words[++i]);
      } else if (equals != std::string::npos || target->is_switch) {
        ready.push_back(word);
      } else if (target->written == "--pretrained" && (i + 1 == words.size() || words[i + 1].rfind('-', 0) == 0)) {
        ready.insert(ready.end(), {word, kDefaultWeights});
      } else if (i + 1 == words.size() || begins_long_flag(words[i + 1])) {
        problems_.push_back(target->written + ": no value given");
      } else {
        ready.insert(ready.end(), {word, words[++i]});
      }
    }
    return ready;
  }

  std::string with_canonical_dashes(const std::string& word) const {
    const size_t equals = std::min(word.find('='), word.size());
    if (equals == 3 && word[0] == '-' && word[1] != '-' && by_name_.count(word.substr(1, 2))) return "-" + word;
    if (!begins_long_flag(word)) return word;
    return kebab(word.substr(0, equals)) + word.substr(equals);
  }

  /// The target of `--name`, `--name=value` or `-x`; nullptr for anything else.
  const FlagTarget* target_of(const std::string& word) const {
    if (word.size() < 2 || word[0] != '-') return nullptr;
    const std::string name = word[1] == '-' ? word.substr(2, word.find('=') - 2) : word.substr(1);
    if ((word[1] == '-') != (name.size() > 1)) return nullptr;
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }

  std::vector<FlagValue> collect() {
    std::vector<FlagValue> values;
    std::map<const CLI::Option*, size_t> taken;
    for (const CLI::Option* option : app_.parse_order()) {
      const FlagTarget& target = by_option_.at(option);
      const size_t index = taken[option]++;
      if (index >= option->results().size()) continue;
      std::string text = option->results()[index];
      if (target.negated && (text == "true" || text == "false")) text = text == "true" ? "false" : "true";
      if (target.flag != nullptr) {
        store(*target.flag, target, text);
      } else {
        values.push_back({target.option, text, target.written});
      }
    }
    return values;
  }

  void store(const Flag& flag, const FlagTarget& target, const std::string& text) {
    if (target.is_switch && text != "true") {
      problems_.push_back(target.written + ": takes no value");
    } else if (!target.is_switch && text.empty()) {
      problems_.push_back(target.written + ": no value given");
    } else if (!flag.choices.empty() && !has(flag.choices, text)) {
      problems_.push_back(target.written + ": " + shown(text) + " is not accepted; write one of " +
                          core::list_text(flag.choices));
    } else if (!options_alone_ || !target.is_own) {
      const std::string problem = flag.store(text);
      if (!problem.empty()) problems_.push_back(target.written + ": " + problem);
    }
  }

  /// The words that CLI11 could not place: unknown flags, and words that stand alone.
  void sort_remaining() {
    const std::vector<Argument>& places = syntax_.arguments;
    size_t filled = 0;
    bool repeated = false, after_unknown = false;
    for (const std::string& word : app_.remaining()) {
      const bool is_flag = word.size() > 1 && word[0] == '-' && word != "--" && !only_positionals_;
      if (word == "--") {
        only_positionals_ = true;
      } else if (is_flag) {
        report_unknown(word);
      } else if (filled < places.size()) {
        if (!options_alone_) places[filled].store(word);
        repeated |= places[filled].repeats;
        if (!places[filled].repeats) ++filled;
      } else if (!after_unknown) {
        report_stray(word);
      }
      after_unknown = is_flag && word.find('=') == std::string::npos;
    }
    if (repeated) ++filled;
    const bool wants_help = has(meant_, "--help");
    for (; filled < places.size() && !places[filled].is_optional && !wants_help; ++filled) {
      meant_.push_back(places[filled].name);
      problems_.push_back("missing " + places[filled].name + ": " + syntax_.usage);
    }
  }

  void report_stray(const std::string& word) {
    const bool is_command = std::any_of(line_.others.begin(), line_.others.end(),
                                        [&](const Syntax* other) { return other->name == word && !word.empty(); });
    problems_.push_back(is_command ? "the command " + word + " must be the first word: train " + word + " ..."
                                   : "unexpected word " + shown(word));
  }

  void report_unknown(const std::string& word) {
    const std::string written = core::printable(word.substr(0, std::min<size_t>(word.find('='), 80)));
    const std::string name = kebab(written.substr(std::min(written.find_first_not_of('-'), written.size())));
    if (const std::string answer = old_name_hint(name, /*is_flag=*/true); !answer.empty()) {
      problems_.push_back(written + " " + answer);
      return;
    }
    if (const std::string other = commands_with(name); !other.empty())
      return problems_.push_back(written + ": " + other);
    problems_.push_back(written + ": unknown flag" + suggestion(name, long_names(), "--"));
  }

  /// Where a flag that this command does not take would be accepted.
  std::string commands_with(const std::string& name) const {
    const std::string plain = name.rfind("no-", 0) == 0 && !table_.find(name) ? name.substr(3) : name;
    if (!syntax_.name.empty() && (table_.find(plain) || table_.find_shorthand(plain))) {
      return "an option of training, not of " + syntax_.name;
    }
    const std::string not_here = syntax_.name.empty() ? "" : ", not of " + syntax_.name;
    for (const Syntax* const other : line_.others) {
      for (const Flag& flag : other->flags) {
        if (flag.name != name && !has(flag.aliases, name)) continue;
        return (other->name.empty() ? "a flag of training" : "a flag of train " + other->name) + not_here;
      }
    }
    return "";
  }

  const CommandLine& line_;
  const Syntax& syntax_;
  const std::vector<Flag> common_;
  const Table& table_;
  const bool options_alone_;
  std::vector<std::string>& problems_;
  CLI::App app_;
  std::map<std::string, FlagTarget> by_name_;
  std::map<const CLI::Option*, FlagTarget> by_option_;
  bool only_positionals_ = false;
  std::vector<std::string> corrected_, meant_;  ///< what is parsed; the same without unknown flags
  std::vector<std::string> given_;              ///< options on the command line
  bool is_corrected_ = false;
  std::string unknown_first_;  ///< a first word that could be a folder which is not there
};

}  // namespace

std::vector<FlagValue> parse_flags(const CommandLine& line, const Table& table, CommonFlags& common, bool options_alone,
                                   std::vector<std::string>& problems, std::string& correction) {
  if (!line.mistake.empty()) problems.push_back(line.mistake);
  FlagParser parser(line, table, common, options_alone, problems);
  std::vector<FlagValue> values = parser.parse(line.words);
  correction = parser.correction();
  return values;
}

}  // namespace stoker::config
