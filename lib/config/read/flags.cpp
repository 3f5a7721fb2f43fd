// SPDX-License-Identifier: Apache-2.0
#include "config/read/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "config/read/corrected_words.h"
#include "config/read/flag_names.h"
#include "config/read/syntax.h"
#include "config/table/foreign_words.h"
#include "config/table/parse_value.h"
#include "core/format.h"

namespace stoker::config {
namespace {

class FlagParser {
 public:
  FlagParser(const CommandLine& line, const Table& table, CommonFlags& common, bool options_alone,
             std::vector<std::string>& problems)
      : line_(line),
        syntax_(*line.syntax),
        names_(line, table, common),
        corrected_(line, table, names_, problems),
        options_alone_(options_alone),
        problems_(problems) {
    app_.set_help_flag();
    app_.allow_extras();
    for (const auto& [name, target] : names_.all()) {
      CLI::Option* option = target.is_switch ? app_.add_flag(target.written) : app_.add_option(target.written);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (!target.is_switch) option->expected(1)->allow_extra_args(false);
      by_option_[option] = &target;
    }
  }

  std::vector<FlagValue> parse(const std::vector<std::string>& words) {
    corrected_.correct(words);
    std::vector<std::string> ready = normalized(corrected_.words());
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
  std::string correction() const { return corrected_.whole_command(); }

 private:
  /// `_` becomes `-` in names, `-vb` becomes `--vb`, the value behind a switch is joined to it, and a name that lacks
  /// its value is reported and left out.
  std::vector<std::string> normalized(const std::vector<std::string>& words) {
    std::vector<std::string> ready;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--") {
        ready.insert(ready.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
        break;
      }
      const std::string word = names_.with_canonical_dashes(words[i]);
      const FlagTarget* target = names_.target_of(word);
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

  std::vector<FlagValue> collect() {
    std::vector<FlagValue> values;
    std::map<const CLI::Option*, size_t> taken;
    for (const CLI::Option* option : app_.parse_order()) {
      const FlagTarget& target = *by_option_.at(option);
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

  void store(const Flag& flag, const FlagTarget& target, const std::string& written) {
    std::string text = written;
    const auto is_listed = [&](const std::string& word) {
      return std::find(flag.choices.begin(), flag.choices.end(), word) != flag.choices.end();
    };
    if (const std::string small = core::lower_case(written); is_listed(small)) text = small;
    if (target.is_switch && text != "true") {
      problems_.push_back(target.written + ": takes no value");
    } else if (!target.is_switch && text.empty()) {
      problems_.push_back(target.written + ": no value given");
    } else if (!flag.choices.empty() && !is_listed(text)) {
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
    std::string first;
    for (const std::string& word : app_.remaining()) {
      const bool is_flag = word.size() > 1 && word[0] == '-' && word != "--" && !only_positionals_;
      if (word == "--") {
        only_positionals_ = true;
      } else if (is_flag) {
        report_unknown(word);
      } else if (filled < places.size()) {
        if (!options_alone_) places[filled].store(word);
        if (first.empty()) first = word;
        repeated |= places[filled].repeats;
        if (!places[filled].repeats) ++filled;
      } else if (!after_unknown) {
        report_stray(word);
      }
      after_unknown = is_flag && word.find('=') == std::string::npos;
    }
    if (repeated) ++filled;
    const bool wants_help = corrected_.wants_help();
    for (; filled < places.size() && !places[filled].is_optional && !wants_help; ++filled) {
      corrected_.add_missing(places[filled].name, first);
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
    if (const std::string other = names_.commands_with(name); !other.empty())
      return problems_.push_back(written + ": " + other);
    problems_.push_back(written + ": unknown flag" + suggestion(name, names_.long_names(), "--"));
  }

  const CommandLine& line_;
  const Syntax& syntax_;
  const FlagNames names_;
  CorrectedWords corrected_;
  const bool options_alone_;
  std::vector<std::string>& problems_;
  CLI::App app_;
  std::map<const CLI::Option*, const FlagTarget*> by_option_;
  bool only_positionals_ = false;
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
