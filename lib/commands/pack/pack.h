// SPDX-License-Identifier: Apache-2.0
// `train pack`: packs a data set into tar shards.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct PackFlags {
  std::string dataset;  ///< data set; with --verify or --index a folder of shards
  std::string output;   ///< folder for the shards
  std::string shard_size = "512MB";
  int64_t max_side = 0, quality = 0;  ///< 0: not given
  std::vector<std::string> splits;
  bool progressive_to_baseline = false;
  bool verify = false, index = false;
};

[[gnu::weak]] Outcome pack(const Context& context, const PackFlags& flags);

inline Command pack_command() {
  const auto flags = std::make_shared<PackFlags>();
  Command command = make_command(
      "pack", "DATASET OUT [options]",
      "Packs a data set into tar shards that are read in any order. The same command resumes after a stop.", pack,
      flags);
  command.arguments = {
      config::argument("DATASET", "Data set to pack; with --verify or --index: a folder of shards.", flags->dataset),
      config::argument("OUT", "Folder for the shards.", flags->output, /*is_optional=*/true)};
  command.flags = {
      config::flag(
          "split", "NAME",
          "Split to pack; may be given several times (default: the training split and every usual split there is).",
          flags->splits),
      config::flag("shard-size", "SIZE",
                   "Largest size of a shard in bytes (512MB, 1GiB) or images (10000) (default: 512MB).",
                   flags->shard_size),
      config::flag("max-side", "N",
                   "Resizes larger images so that their longer side has N pixels; others keep their bytes.",
                   flags->max_side, 1, 65'500),
      config::flag(
          "quality", "N",
          "Writes every image as a JPEG of this quality, 1 to 100 (default: keep bytes; resized JPEGs get 90).",
          flags->quality, 1, 100),
      config::flag("progressive-to-baseline",
                   "Turns progressive JPEGs into baseline ones, which decode faster; the pixels stay the same.",
                   flags->progressive_to_baseline),
      config::flag("verify", "Reads all shards of a folder and compares them with their indexes, without packing.",
                   flags->verify),
      config::flag("index", "Writes the indexes that the shards of a folder lack, without packing.", flags->index)};
  command.takes = [](const config::Row& row) { return row.in_pack; };
  command.reads_files = true;
  return command;
}

}  // namespace stoker::train
