// SPDX-License-Identifier: Apache-2.0
// The front door: networks by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/image_model.h"
#include "model/names.h"

namespace stoker::model {

/// Builds and initialises with the global torch generator. Throws Error{config} naming the known models.
std::shared_ptr<ImageModel> make_model(const ModelSpec& spec);

/// Whether a network sees clips [B, T, C, H, W]. False for a name that is not known.
bool takes_clips(const std::string& model_name);

/// Usual drop rates of a network: torchvision's defaults. Zeros for a name that is not known.
struct DropRates {
  double drop_rate = 0;
  double drop_path_rate = 0;
};
DropRates usual_drop_rates(const std::string& model_name);

}  // namespace stoker::model
