// SPDX-License-Identifier: Apache-2.0
#include "config/read/syntax.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

Flag named(const std::string& names, const std::string& help) {
  Flag flag;
  flag.aliases = split_words(names, ',');
  flag.name = flag.aliases.front();
  flag.aliases.erase(flag.aliases.begin());
  flag.help = help;
  return flag;
}

}  // namespace

Flag flag(const std::string& names, const std::string& help, bool& into) {
  Flag made = named(names, help);
  made.store = [&into](const std::string&) {
    into = true;
    return "";
  };
  return made;
}

Flag flag(const std::string& names, const std::string& placeholder, const std::string& help, std::string& into) {
  Flag made = named(names, help);
  made.placeholder = placeholder;
  made.store = [&into](const std::string& text) {
    into = text;
    return "";
  };
  return made;
}

Flag flag(const std::string& names, const std::string& placeholder, const std::string& help,
          std::vector<std::string>& into) {
  Flag made = named(names, help);
  made.placeholder = placeholder;
  made.store = [&into](const std::string& text) {
    into.push_back(text);
    return "";
  };
  return made;
}

Flag flag(const std::string& names, const std::string& placeholder, const std::string& help, int64_t& into,
          int64_t least, int64_t most) {
  Flag made = named(names, help);
  made.placeholder = placeholder;
  made.store = [&into, least, most](const std::string& text) -> std::string {
    if (read_integer(text, least, most, into).empty()) return "";
    return core::format("{} is not accepted; {}", shown(text), range_text(least, most));
  };
  return made;
}

Flag output_flag(const std::string& names, Flag::Writes writes, const std::string& help, std::string& into) {
  Flag made = flag(names, writes == Flag::Writes::folder ? "FOLDER" : "FILE", help, into);
  made.writes = writes;
  made.output = &into;
  return made;
}

Flag choice_flag(const std::string& names, const std::vector<std::string>& choices, const std::string& help,
                 std::string& into) {
  Flag made = flag(names, "", help, into);
  made.choices = choices;
  return made;
}

Flag removed_flag(const std::string& names, const std::string& what_now) {
  Flag made = named(names, "");
  made.placeholder = "VALUE";
  made.store = [what_now](const std::string&) { return what_now; };
  return made;
}

Argument argument(const std::string& name, const std::string& help, std::string& into, bool is_optional) {
  return {name, help, [&into](const std::string& text) { into = text; }, is_optional};
}

Argument arguments(const std::string& name, const std::string& help, std::vector<std::string>& into, bool is_optional) {
  return {name, help, [&into](const std::string& text) { into.push_back(text); }, is_optional, /*repeats=*/true};
}

bool takes_all(const Row&) { return true; }
bool takes_none(const Row&) { return false; }

std::vector<Flag> common_flags(const Syntax& syntax, CommonFlags& flags) {
  std::vector<Flag> all;
  if (syntax.reads_files) {
    all.push_back(flag("config,c,cfg", "FILE",
                       "Reads options from a YAML file. May be given several times, later files win.",
                       flags.config_files));
    all.push_back(flag("preset", "NAME",
                       "Takes the options of a built-in preset (train list presets). Files and flags win over them.",
                       flags.preset));
    all.push_back(flag("print-config,dump-config",
                       "Prints every option with its value and where it came from, and exits.", flags.print_config));
  }
  if (syntax.opens_networks) {
    all.push_back(
        flag("trust-model",
             "Allows the TorchScript file of --model or of the run to be loaded: this executes arbitrary code "
             "with your privileges; command line only.",
             flags.trust_model));
  }
  all.push_back(flag("verbose,v",
                     "Logs why each value was chosen, and details of time and memory; as --log-level debug.",
                     flags.verbose));
  all.push_back(flag("help,h", "Prints this and exits.", flags.help));
  if (syntax.name.empty()) all.push_back(flag("help-all", "Prints every option and exits.", flags.help_all));
  all.push_back(flag("version,V", "Prints the version and exits.", flags.version));
  return all;
}

bool accepts(const Syntax& syntax, const Table& table, const Shorthand& shorthand) {
  const bool trains = syntax.takes(*table.find("epochs"));
  for (const auto& choice : shorthand.choices) {
    if (choice.second.empty() && !trains) return false;
    for (const auto& value : choice.second) {
      const Row* const row = table.find(value.first);
      if (row == nullptr || !syntax.takes(*row)) return false;
    }
  }
  return true;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kEmbeddedPresetCount; ++i) names.emplace_back(kEmbeddedPresets[i].name);
  return names;
}

const std::string& preset_text(const std::string& name) {
  static const std::map<std::string, std::string> texts = [] {
    std::map<std::string, std::string> map;
    for (size_t i = 0; i < kEmbeddedPresetCount; ++i) map[kEmbeddedPresets[i].name] = kEmbeddedPresets[i].text;
    return map;
  }();
  const auto found = texts.find(name);
  if (found != texts.end()) return found->second;
  const std::vector<std::string> names = preset_names();
  throw core::Error(core::ErrorKind::config, "unknown preset " + core::printable(name) + suggestion(name, names),
                    "presets: " + core::list_text(names, 100) + "; a file of your own is given with -c FILE");
}

std::string option_meant_by(const std::string& word, const std::vector<std::string>& networks) {
  const auto is_one_of = [&word](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  std::error_code ignored;
  if (is_one_of(networks)) return "model";
  if (is_one_of(preset_names())) return "preset";
  if (std::filesystem::exists(word + "/checkpoints", ignored)) return "resume";
  if (core::ends_with(word, ".yaml") || core::ends_with(word, ".yml")) return "config";
  if (core::ends_with(word, ".pth") || core::ends_with(word, ".safetensors")) return "init-from";
  return "data-dir";
}

}  // namespace stoker::config
