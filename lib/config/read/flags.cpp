// SPDX-License-Identifier: Apache-2.0
#include "config/read/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>

#include "config/read/syntax.h"
#include "config/table/old_names.h"
#include "config/table/parse_value.h"
#include "config/table/suggest.h"
#include "core/format.h"

namespace stoker::config {
namespace {

/// What a registered name stands for.
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
    return word == "true" || word == "false" || word == "auto" ||
           std::find(words.begin(), words.end(), word) != words.end();
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
    std::vector<std::string> ready = normalized(words);
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

 private:
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

  /// Of `--name`, `--name=value` or `-x`; nullptr for anything else.
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
    const auto& choices = flag.choices;
    if (target.is_switch && text != "true") {
      problems_.push_back(target.written + ": takes no value");
    } else if (!target.is_switch && text.empty()) {
      problems_.push_back(target.written + ": no value given");
    } else if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
      problems_.push_back(target.written + ": " + shown(text) + " is not accepted; write one of " +
                          core::list_text(choices));
    } else if (!options_alone_ || !target.is_own) {
      const std::string problem = flag.store(text);
      if (!problem.empty()) problems_.push_back(target.written + ": " + problem);
    }
  }

  /// What CLI11 could not place: unknown flags, and words that stand alone.
  void sort_remaining() {
    const std::vector<Word>& places = syntax_.words;
    size_t filled = 0;
    bool repeated = false;
    bool after_unknown = false;
    for (const std::string& word : app_.remaining()) {
      const bool is_flag = word.size() > 1 && word[0] == '-' && word != "--" && !only_positionals_;
      if (word == "--") {
        only_positionals_ = true;
      } else if (is_flag) {
        report_unknown(word);
      } else if (filled < places.size()) {
        if (!options_alone_) places[filled].store(word);
        if (places[filled].repeats) {
          repeated = true;
        } else {
          ++filled;
        }
      } else if (!after_unknown) {
        report_stray(word);
      }
      after_unknown = is_flag && word.find('=') == std::string::npos;
    }
    if (repeated) ++filled;
    for (; filled < places.size() && !places[filled].is_optional; ++filled) {
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
    if (const std::string answer = answer_to_old_name(name, /*is_flag=*/true); !answer.empty()) {
      problems_.push_back(written + " " + answer);
      return;
    }
    const std::string elsewhere = commands_with(name);
    if (!elsewhere.empty()) {
      problems_.push_back(written + ": " + elsewhere);
      return;
    }
    std::vector<std::string> names;
    for (const auto& known : by_name_) {
      if (known.first.size() > 1) names.push_back(known.first);
    }
    problems_.push_back(written + ": unknown flag" + suggestion(name, names, "--"));
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
        const auto& aliases = flag.aliases;
        if (flag.name != name && std::find(aliases.begin(), aliases.end(), name) == aliases.end()) continue;
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
};

}  // namespace

std::vector<FlagValue> parse_flags(const CommandLine& line, const Table& table, CommonFlags& common, bool options_alone,
                                   std::vector<std::string>& problems) {
  return FlagParser(line, table, common, options_alone, problems).parse(line.words);
}

}  // namespace stoker::config
