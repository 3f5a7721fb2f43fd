// SPDX-License-Identifier: Apache-2.0
// The flags of `train pack` that are no options.
#include "config/read/verbs.h"

namespace stoker::config {

std::vector<CommandFlag> make_pack_flags() {
  const std::vector<std::string> pack = {"pack"};
  return {
      {"split",
       {},
       "NAME",
       {},
       pack,
       "Split to pack; may be given several times (default: the training split and every usual split there "
       "is).",
       [](CommandLine& line, const std::string& text) { line.pack.splits.push_back(text); }},
      {"shard-size",
       {},
       "SIZE",
       {},
       pack,
       "Bytes (512MB, 1GiB) or images (10000) in a shard at most (default: 512MB).",
       [](CommandLine& line, const std::string& text) { line.pack.shard_size = text; }},
      {"max-side",
       {},
       "N",
       {},
       pack,
       "Resize larger images so that their longer side has N pixels; others keep their bytes.",
       [](CommandLine& line, const std::string& text) { line.pack.max_side = text; }},
      {"quality",
       {},
       "N",
       {},
       pack,
       "Write every image as a JPEG of this quality, 1 to 100 (default: keep bytes; resized JPEGs get 90).",
       [](CommandLine& line, const std::string& text) { line.pack.quality = text; }},
      {"progressive-to-baseline",
       {},
       "",
       {},
       pack,
       "Turn progressive JPEGs into baseline ones, which decode faster; the pixels stay the same.",
       [](CommandLine& line, const std::string&) { line.pack.progressive_to_baseline = true; }},
      {"verify",
       {},
       "",
       {},
       pack,
       "Read all shards of a folder and compare them with their indexes, without packing.",
       [](CommandLine& line, const std::string&) { line.pack.verify = true; }},
      {"index",
       {},
       "",
       {},
       pack,
       "Write the indexes that the shards of a folder lack, without packing.",
       [](CommandLine& line, const std::string&) { line.pack.index = true; }},
  };
}

}  // namespace stoker::config
