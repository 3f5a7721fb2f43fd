// SPDX-License-Identifier: Apache-2.0
// A source over the numbers of HDF5 files: samples of one shape, with a class or with numbers to learn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/container/sample_array.h"
#include "data/source.h"
#include "data/storage/staged_files.h"

namespace stoker::data {

struct Hdf5SampleFile {
  std::shared_ptr<const SampleArray> array;
  bool channels_first = false;                ///< as stored: [C, H, W] instead of [H, W, C]
  std::string path;                           ///< for names: the file that was given, not its copy
  std::shared_ptr<const StagedFiles> staged;  ///< the copy that is read, if any: it goes with the source
};

/// The parts of a source.
struct Hdf5Samples {
  std::vector<Hdf5SampleFile> files;  ///< the samples of one behind those of the other
  SampleShape shape;                  ///< shape of a sample, as the network gets it
  std::vector<int32_t> labels;        ///< [samples] or none
  std::vector<float> targets;         ///< [samples, target names] or none
};

/// The fingerprint is that of shape, labels and 64 samples: the same for a copy, for files with other
/// chunks or filters, and for the same samples in other files. Throws core::Error when one of these samples cannot be
/// read.
std::shared_ptr<const Source> make_hdf5_source(Hdf5Samples samples, std::vector<std::string> class_names,
                                               std::vector<std::string> target_names);

}  // namespace stoker::data
