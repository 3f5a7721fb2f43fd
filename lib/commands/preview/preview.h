// SPDX-License-Identifier: Apache-2.0
// `train preview`: draws augmented images as the network gets them.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct PreviewFlags {
  std::string output = "preview.png";  ///< "-": standard output
};

[[gnu::weak]] Outcome preview(const Context& context, const PreviewFlags& flags);

inline Command preview_command() {
  const auto flags = std::make_shared<PreviewFlags>();
  Command command =
      make_command("preview", "[options] [--output FILE]",
                   "Draws a contact sheet of augmented training images, and of the same images over several epochs.",
                   preview, flags);
  command.flags = {config::output_flag("output,o", config::Flag::Writes::file,
                                       "The picture, a PNG (default: preview.png); - is standard output.",
                                       flags->output)};
  command.takes = takes_all_but_run;
  command.reads_files = true;
  return command;
}

}  // namespace stoker::train
