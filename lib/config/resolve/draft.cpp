// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/draft.h"

#include <stdexcept>

#include "core/error.h"

namespace stoker::config {

void Draft::store(Row& row, const std::string& text, const std::string& reason) {
  const std::string problem = row.assign(text);
  if (!problem.empty()) {
    throw core::Error(core::ErrorKind::config, row.name + ": the automatic choice does not fit: " + problem,
                      "set " + row.name + " by hand");
  }
  (assumes_ ? assumed_ : reasons_)[&row] = reason;
}

Resolution Draft::resolution() {
  Resolution resolution;
  Table resolved(resolution.options);
  for (size_t i = 0; i < table_.rows().size(); ++i) {
    const Row& row = table_.rows()[i];
    const std::string value = row.render();
    const std::string problem = row.is_auto() ? "it is still automatic" : resolved.rows()[i].assign(value);
    if (!problem.empty()) throw std::logic_error("option " + row.name + " was not resolved: " + problem);
    if (const auto chosen = reasons_.find(&row); chosen != reasons_.end()) {
      resolution.choices.push_back({row.name, value, chosen->second, notable_.count(&row) > 0});
    }
    if (assumed_.count(&row) > 0) resolution.assumed.push_back(row.name);
  }
  return resolution;
}

}  // namespace stoker::config
