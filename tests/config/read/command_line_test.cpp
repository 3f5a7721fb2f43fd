// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/config/command_words.h"
#include "tests/temporary_directory.h"

namespace stoker::config {
namespace {

using fixtures::Failure;
using fixtures::parse_failure;
using fixtures::parsed;

class CommandLineTest : public ::testing::Test {
 protected:
  fixtures::TemporaryDirectory directory_;
};

TEST_F(CommandLineTest, PrecedenceIsDefaultsThenPresetThenFilesInOrderThenFlags) {
  const std::string a = directory_.write("a.yaml", "batch-size: 10\nepochs: 11\nseed: 12\n");
  const std::string b = directory_.write("b.yaml", "epochs: 21\nseed: 22\n");
  const auto c = parsed({"--seed", "33", "-c", a, "--preset", "fashion_mnist", "--cfg", b});
  EXPECT_EQ(c->options.loader.batch_size.value(), 10);
  EXPECT_EQ(c->options.train.epochs, 21);
  EXPECT_EQ(c->options.train.seed, 33u);
  EXPECT_EQ(c->options.data.dataset, DatasetType::idx);
  EXPECT_EQ(c->options.train.patience, 0);
  EXPECT_EQ(c->table.find("seed")->origin.detail, "--seed");
  EXPECT_EQ(c->table.find("epochs")->origin.detail, b + ":1");
  EXPECT_EQ(c->table.find("batch-size")->origin.detail, a + ":1");
  EXPECT_EQ(c->table.find("dataset")->origin.kind, Origin::Kind::preset);
  EXPECT_EQ(c->table.find("patience")->origin.kind, Origin::Kind::built_in);
  EXPECT_EQ(c->flags.config_files, (std::vector<std::string>{a, b}));
}

TEST_F(CommandLineTest, WithoutDataThePresetOfFashionMnistAppliesBelowTheFlags) {
  const auto c = parsed({"--epochs", "3"});
  EXPECT_FALSE(c->flags.names_data);
  EXPECT_EQ(c->flags.preset, "fashion_mnist");
  EXPECT_EQ(c->options.train.epochs, 3);
  EXPECT_EQ(c->options.data.dataset, DatasetType::idx);
  const std::string& detail = c->table.find("dataset")->origin.detail;
  EXPECT_EQ(detail.find("preset fashion_mnist:"), 0u) << detail;
  EXPECT_NE(detail.find(", since no data was named"), std::string::npos) << detail;
  EXPECT_EQ(c->notes, (std::vector<std::string>{
                          "no data was named: trains the example fashion_mnist; your own: train --data-dir FOLDER"}));
}

TEST_F(CommandLineTest, NoPresetAppliesOnceDataOrAFileIsNamed) {
  const auto by_flag = parsed({"--data", directory_.path()});
  EXPECT_TRUE(by_flag->flags.names_data);
  EXPECT_EQ(by_flag->flags.preset, "");
  EXPECT_EQ(by_flag->options.data.dataset, DatasetType::automatic);
  const auto by_file = parsed({"-c", directory_.write("a.yaml", "epochs: 2\n")});
  EXPECT_FALSE(by_file->flags.names_data);
  EXPECT_EQ(by_file->flags.preset, "");
}

TEST_F(CommandLineTest, AMissingConfigurationFileIsAMissingInput) {
  const Failure failure = parse_failure({"-c", directory_ / "none.yaml"});
  EXPECT_EQ(failure.kind, core::ErrorKind::no_input);
  EXPECT_TRUE(failure.mentions("none.yaml")) << failure.message;
  EXPECT_EQ(parse_failure({"-c", directory_.path()}).kind, core::ErrorKind::no_input);
}

TEST_F(CommandLineTest, ProblemsOfAllFilesAreListedTogether) {
  const std::string a = directory_.write("a.yaml", "epochs: 0\n");
  const std::string b = directory_.write("b.yaml", "sede: 1\n");
  const Failure failure = parse_failure({"-c", a, "-c", b});
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_EQ(failure.message, "2 problems with the configuration:\n  " + a +
                                 ":1: epochs: 0 is out of range; accepted: 1 to 1000000\n  " + b +
                                 ":1: unknown option \"sede\"; did you mean seed?");
  EXPECT_EQ(parse_failure({"-c", a, "--foo"}).kind, core::ErrorKind::usage);
  EXPECT_TRUE(parse_failure({"-c", a, "--foo"}).mentions("a.yaml:1: epochs"));
}

TEST_F(CommandLineTest, AFileOverOneMegabyteIsAConfigurationError) {
  const Failure failure = parse_failure({"-c", directory_.write("big.yaml", std::string(1000001, '#'))});
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_TRUE(failure.mentions("big.yaml")) << failure.message;
}

TEST_F(CommandLineTest, AnUnknownPresetNamesTheKnownOnes) {
  const Failure failure = parse_failure({"--preset", "fashion_mnit"});
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_TRUE(failure.mentions("unknown preset fashion_mnit; did you mean fashion_mnist?")) << failure.message;
  EXPECT_TRUE(failure.mentions("bench/fashion_mnist_peer")) << failure.message;
}

TEST_F(CommandLineTest, WhatHasNoEffectIsNoted) {
  const auto c = parsed({"--data", "x", "--no-persistent-workers"});
  ASSERT_EQ(c->notes.size(), 1u);
  EXPECT_EQ(c->notes[0],
            "persistent-workers (--no-persistent-workers) is accepted and ignored: workers always live as "
            "long as the run");
}

}  // namespace
}  // namespace stoker::config
