// SPDX-License-Identifier: Apache-2.0
#include "model/script/network_library.h"

#include <dlfcn.h>

#include <atomic>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"

namespace stoker::model {
namespace {

using core::Error;
using core::ErrorKind;

constexpr const char* kLibrary = "libstoker_torchscript.so";
constexpr uint64_t kMaxBytes = uint64_t{8} << 30;

std::atomic<bool> is_trusted = false;

[[noreturn]] void refuse_library(const std::string& why) {
  throw Error(ErrorKind::unavailable, core::format("networks in files need {}, {}", kLibrary, why),
              "install it with this program, or build with -DSTOKER_TORCHSCRIPT=ON");
}

OpenForeignNetwork open_library() {
  static const OpenForeignNetwork opened = [] {
    std::string path = core::find_beside_program(kLibrary, "../lib/stoker");
    if (path.empty()) path = core::find_beside_program(kLibrary, "../../lib/stoker");  // of a program in libexec/stoker
    if (path.empty()) refuse_library("which is not installed beside this program");
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) refuse_library(core::format("which does not load: {}", ::dlerror()));
    void* const function = ::dlsym(library, kOpenForeignNetwork);
    if (function == nullptr) refuse_library("and the one beside this program is of another version");
    return reinterpret_cast<OpenForeignNetwork>(function);
  }();
  return opened;
}

/// The lines of the error itself: LibTorch adds pages of C++ frames and generated code.
std::string first_lines(const std::string& text) {
  constexpr size_t kMax = 400;
  return text.size() <= kMax ? text : text.substr(0, kMax) + " ...";
}

Error untrusted(const std::string& path) {
  return {ErrorKind::config,
          core::format("{}: a network in a file is a program, which runs as you", core::printable(path)),
          "add --trust-model if you trust its author; a file of weights is for --init-from, beside --model NAME of "
          "train list models"};
}

}  // namespace

bool is_network_file(const std::string& model) { return model.find_first_of("./") != std::string::npos; }

void trust_network_files() { is_trusted = true; }

bool trusts_network_files() { return is_trusted; }

void require_trust(const std::string& model) {
  if (!is_trusted && is_network_file(model) && core::file_exists(model)) throw untrusted(model);
}

NetworkFile read_network_file(const std::string& path) {
  NetworkFile file;
  file.bytes = core::read_file(path, kMaxBytes);
  file.sha256 = core::sha256_hex(file.bytes);
  return file;
}

std::unique_ptr<ForeignNetwork> open_foreign_network(const std::string& bytes, const std::string& path) {
  if (!is_trusted) throw untrusted(path);
  std::string problem;
  std::unique_ptr<ForeignNetwork> network(open_library()(bytes, problem));
  if (network) return network;
  throw Error(ErrorKind::data, core::format("{} holds no TorchScript: {}", core::printable(path), first_lines(problem)),
              "write it in Python with torch.jit.script(network).save(FILE); weights alone are read by --init-from");
}

}  // namespace stoker::model
