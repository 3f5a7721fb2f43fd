// SPDX-License-Identifier: Apache-2.0
#include "core/text/address.h"

#include <algorithm>
#include <cctype>

#include "core/format.h"

namespace stoker::core {

bool is_address(std::string_view text) {
  const size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+'; });
}

std::string command_to_copy(const std::string& address) {
  const size_t end = address.find("://");
  const std::string kind = lower_case(address.substr(0, end)), rest = address.substr(std::min(end + 3, address.size()));
  const std::string word = shell_word(address);
  if (kind == "s3") return "aws s3 cp --recursive " + word + " data";
  if (kind == "gs") return "gcloud storage cp -r " + word + " data";
  if (kind == "hf") {
    constexpr std::string_view kDatasets = "datasets/";
    const bool is_data = rest.rfind(kDatasets, 0) == 0;
    const std::string repository = is_data ? rest.substr(kDatasets.size()) : rest;
    return "huggingface-cli download " + std::string(is_data ? "--repo-type dataset " : "") + shell_word(repository) +
           " --local-dir data";
  }
  if (kind != "http" && kind != "https" && kind != "ftp") return "";
  const std::string path = rest.substr(0, rest.find_first_of("?#"));
  const std::string file = shell_word(path.substr(path.find_last_of('/') + 1));
  if (ends_with(path, ".zip")) return "wget " + word + " && unzip " + file + " -d data";
  const bool is_tar = path.find(".tar") != std::string::npos || ends_with(path, ".tgz");
  return "wget " + word + (is_tar ? " && mkdir data && tar -xf " + file + " -C data" : "");
}

std::string copy_first(const std::string& address) {
  const std::string command = command_to_copy(address);
  return "nothing is downloaded: " + (command.empty() ? "copy it to this machine" : "run " + command) + ", then ";
}

}  // namespace stoker::core
