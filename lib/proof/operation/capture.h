// SPDX-License-Identifier: Apache-2.0
// Which operations a network's passes consist of, as far as there is a rule for them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proof/operation/operation.h"

namespace stoker::proof {

/// Called before an operation is computed.
using BeforeCall = std::function<void(const Operation& operation)>;

/// The calls of operators with a rule while `work` runs, in order, those of other threads included.
std::vector<Operation> captured(const std::function<void()>& work, const BeforeCall& before);

/// Distinct operations by key, and how often each is called.
class Operations {
 public:
  struct Counted {
    Operation operation;
    int64_t calls = 0;
  };

  /// Those of a pass over `images` images: `pass(n)` is run for 2 and for 3 images, and the shapes for more follow;
  /// where the two passes do not consist of the same calls, for `images` images themselves.
  void add(int64_t images, const std::function<void(int64_t images)>& pass, const BeforeCall& before);
  const std::map<std::string, Counted>& by_key() const { return by_key_; }

 private:
  void add(Operation operation);

  std::map<std::string, Counted> by_key_;
};

}  // namespace stoker::proof
