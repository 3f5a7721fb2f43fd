// SPDX-License-Identifier: Apache-2.0
#include "config/table/suggest.h"

#include <algorithm>

#include "core/format.h"

namespace stoker::config {

std::string near_name(const std::string& word, const std::vector<std::string>& names) {
  constexpr size_t kShort = 4;
  constexpr size_t kLong = 64;
  if (word.empty() || word.size() > kLong) return "";
  std::vector<std::string> candidates;
  for (const std::string& name : names) {
    if (word.size() > kShort || (name[0] == word[0] && name.size() <= word.size() + (word.size() < kShort ? 1 : 2)))
      candidates.push_back(name);
  }
  // Of equally near names the first is taken: let it be the one of the most similar length.
  const auto difference = [&word](const std::string& name) {
    return name.size() > word.size() ? name.size() - word.size() : word.size() - name.size();
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&difference](const std::string& a, const std::string& b) { return difference(a) < difference(b); });
  return core::nearest_name(word, candidates);
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names, const std::string& prefix) {
  const std::string name = near_name(word, names);
  return name.empty() ? "" : "; did you mean " + prefix + name + "?";
}

}  // namespace stoker::config
