// SPDX-License-Identifier: Apache-2.0
// The syntax of one command: positional arguments, flags that are bound to its own struct, and which options.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "config/config.h"

namespace stoker::config {

/// A flag of one command, which no file can hold. Without placeholder and choices it is a switch.
struct Flag {
  std::string name;                  ///< "output", without dashes
  std::vector<std::string> aliases;  ///< one letter: a short flag
  std::string placeholder;           ///< stands for the value in --help: "FILE"
  std::vector<std::string> choices;
  std::string help;  ///< empty: not listed
  enum class Writes { nothing, file, folder };
  Writes writes = Writes::nothing;
  const std::string* output = nullptr;  ///< the value, where it names what the command writes
  /// Stores the value, "true" of a switch. Returns "" or what is wrong with it.
  std::function<std::string(const std::string& text)> store;

  bool is_switch() const { return placeholder.empty() && choices.empty(); }
};

// Flags by the type of what they are bound to, which must outlive the parsing. `names` are separated by commas, the
// first is shown.
Flag flag(const std::string& names, const std::string& help, bool& into);
Flag flag(const std::string& names, const std::string& placeholder, const std::string& help, std::string& into);
/// May be given several times.
Flag flag(const std::string& names, const std::string& placeholder, const std::string& help,
          std::vector<std::string>& into);
/// A whole number from `least` to `most`.
Flag flag(const std::string& names, const std::string& placeholder, const std::string& help, int64_t& into,
          int64_t least, int64_t most);
/// Names an output: one that cannot be written is refused before anything is read.
Flag output_flag(const std::string& names, Flag::Writes writes, const std::string& help, std::string& into);
Flag choice_flag(const std::string& names, const std::vector<std::string>& choices, const std::string& help,
                 std::string& into);

/// A flag of older programs with a value: an error with a hint what to do now. `what_now`: "was removed: ...".
Flag removed_flag(const std::string& names, const std::string& what_now);

/// A positional argument.
struct Argument {
  std::string name;  ///< "DATA"
  std::string help;
  std::function<void(const std::string& text)> store;
  bool is_optional = false;
  bool repeats = false;  ///< takes all words that are left
};
Argument argument(const std::string& name, const std::string& help, std::string& into, bool is_optional = false);
/// All words that are left.
Argument arguments(const std::string& name, const std::string& help, std::vector<std::string>& into,
                   bool is_optional = false);

/// Which options a command takes besides its flags.
using Takes = bool (*)(const Row& row);
bool takes_all(const Row& row);
bool takes_none(const Row& row);

/// A command as its command line is parsed and described.
struct Syntax {
  std::string name;  ///< "eval", "inspect replay"; empty: trains
  std::string usage, summary;
  std::vector<Argument> arguments;
  std::vector<Flag> flags;
  Takes takes = takes_none;
  bool reads_files = false;     ///< --config, --preset, --print-config
  bool opens_networks = false;  ///< --trust-model

  /// "inspect" of "inspect replay".
  std::string first_word() const { return name.substr(0, name.find(' ')); }
  std::string shown_name() const { return name.empty() ? "train" : "train " + name; }
};

/// The flags of every command, of those that read files and of those that open networks, bound to `flags`.
std::vector<Flag> common_flags(const Syntax& syntax, CommonFlags& flags);
bool accepts(const Syntax& syntax, const Table& table, const Shorthand& shorthand);

// The presets that are built into the program: the generated table behind preset_text() in config.h.

struct EmbeddedPreset {
  const char* name;  ///< path below configs/ without .yaml: "bench/fashion_mnist_peer"
  const char* text;
};

/// Sorted by name; defined in a file that embed_presets.cmake writes into the build directory.
extern const EmbeddedPreset kEmbeddedPresets[];
extern const size_t kEmbeddedPresetCount;

/// The option that a word without a flag is probably for: model for one of `networks`, preset, resume for a run
/// directory, config or init-from by its ending, else data-dir.
std::string option_meant_by(const std::string& word, const std::vector<std::string>& networks);

}  // namespace stoker::config
