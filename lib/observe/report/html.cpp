// SPDX-License-Identifier: Apache-2.0
#include "observe/report/html.h"

#include "core/format.h"

namespace stoker::observe {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : core::printable(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

}  // namespace stoker::observe
