// SPDX-License-Identifier: Apache-2.0
#include "proof/rules/rules.h"

#include <map>

namespace stoker::proof {
namespace {

std::map<std::string, Rule> all_rules() {
  std::map<std::string, Rule> rules;
  for (const auto& kind : {convolution_rules(), product_rules(), norm_rules(), pooling_rules(), attention_rules()}) {
    for (const Rule& rule : kind) rules.emplace(rule.name, rule);
  }
  return rules;
}

}  // namespace

const Rule* rule_of(const std::string& operator_name) {
  static const std::map<std::string, Rule> rules = all_rules();
  const auto found = rules.find(operator_name);
  return found == rules.end() ? nullptr : &found->second;
}

}  // namespace stoker::proof
