// SPDX-License-Identifier: Apache-2.0
// A part of another source, and the split of a source in two by a hash of the names.
#pragma once

#include <memory>
#include <utility>

#include "data/source.h"

namespace stoker::data {

/// (kept, held out): a sample is held out when the hash of its relative name falls below `fraction`, so that
/// it stays on its side when other samples come or go. Either part may be empty.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction);

/// hold_out() of each class by itself: of its samples those with the lowest hashes are held out, `fraction`
/// of them, rounded, and at least one of two or more. As hold_out() where there are no classes.
std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_of_each_class(
    const std::shared_ptr<const Source>& whole, double fraction);

/// At most `most` samples, evenly spaced; the source itself when it has no more.
std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most);

}  // namespace stoker::data
