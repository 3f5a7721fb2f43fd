// SPDX-License-Identifier: Apache-2.0
// A source that keeps samples in memory from their first use on. Results of a run do not depend on it.
#pragma once

#include <memory>

#include "data/cache/cache_plan.h"

namespace stoker::data {

/// `source` behind a cache as planned, which holds frames where it has videos; `source` itself where the plan holds
/// nothing. Whichever thread reads a sample first fills its place; others read from `source` meanwhile. Pixels are
/// those of decode_image() with the settings' channels and limits; an image that it refuses is handed on as it is
/// stored, so that bad images are found as without a cache. What is cached stays as it is when the file changes later.
/// Throws Error{out_of_memory} when the address space is exhausted.
std::shared_ptr<const Source> make_cached_source(std::shared_ptr<const Source> source, CachePlan plan,
                                                 const CacheSettings& settings);

}  // namespace stoker::data
