// SPDX-License-Identifier: Apache-2.0
// Which generator the layers of a network draw from. By default it is torch's own of their device; whoever computes one
// of several replicas gives each its own, so that what is drawn does not depend on who computes what.
#pragma once

#include <ATen/core/Generator.h>

namespace stoker::model {

/// For its lifetime layers that run on this thread draw from `generator`; undefined: from torch's own. Scopes nest.
class DrawScope {
 public:
  explicit DrawScope(at::Generator generator);
  ~DrawScope();
  DrawScope& operator=(DrawScope&&) = delete;  // not copied, not moved

 private:
  at::Generator outer_;
};

/// The source of the innermost scope of this thread; undefined outside of any, which operations take for torch's own.
const at::Generator& random_source();

}  // namespace stoker::model
