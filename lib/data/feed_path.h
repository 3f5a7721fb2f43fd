// SPDX-License-Identifier: Apache-2.0
// How batches reach a device: one way per kind of device, behind DeviceFeed.
#pragma once

#include <memory>

#include "data/device_feed.h"

namespace stoker::data {

class FeedPath {
 public:
  virtual ~FeedPath() = default;
  virtual void drop() = 0;  ///< forgets batches under way
  virtual bool next(Batch& batch, bool may_stop) = 0;
};

/// For devices with streams. Copies the next batch, if it is ready, while the current one is computed with.
std::unique_ptr<FeedPath> make_copy_ahead_feed(Loader& loader, const FeedSettings& settings);

}  // namespace stoker::data
