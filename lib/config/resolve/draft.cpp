// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/draft.h"

#include <cstdint>
#include <stdexcept>

#include "core/error.h"

namespace stoker::config {

std::size_t Resolution::place_of(const void* field) const {
  // As numbers: pointers into different objects must not be subtracted. One from before `options` wraps to a large one.
  const auto place =
      static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(field) - reinterpret_cast<std::uintptr_t>(&options));
  if (place >= sizeof(options)) throw std::logic_error("this is no option of the resolution");
  return place;
}

Draft::Draft(const Options& given) : options_(given) {
  for (const Row& row : table_.rows()) was_automatic_.push_back(row.is_auto());
}

void Draft::store(Row& row, const std::string& text, const Why& why) {
  const std::string problem = row.assign(text);
  if (!problem.empty()) {
    throw core::Error(core::ErrorKind::config, row.name + ": the automatic choice does not fit: " + problem,
                      "set " + row.name + " by hand");
  }
  note(row, why);
}

Resolution Draft::resolution() {
  Resolution resolution;
  Table resolved(resolution.options);
  for (size_t i = 0; i < table_.rows().size(); ++i) {
    const Row& row = table_.rows()[i];
    const std::string value = row.render();
    const std::string problem = row.is_auto() ? "it is still automatic" : resolved.rows()[i].assign(value);
    if (!problem.empty()) throw std::logic_error("option " + row.name + " was not resolved: " + problem);
    if (const auto chosen = chosen_.find(&row); chosen != chosen_.end()) {
      resolution.choices.push_back({row.name, value, chosen->second.reason, chosen->second.source});
    }
    if (was_automatic_[i]) resolution.automatic.insert(resolution.place_of(resolved.rows()[i].field));
    if (assumed_.count(&row) > 0) resolution.assumed.push_back(row.name);
  }
  return resolution;
}

}  // namespace stoker::config
