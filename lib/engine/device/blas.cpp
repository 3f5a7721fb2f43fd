// SPDX-License-Identifier: Apache-2.0
#include "engine/device/blas.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <cstdlib>

namespace stoker::engine {

BlasFacts blas_of_path(const std::string& path) {
  BlasFacts facts;
  facts.path = path;
  const auto has = [&](const char* part) { return path.find(part) != std::string::npos; };
  if (has("openblas")) {
    facts.name = has("openmp")   ? "OpenBLAS with OpenMP threads"
                 : has("serial") ? "OpenBLAS without threads"
                                 : "OpenBLAS";
  } else if (has("mkl")) {
    facts.name = "Intel MKL";
  } else if (has("blis")) {
    facts.name = "BLIS";
  } else if (has("atlas")) {
    facts.name = "ATLAS";
  } else if (has("libtorch")) {
    facts.name = "inside LibTorch";
  } else {
    facts.reference = has("/blas/libblas.") || has("/libblas.so");  // Debian's libblas3, or one built from Netlib
    facts.name = facts.reference ? "reference BLAS" : "unknown";
  }
  return facts;
}

BlasFacts blas_facts() {
  BlasFacts facts;
  Dl_info info{};
  void* const function = ::dlsym(RTLD_DEFAULT, "sgemm_");
  if (function && ::dladdr(function, &info) != 0 && info.dli_fname) {
    char* const resolved = ::realpath(info.dli_fname, nullptr);
    facts = blas_of_path(resolved ? resolved : info.dli_fname);
    std::free(resolved);
  } else {
    facts.name = at::globalContext().hasMKL() ? "Intel MKL inside LibTorch" : "inside LibTorch";
  }
  facts.onednn = at::globalContext().hasMKLDNN();
  return facts;
}

}  // namespace stoker::engine
