// SPDX-License-Identifier: Apache-2.0
// A page that stands alone: no script, no font and no link that a browser would load.
#pragma once

#include <string>

namespace stoker::observe {

/// `title` is text, `body` is HTML. `made_by`: "Report by stoker train 0.1.0"; `time`: when the page was made, UTC.
std::string page_of(const std::string& title, const std::string& made_by, const std::string& time,
                    const std::string& body);

}  // namespace stoker::observe
