// SPDX-License-Identifier: Apache-2.0
// Which parameters do not learn, by name.
#pragma once

#include <string>

#include "model/image_model.h"

namespace stoker::model {

/// Parameters that match one of comma-separated patterns get no gradient. A pattern is a glob (*, ?, [...],
/// where * crosses dots) over a parameter's name or the name of a module around it: "layer1" and "*.bias" are
/// patterns. One that begins with "!" lets what it matches learn after all; the last pattern that matches
/// decides. Batch norms without a learning parameter stay in evaluation mode, so that their statistics keep
/// still too. Throws Error{config} for a pattern that matches nothing, and when nothing is left to learn.
void freeze(ImageModel& model, const std::string& patterns);
/// All but the classifier gets no gradient; what follows a backbone counts as one.
void freeze_backbone(ImageModel& model);
/// Batch norms without a learning parameter stay in evaluation mode from the next train() on, all others do not.
void rest_frozen_norms(ImageModel& model);

/// How many numbers of a network do not learn.
int64_t frozen_count(const torch::nn::Module& module);

}  // namespace stoker::model
