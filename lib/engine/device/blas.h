// SPDX-License-Identifier: Apache-2.0
// Which library multiplies matrices on the CPU: asked of the running process, not of the build. Torch-free header.
#pragma once

#include <string>

namespace stoker::engine {

struct BlasFacts {
  std::string path;        ///< of the file that holds sgemm_, links resolved; empty: LibTorch has it inside
  std::string name;        ///< "OpenBLAS with OpenMP threads"
  bool reference = false;  ///< the slow one, from which every other one is measured
  bool onednn = false;     ///< convolutions run in oneDNN, whatever the BLAS is
};
BlasFacts blas_facts();

/// The library that a path names: "libopenblas", "openblas-openmp/libblas.so.3", ...
BlasFacts blas_of_path(const std::string& path);

}  // namespace stoker::engine
