// SPDX-License-Identifier: Apache-2.0
#include "commands/train/card_lines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace stoker::train {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 80u) << line;
    text += line + "\n";
  }
  return text;
}

TEST(CardLinesTest, EachThingThatMakesACardFastHasALine) {
  config::ResolvedOptions options;
  options.loader.pin_memory = true;
  options.loader.prefetch_factor = 4;
  options.precision.tf32 = true;
  options.precision.channels_last = true;
  options.precision.amp = true;
  options.precision.amp_dtype = config::AmpDtype::float16;
  EXPECT_EQ(joined(card_option_lines(options, /*is_fused=*/true)),
            "pinned    memory on: batches are decoded into it\n"
            "prefetch  4 batches decoded ahead, the next one copied ahead of its use\n"
            "copies    non-blocking, on a stream of their own\n"
            "TF32      on: products in float32 round their inputs to 10 bits\n"
            "layout    channels-last\n"
            "optimizer fused: one kernel for all parameters\n"
            "scaler    GradScaler from 65,536, doubled after 2,000 updates without overflow\n");
  options.loader.pin_memory = options.precision.tf32 = options.precision.channels_last = false;
  options.precision.amp_dtype = config::AmpDtype::bfloat16;
  EXPECT_EQ(joined(card_option_lines(options, /*is_fused=*/false)),
            "pinned    memory off (--pin-memory)\n"
            "prefetch  4 batches decoded ahead\n"
            "copies    blocking: memory is not pinned\n"
            "TF32      off (--tf32)\n"
            "layout    channels-first (--channels-last)\n"
            "optimizer foreach kernels: there is no fused one\n"
            "scaler    no GradScaler: only float16 needs one\n");
}

TEST(CardLinesTest, AnArchitectureThatHasNotPassedIsNamedAndThePageHasThoseThatHave) {
  std::ostringstream page;
  page << std::ifstream(STOKER_SOURCE_DIR "/docs/how-to/gpu.md").rdbuf();
  EXPECT_EQ(page.str().find("none yet") != std::string::npos, tried_cards().empty());
  for (const TriedCard& card : tried_cards()) {
    EXPECT_NE(page.str().find(card.name), std::string::npos) << card.name;
    EXPECT_TRUE(untried_lines(card.compute_capability).empty()) << card.name;
  }
  EXPECT_NE(joined(untried_lines("0.1")).find("untried   compute capability 0.1: no run on such a card yet"),
            std::string::npos);
  EXPECT_TRUE(untried_lines("").empty());
}

}  // namespace
}  // namespace stoker::train
