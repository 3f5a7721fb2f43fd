// SPDX-License-Identifier: Apache-2.0
// The banner of a run before it starts: who, where, on what, with which arithmetic, and what was chosen.
#pragma once

#include <string>
#include <vector>

#include "config/resolution.h"

namespace stoker::observe {

struct BannerFacts {
  std::string version;   ///< "0.1.0"
  std::string libtorch;  ///< "LibTorch 1.13.0, CPU build"
  std::string command_line;
  std::vector<std::string> card;  ///< lines about the card and the machine around it; none on a CPU
  std::string device;             ///< "cpu" or "cuda:0 NVIDIA H200 (139 GB)"
  std::string precision;          ///< "bfloat16 autocast, channels-last"
  int64_t train_images = 0, val_images = 0, num_classes = 0;
  std::string items = "images";     ///< or "clips", "samples"
  std::string task;                 ///< "multiclass"
  std::string learned = "classes";  ///< or "targets": what num_classes counts
  std::string augment;              ///< "padded crop, mirrored 0.5"
  std::vector<std::string> data_notes;
  std::string model;    ///< "small_cnn"
  std::string input;    ///< "3 x 32 x 32": what a sample is for the network, channels x height x width
  std::string weights;  ///< file that a run from scratch begins with; "": none
  std::string backend;  ///< what was proven of the libraries; "": nothing is known
  std::string compute;  ///< "2.4 GFLOP an image ..."; "": not known
  int64_t parameters = 0;
  int64_t frozen_parameters = 0;
  int64_t lora = 0;     ///< rank; 0: none
  std::string teacher;  ///< "runs/large, resnet50: 0.9 of the loss, temperature 4"; "": none
  int64_t batch_size = 0, accumulation = 1, replicas = 1, ranks = 1, updates_per_epoch = 0, epochs = 0,
          total_updates = 0;          ///< as far as a limit lets it come
  int64_t max_updates = 0;            ///< the limit; 0: none
  bool bits_depend_on_ranks = false;  ///< ranks add in an order that depends on their number
  int64_t num_workers = 0;
  int64_t loader_ring_bytes = 0;
  std::vector<std::string> memory;  ///< lines of the memory plan
  std::vector<std::string> caches;  ///< one for each split: "training images: ram, ..."
  std::vector<std::string> recipe;  ///< "sgd, lr 0.025, ...": what the numbers of a run depend on
  std::string run_dir;
  std::string start;                    ///< "from scratch" or "resumes runs/x/checkpoints/step-00000100 (epoch 1)"
  std::vector<config::Choice> choices;  ///< choices for automatic options
};

/// Facts before anything is measured: program, command, data. The first lines of banner_lines() and its fourth.
std::vector<std::string> known_lines(const BannerFacts& facts);
/// The first lines of a run: at most 16 lines, and those of a card. What a narrow terminal breaks is the command alone,
/// if it is long.
std::vector<std::string> banner_lines(const BannerFacts& facts);
/// The rest: workers, caches, memory by part, notes that did not fit, and every automatic choice with its reason.
std::vector<std::string> banner_details(const BannerFacts& facts);

}  // namespace stoker::observe
