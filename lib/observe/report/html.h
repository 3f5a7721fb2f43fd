// SPDX-License-Identifier: Apache-2.0
// Text on its way into HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace stoker::observe {

/// Fit for element content and quoted attributes: no markup, no control characters, valid UTF-8.
std::string escape_html(std::string_view text);

}  // namespace stoker::observe
