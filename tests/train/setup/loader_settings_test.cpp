// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

TEST(LoaderSettingsTest, BatchesArePageLockedForACudaDeviceAlone) {
  config::ResolvedOptions options = fixtures::resolved({"--num-classes", "3"}, {}).options;
  options.loader.pin_memory = true;
  EXPECT_FALSE(loader_settings(options, torch::kCPU).pin_memory);
  EXPECT_TRUE(loader_settings(options, torch::Device("cuda:1")).pin_memory);
  options.loader.pin_memory = false;
  EXPECT_FALSE(loader_settings(options, torch::Device("cuda:1")).pin_memory);
}

}  // namespace
}  // namespace stoker::train
