// SPDX-License-Identifier: Apache-2.0
// The dialects of each family; the first of each is torchvision's, which is ours. Only this module includes this file.
#pragma once

#include <string>
#include <vector>

#include "weights/names/dialect.h"

namespace stoker::weights {

std::vector<Dialect> resnet_dialects();
/// `network` is efficientnet_b0 ... _b7: Hugging Face numbers blocks through all stages, so that depth matters.
std::vector<Dialect> efficientnet_dialects(const std::string& network);
/// `network` is efficientnet_v2_s, _m or _l, which have 6 or 7 stages.
std::vector<Dialect> efficientnet_v2_dialects(const std::string& network);
std::vector<Dialect> mobilenet_dialects(bool large);
std::vector<Dialect> mobilenet_v2_dialects();
std::vector<Dialect> densenet_dialects();
std::vector<Dialect> regnet_dialects();
std::vector<Dialect> swin_dialects();
std::vector<Dialect> convnext_dialects();
std::vector<Dialect> vit_dialects();

/// Names that are as ours.
Dialect own_dialect(const std::string& name);

}  // namespace stoker::weights
