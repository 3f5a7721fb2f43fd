// SPDX-License-Identifier: Apache-2.0
// A replayed update as files: each image as PNG, a contact sheet, exact numbers, and what was computed as JSON.
#pragma once

#include <string>

#include "commands/inspect/update_record.h"
#include "config/options.h"
#include "core/text/json.h"
#include "data/source.h"

namespace stoker::train {

/// Name of a sample's class, or its targets, for people.
std::string truth_text(const SampleRecord& sample, const data::Source& source);

/// Samples, losses and gradients. Numbers that are not finite are null.
core::Json record_json(const UpdateRecorder& record, const data::Source& source);

/// Into `folder`: images/0000.png and so on in the order of the update (of clips each frame), sheet.png and
/// batch.safetensors (what the network got, float32). PNG has 8 bits: normalised pixels of pictures are turned back,
/// exactly unless they are mixed; of other samples the range of each is stretched over black to white. Samples with
/// other than 1 or 3 channels have no PNG. Returns the number of PNG files in images/. Throws core::Error.
int64_t write_images(const std::string& folder, const UpdateRecorder& record, const data::Source& source,
                     const config::ResolvedDataOptions& options);

}  // namespace stoker::train
