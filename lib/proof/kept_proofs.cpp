// SPDX-License-Identifier: Apache-2.0
#include "proof/kept_proofs.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/file.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace stoker::proof {
namespace {

namespace fs = std::filesystem;
using core::Json;

constexpr int kFormat = 3;  // of the files, and of the rules by which operations are compared
constexpr uint64_t kMostBytes = 1 << 20;
constexpr size_t kMostFiles = 2000;

/// The first processor, without what changes from moment to moment.
std::string processor_text() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (line.rfind("cpu MHz", 0) != 0 && line.rfind("bogomips", 0) != 0) text += line + "\n";
  }
  return text;
}

/// The leaves in which Intel's and AMD's processors describe their caches.
std::string cache_leaves() {
  std::string text;
#if defined(__x86_64__)
  for (const unsigned leaf : {0x4U, 0x8000001DU}) {
    for (unsigned part = 0; part < 5; ++part) {
      unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
      if (::__get_cpuid_count(leaf, part, &eax, &ebx, &ecx, &edx) == 0) continue;
      text += core::format("{:x}.{}: {:08x} {:08x} {:08x} {:08x}\n", leaf, part, eax, ebx, ecx, edx);
    }
  }
#endif
  return text;
}

/// A file as long as it is not written again: "path size time".
std::string file_text(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return path;
  return core::format("{} {} {}.{:09d}", path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::string libraries_text() {
  std::vector<std::string> files;
  ::dl_iterate_phdr(
      [](struct dl_phdr_info* info, size_t /*size*/, void* all) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
          static_cast<std::vector<std::string>*>(all)->push_back(file_text(info->dlpi_name));
        }
        return 0;
      },
      &files);
  std::sort(files.begin(), files.end());
  return core::format("{}", fmt::join(files, "\n"));
}

std::string environment_text() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const char* const begin : {"ONEDNN_", "DNNL_", "ATEN_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "LD_", "TORCH_",
                                    "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_"}) {
      if (std::strncmp(*entry, begin, std::strlen(begin)) == 0) entries.emplace_back(*entry);
    }
  }
  std::sort(entries.begin(), entries.end());
  return core::format("{}", fmt::join(entries, "\n"));
}

/// Whether only this user could have written it.
bool is_private(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         !S_ISLNK(info.st_mode);
}

Json subject(const Json& machine, const Request& request, const Remedy& before) {
  return {{"format", kFormat}, {"machine", machine}, {"request", request}, {"before", before}};
}

std::string file_name(const Json& of) { return core::hash_hex(of.dump()) + ".json"; }

/// Old ones go first.
void leave_few(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    files.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  if (files.size() <= kMostFiles) return;
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i + kMostFiles < files.size(); ++i) fs::remove(files[i].second, ignored);
}

}  // namespace

Json computing_machine(const std::string& program, const std::string& device_text) {
  return {{"processor", core::hash_hex(processor_text() + cache_leaves())},
          {"libraries", core::hash_hex(libraries_text())},
          {"environment", environment_text()},
          {"program", file_text(program)},
          {"device", device_text}};
}

KeptProofs::KeptProofs(std::string folder) : folder_(std::move(folder)) {}

std::string KeptProofs::usual_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/stoker/proofs";
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/stoker/proofs" : "";
}

std::optional<Proof> KeptProofs::find(const Json& machine, const Request& request, const Remedy& before) const {
  if (folder_.empty()) return std::nullopt;
  const Json wanted = subject(machine, request, before);
  const std::string path = folder_ + "/" + file_name(wanted);
  if (!is_private(folder_) || !is_private(path)) return std::nullopt;
  try {
    constexpr int kMostNesting = 16;
    const Json kept = core::parse_json(core::read_file(path, kMostBytes), path, kMostNesting);
    if (kept.at("subject") != wanted) return std::nullopt;
    Proof proof = kept.at("proof").get<Proof>();
    proof.was_kept = true;
    return proof.is_right ? std::optional<Proof>(proof) : std::nullopt;
  } catch (const std::exception& error) {
    core::log_debug("{}: {}; proven again", path, error.what());
    return std::nullopt;
  }
}

void KeptProofs::keep(const Json& machine, const Request& request, const Remedy& before, const Proof& proof) const {
  if (folder_.empty() || !proof.is_right) return;
  const Json of = subject(machine, request, before);
  try {
    fs::create_directories(fs::path(folder_).parent_path());
    if (::mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST) return;
    if (!is_private(folder_)) return;
    const Json file = {{"subject", of}, {"proof", proof}};
    core::write_file_atomically(folder_ + "/" + file_name(of), file.dump(1) + "\n", /*durable=*/false);
    leave_few(folder_);
  } catch (const std::exception& error) {
    core::log_debug("the proof is not kept: {}", error.what());
  }
}

}  // namespace stoker::proof
