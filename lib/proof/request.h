// SPDX-License-Identifier: Apache-2.0
// The request for a proof: a network, and the passes that a run will make with it. Travels to another process as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "model/image_model.h"

namespace stoker::config {

STOKER_JSON_FIELDS(ImageSize, height, width)

}  // namespace stoker::config

namespace stoker::model {

STOKER_JSON_FIELDS(ModelSpec, name, in_chans, num_classes, img_size, width, backbone, lstm_channels, drop_rate,
                   drop_path_rate, zero_init_residual, same_padding)

}  // namespace stoker::model

namespace stoker::proof {

/// Passes over one size of batch that are computed alike.
struct Pass {
  bool trains = false;     ///< forward and backward in training mode; else forward in evaluation mode
  int64_t images = 1;      ///< images in the batch that the network sees at once
  std::string autocast{};  ///< "bfloat16", "float16"; empty: float32
  bool channels_last = false;
  int64_t threads = 1;  ///< number of CPU threads inside one operation

  bool operator==(const Pass& other) const {
    return trains == other.trains && images == other.images && autocast == other.autocast &&
           channels_last == other.channels_last && threads == other.threads;
  }
};

struct Request {
  model::ModelSpec network;
  std::string network_digest{};              ///< digest of the file where the network is one; empty: it is one of ours
  std::string freeze{};                      ///< as --freeze
  int64_t low_rank = 0;                      ///< as --lora
  std::vector<model::ModelSpec> teachers{};  ///< see the same images in evaluation mode wherever the network trains
  std::string teacher_digest{};              ///< likewise
  bool trusts_network_file = false;          ///< as --trust-model
  std::vector<int64_t> input;                ///< shape of one image or clip: {3, 224, 224}
  std::string device = "cpu";
  bool deterministic = false;
  bool tf32 = false;
  std::vector<Pass> passes;
};

STOKER_JSON_FIELDS(Pass, trains, images, autocast, channels_last, threads)
STOKER_JSON_FIELDS(Request, network, network_digest, freeze, low_rank, teachers, teacher_digest, trusts_network_file,
                   input, device, deterministic, tf32, passes)

}  // namespace stoker::proof
