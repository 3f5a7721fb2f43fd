// SPDX-License-Identifier: Apache-2.0
// The digest of all images of an update, as the network got them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/step/step_watcher.h"

namespace stoker::engine {

class ImageDigest : public StepWatcher {
 public:
  void saw_batch(const SeenBatch& seen) override;
  /// XXH3-128 of the digests of the batches, in the order of their numbers.
  std::string hex() const;

  /// For other ranks, which see other batches of the same update.
  std::string message() const;
  void add_message(const std::string& message);

 private:
  std::map<int64_t, std::string> batches_;
};

}  // namespace stoker::engine
