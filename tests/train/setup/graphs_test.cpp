// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/config/resolved_words.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

config::ResolvedOptions graph_options_of(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"--num-classes", "3"};
  all.insert(all.end(), words.begin(), words.end());
  return fixtures::resolved(all, {}).options;
}

TEST(GraphsTest, GraphsThatWereAskedForAndCannotBeAreAnError) {
  try {
    graph_runner_for(graph_options_of({"--graphs", "on"}), torch::kCPU);
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::config);
    EXPECT_EQ(std::string(error.what()), "graphs on is not possible: the device is no CUDA device");
    EXPECT_EQ(error.hint(), "leave --graphs out, or set --graphs off");
  }
  EXPECT_EQ(graph_runner_for(graph_options_of({"--graphs", "auto"}), torch::kCPU), nullptr);
  EXPECT_EQ(graph_runner_for(graph_options_of({"--graphs", "off"}), torch::kCPU), nullptr);
}

TEST(GraphsTest, GraphsAndPixelsThatStayOnTheDeviceAreOffUnlessAskedFor) {
  const config::ResolvedOptions options = graph_options_of({});
  EXPECT_EQ(options.device.graphs, config::Graphs::off);
  EXPECT_EQ(options.loader.feed, config::FeedKind::loader);
  EXPECT_FALSE(graph_options_of({"--graphs", "auto"}).device.graphs.has_value());
  EXPECT_FALSE(graph_options_of({"--feed", "auto"}).loader.feed.has_value());
}

TEST(GraphsTest, WhatIsInTheWayOfGraphsIsReported) {
  EXPECT_EQ(graphs_obstacle(graph_options_of({}), ""), "");
  EXPECT_EQ(graphs_obstacle(graph_options_of({}), "the device has none"), "the device has none");
  EXPECT_EQ(graphs_obstacle(graph_options_of({"--replicas", "2"}), ""), "an update has several replicas");
  EXPECT_EQ(graphs_obstacle(graph_options_of({"--grad-checkpointing"}), ""),
            "--grad-checkpointing reads random states of the host while it computes");
  config::ResolvedOptions file = graph_options_of({});
  file.model.model = "network.ts";
  EXPECT_EQ(graphs_obstacle(file, ""), "a network in a file may decide on the host what it computes");
}

}  // namespace
}  // namespace stoker::train
