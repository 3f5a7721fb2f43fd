// SPDX-License-Identifier: Apache-2.0
// A source of files of many bands in front of the list of these files.
#pragma once

#include <memory>

#include "data/source.h"

namespace stoker::data {

/// `files` as samples of a fixed size where most of those that are TIFF files are such of many bands: their number of
/// channels, size and kind of number are those of most of some files that are looked at here; any other file is then a
/// bad sample. Else `files` itself. Throws core::Error{data} where files of bands are not read.
std::shared_ptr<const Source> as_bands(std::shared_ptr<const Source> files);

}  // namespace stoker::data
