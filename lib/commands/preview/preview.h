// SPDX-License-Identifier: Apache-2.0
// `train preview`: draws augmented images as the network gets them.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct PreviewFlags {
  std::string output = "preview.png";  ///< "-": standard output
};

Command preview_command();
[[gnu::weak]] Outcome preview(const Context& context, const PreviewFlags& flags);

}  // namespace stoker::train
