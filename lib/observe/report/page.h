// SPDX-License-Identifier: Apache-2.0
// A page that stands alone: no script, no font and no link that a browser would load.
#pragma once

#include <string>
#include <string_view>

namespace stoker::observe {

/// `title` is text, `body` is HTML. `made_by`: "Report by stoker train 0.1.0"; `time`: when the page was made, UTC.
/// Sections of the body are listed at the top. `reload_seconds`: the page reloads itself at this interval; 0: never.
std::string page_of(const std::string& title, const std::string& made_by, const std::string& time,
                    const std::string& body, int reload_seconds = 0);
/// A heading with its content; "" without content. `title` is text.
std::string section_of(const std::string& title, const std::string& content);
/// A table of rows <tr> that scrolls by itself, by keyboard too, where the screen is narrower. `label` is text.
std::string table_of(const std::string& label, const std::string& rows, const char* table_class = "");

// Text on its way into HTML and SVG.

/// Fit for element content and quoted attributes: no markup, no control characters, valid UTF-8.
std::string escape_html(std::string_view text);

}  // namespace stoker::observe
