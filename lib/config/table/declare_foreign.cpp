// SPDX-License-Identifier: Apache-2.0
// Keys that stand in the configuration files of other trainers, or of older programs, and are no options here: they are
// accepted, so that such a file starts a run, and a note says what does their work. Nothing here knows how options are
// read or shown.
#include "config/table/declaration.h"

namespace stoker::config {

void declare_foreign(Declaration& d) {
  const std::vector<std::pair<std::string, Shorthand::Values>> either = {{"true", {}}, {"false", {}}};
  d.add_foreign("model", "compile-model", "Of other trainers (torch.compile): accepted without effect.",
                "is accepted without effect: networks run as compiled C++, and there is no other compiler", either);
  d.add_foreign(
      "loader", "total-workers", "Of other trainers: accepted without effect; num-workers is of each process.",
      "is accepted without effect: num-workers is the number of each process, and --devices N has N times as many", {});
  d.add_foreign(
      "augment", "use-specaugment",
      "SpecAugment's masks by one word: true is freq-masks 2 and time-masks 2, false is neither.", "",
      {{"true", {{"freq-masks", "2"}, {"time-masks", "2"}}}, {"false", {{"freq-masks", "0"}, {"time-masks", "0"}}}});
  d.add_foreign(
      "run", "profile-performance", "Of other trainers: accepted without effect; where time goes is always measured.",
      "is accepted without effect: where time goes is always measured and reported; --profile 10u writes a trace",
      either);
  d.add_foreign("run", "profile-gpu-util",
                "Of other trainers: accepted without effect; what the device does is always sampled.",
                "is accepted without effect: GPU, VRAM, CPU and RAM are always sampled and reported", either);
  d.add_foreign("device", "accelerator",
                "Of Lightning: auto is device auto, cpu is device cpu, gpu or cuda is device cuda.", "",
                {{"auto", {{"device", "auto"}}},
                 {"cpu", {{"device", "cpu"}}},
                 {"gpu", {{"device", "cuda"}}},
                 {"cuda", {{"device", "cuda"}}}});
  std::vector<std::pair<std::string, Shorthand::Values>> epochs;
  for (int every = 1; every <= 10; ++every) {
    const std::string text = std::to_string(every);
    epochs.push_back({text, {{"val-every", text + "e"}}});
  }
  d.add_foreign("train", "check-val-every-n-epoch", "Of Lightning: val-every in epochs.", "", epochs);
  d.add_foreign("run", "log-every-n-steps",
                "Of Lightning: accepted without effect; report-every 50u is every 50 updates.",
                "is accepted without effect: --report-every 50u reports every 50 updates", {});
  d.add_foreign("run", "print-freq", "Of torchvision: accepted without effect; report-every 10u is every 10 updates.",
                "is accepted without effect: --report-every 10u reports every 10 updates", {});
  d.add_foreign("schedule", "lr-warmup-method", "Of torchvision: linear, which the warm-up is.", "", {{"linear", {}}});
  d.add_foreign("log", "enable-progress-bar",
                "Of Lightning: accepted without effect; there is a moving line where the output is a terminal.",
                "is accepted without effect: there is a moving line where the output is a terminal", either);
  d.add_removed("precision", "winograd", "Removed: accepted without effect; convolutions of float32 are LibTorch's.",
                "was removed: convolutions of float32 are LibTorch's, which rounds otherwise");
}

}  // namespace stoker::config
