// SPDX-License-Identifier: Apache-2.0
// `train list`: what this program has, for people, shells and editors.
#include "commands/command.h"
#include "core/error.h"
#include "core/format.h"
#include "model/names.h"
#include "train/failure/result_output.h"
#include "weights/names/known_weights.h"

namespace stoker::train {
namespace {

struct ListFlags {
  std::string what;    ///< models, presets, options, completion
  std::string shell;   ///< completion: bash, zsh, fish
  std::string format;  ///< options: text, markdown, man, schema
};

std::string lines(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

std::string options_text(const Context& context, const std::string& format) {
  const config::Table& table = context.configuration.table;
  if (format == "markdown") return config::render_markdown(table, context.line.others);
  if (format == "man") return config::render_man(table, context.line.others, STOKER_VERSION);
  return format == "schema" ? config::render_schema() : config::render_option_list(table);
}

Outcome list(const Context& context, const ListFlags& flags) {
  std::string text;
  if (flags.what == "models") {
    text = lines(model::model_names());
  } else if (flags.what == "weights") {
    text = lines(weights::all_published_weights());
  } else if (flags.what == "presets") {
    text = lines(config::preset_names());
  } else if (flags.what == "options") {
    text = options_text(context, flags.format);
  } else if (flags.what == "completion") {
    text =
        config::render_completion(context.configuration.table, context.line.others, flags.shell, model::model_names());
  } else {
    throw core::Error(core::ErrorKind::usage, "train list: unknown list " + core::printable(flags.what),
                      "train list models, weights, presets, options or completion");
  }
  write_page(text);
  return {core::kExitOk, ""};
}

}  // namespace

Command list_command() {
  const auto flags = std::make_shared<ListFlags>();
  Command command = make_command(
      "list", "models|weights|presets|options|completion [SHELL]",
      "Lists networks, published weights, presets or options, or prints a completion script.", list, flags);
  command.arguments = {
      config::argument("WHAT", "models, weights, presets, options or completion.", flags->what),
      config::argument("SHELL", "With completion: bash, zsh or fish.", flags->shell, /*is_optional=*/true)};
  command.flags = {config::choice_flag("format", {"text", "markdown", "man", "schema"},
                                       "With options: the form of the list (default: text).", flags->format)};
  return command;
}

}  // namespace stoker::train
