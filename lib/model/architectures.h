// SPDX-License-Identifier: Apache-2.0
// The factories behind make_model(). Only this module includes this file.
#pragma once

#include <memory>

#include "core/error.h"
#include "core/format.h"
#include "model/image_model.h"

namespace stoker::model {

// The factory of each row. With num_classes 0 a network that has features() is made without its classifier.
#define STOKER_NETWORK(name, factory, usual, takes_drop_path, takes_clips) \
  std::shared_ptr<ImageModel> factory(const ModelSpec& spec);
#include "model/networks.inc"
#undef STOKER_NETWORK

/// The row of a family's table that the network is; rows have a `name`. Throws Error{bug} where there is none: names
/// are those of networks.inc.
template <typename Shapes>
const auto& shape_named(const Shapes& shapes, const ModelSpec& spec) {
  for (const auto& shape : shapes) {
    if (spec.name == shape.name) return shape;
  }
  throw core::Error(core::ErrorKind::bug, core::format("no network is called '{}'", spec.name));
}

/// Makes the network that a larger one is built on: without its classifier, with features().
using BackboneFactory = std::shared_ptr<ImageModel> (*)(ModelSpec spec);
/// Clips seen sharp and degraded, by a backbone per frame and a ConvLSTM over time.
std::shared_ptr<ImageModel> make_two_stream(const ModelSpec& spec, BackboneFactory make_backbone);

}  // namespace stoker::model
