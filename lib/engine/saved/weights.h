// SPDX-License-Identifier: Apache-2.0
// Moving tensors between a file and a model by name, all or nothing.
#pragma once

#include <string>
#include <vector>

#include "model/image_model.h"

namespace stoker::engine {

/// Throws Error{data} listing (at most 20) tensors that are missing, unexpected, or of another type or shape.
void require_same_table(const std::vector<model::NamedTensor>& wanted, const std::vector<model::NamedTensor>& given,
                        const std::string& what,
                        const std::string& hint =
                            "check --model, --width, --num-classes and --in-chans against those "
                            "of the checkpoint; another network begins anew in another --run-dir");
/// Those of `targets` that `given` has under the same name, with the same type and shape. Adds to `lines`, one per kind
/// of tensor ("exp_avg." of a name), which others are reset and what of `given` is left out.
std::vector<model::NamedTensor> matching_tensors(const std::vector<model::NamedTensor>& targets,
                                                 const std::vector<model::NamedTensor>& given,
                                                 std::vector<std::string>& lines);
/// Copies values; `sources` has all of `targets`.
void copy_by_name(const std::vector<model::NamedTensor>& targets, const std::vector<model::NamedTensor>& sources);

/// Both, for a whole module.
void load_weights(torch::nn::Module& module, const std::vector<model::NamedTensor>& weights, const std::string& what);

}  // namespace stoker::engine
