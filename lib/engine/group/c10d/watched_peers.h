// SPDX-License-Identifier: Apache-2.0
// Peers that learn what happens to other ranks while this one waits for them.
#pragma once

#include <functional>

#include "engine/group/peers.h"

namespace stoker::engine {

class WatchedPeers : public Peers {
 public:
  /// Throws core::Error{peer_lost} when nothing can be exchanged any more, with the cause.
  virtual void throw_if_broken() = 0;
  /// Waits for something that other ranks have a part in and that does not come through exchange(): until `is_done`,
  /// which is asked again and again, and throws what went wrong. Throws core::Error{peer_lost} as exchange() does.
  virtual void wait_for(const std::function<bool()>& is_done) = 0;
  /// For as long as another rank's word about its end may be on its way; throws it when it comes.
  virtual void wait_for_last_word() = 0;
};

}  // namespace stoker::engine
