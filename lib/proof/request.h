// SPDX-License-Identifier: Apache-2.0
// What is to be proven: a network, and the passes that a run will make with it. Travels to another process as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "model/image_model.h"

namespace stoker::proof {

/// Passes over one size of batch that are computed alike.
struct Pass {
  bool trains = false;     ///< forward and backward in training mode; else forward in evaluation mode
  int64_t images = 1;      ///< of the batch that the network sees at once
  std::string autocast{};  ///< "bfloat16", "float16"; empty: float32
  bool channels_last = false;
  int64_t threads = 1;  ///< of the CPU inside one operation

  bool operator==(const Pass& other) const {
    return trains == other.trains && images == other.images && autocast == other.autocast &&
           channels_last == other.channels_last && threads == other.threads;
  }
};

struct Request {
  model::ModelSpec network;
  std::string network_digest{};      ///< of the file where the network is one; empty: it is one of ours
  std::string freeze{};              ///< as --freeze
  bool trusts_network_file = false;  ///< as --trust-model
  std::vector<int64_t> input;        ///< shape of one image or clip: {3, 224, 224}
  std::string device = "cpu";
  bool deterministic = false;
  bool tf32 = false;
  std::vector<Pass> passes;
};

core::Json to_json(const Request& request);
/// Throws what nlohmann::json throws for a text that to_json() did not write.
Request request_from_json(const core::Json& json);

}  // namespace stoker::proof
