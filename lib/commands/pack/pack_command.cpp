// SPDX-License-Identifier: Apache-2.0
#include "commands/pack/pack.h"

namespace stoker::train {

using config::flag;

Command pack_command() {
  const auto flags = std::make_shared<PackFlags>();
  Command command;
  command.name = "pack";
  command.usage = "train pack DATASET OUT [options]";
  command.summary =
      "Packs a data set into tar shards that are read in any order. The same command resumes after a stop.";
  command.words = {
      config::word("DATASET", "Data set to pack; with --verify or --index: a folder of shards.", flags->dataset),
      config::word("OUT", "Folder for the shards.", flags->output, /*is_optional=*/true)};
  command.flags = {
      flag("split", "NAME",
           "Split to pack; may be given several times (default: the training split and every usual split there is).",
           flags->splits),
      flag("shard-size", "SIZE", "Largest size of a shard in bytes (512MB, 1GiB) or images (10000) (default: 512MB).",
           flags->shard_size),
      flag("max-side", "N", "Resizes larger images so that their longer side has N pixels; others keep their bytes.",
           flags->max_side, 1, 65'500),
      flag("quality", "N",
           "Writes every image as a JPEG of this quality, 1 to 100 (default: keep bytes; resized JPEGs get 90).",
           flags->quality, 1, 100),
      flag("progressive-to-baseline",
           "Turns progressive JPEGs into baseline ones, which decode faster; the pixels stay the same.",
           flags->progressive_to_baseline),
      flag("verify", "Reads all shards of a folder and compares them with their indexes, without packing.",
           flags->verify),
      flag("index", "Writes the indexes that the shards of a folder lack, without packing.", flags->index),
      config::choice_flag("progress", {"bar", "plain", "off"},
                          "Live line with a bar where the output is a terminal (default), a line each half minute, or "
                          "neither.",
                          flags->progress)};
  command.takes = [](const config::Row& row) { return row.in_pack; };
  command.reads_files = true;
  attach(command, pack, flags);
  return command;
}

}  // namespace stoker::train
