// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/banner.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

BannerFacts facts() {
  BannerFacts facts;
  facts.compute = "1 GFLOP";
  facts.recipe = {"sgd lr 0.1", "seed 42"};
  facts.memory = {"memory    host 210.0 MB of 24.9 GB: program 182.9 MB + data 379.9 kB"};
  for (int i = 0; i < 20; ++i) facts.data_notes.push_back("number " + std::to_string(i));
  facts.choices = {{"lr", "0.1", "scaled"}};
  return facts;
}

TEST(BannerTest, HasAtMost16LinesAndLeavesTheRestToTheDetails) {
  const std::vector<std::string> lines = banner_lines(facts());
  EXPECT_EQ(lines.size(), 16u);
  const std::string text = joined(lines), details = joined(banner_details(facts()));
  EXPECT_NE(text.find("note      number 0\n"), std::string::npos);
  for (int i = 0; i < 20; ++i) {
    const std::string note = "note      number " + std::to_string(i) + "\n";
    EXPECT_NE(text.find(note) == std::string::npos, details.find(note) == std::string::npos) << note;
  }
  EXPECT_EQ(text.find("chosen  "), std::string::npos);
  EXPECT_NE(details.find("chosen    --lr 0.1: scaled"), std::string::npos);
  EXPECT_NE(text.find("memory    host 210.0 MB of 24.9 GB\n"), std::string::npos) << text;
  EXPECT_NE(details.find("+ data 379.9 kB"), std::string::npos);
}

TEST(BannerTest, LinesOfACardComeBehindTheDevice) {
  BannerFacts card = facts();
  card.device = "cuda:0 NVIDIA H200";
  card.card = {"driver    NVIDIA 535", "pinned    memory on"};
  const std::vector<std::string> lines = banner_lines(card);
  EXPECT_EQ(lines.size(), 18u);
  EXPECT_EQ(lines[2].rfind("device    cuda:0", 0), 0u) << lines[2];
  EXPECT_EQ(lines[3], "driver    NVIDIA 535");
}

TEST(BannerTest, TheBatchOfManyProcessesFits80Columns) {
  BannerFacts many = facts();
  many.batch_size = 4096;
  many.accumulation = 16;
  many.ranks = 16;
  many.replicas = 64;
  many.train_images = 5'000'000;
  const std::vector<std::string> lines = banner_lines(many);
  EXPECT_NE(joined(lines).find("4096 images x 16 accumulation x 64 replicas = 4194304 per update\n"),
            std::string::npos);
  EXPECT_NE(joined(lines).find("16 processes x 4 replicas: bit-identical for any number of processes\n"),
            std::string::npos);
  EXPECT_NE(joined(lines).find("4 replicas run one after the other; --devices 64 runs all at once\n"),
            std::string::npos);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
  many.ranks = 64;
  EXPECT_EQ(joined(banner_lines(many)).find("one after the other"), std::string::npos);
  many.replicas = many.ranks = 1;
  for (const std::string& line : banner_lines(many)) EXPECT_LE(line.size(), 80u) << line;
}

TEST(BannerTest, ABatchOfMoreThanThereAreHasThemAll) {
  BannerFacts few = facts();
  few.batch_size = 64;
  few.train_images = 54;
  EXPECT_NE(joined(banner_lines(few)).find("x 1 accumulation x 1 device: all 54 per update\n"), std::string::npos);
  few.replicas = 2;
  EXPECT_NE(joined(banner_lines(few)).find("x 1 accumulation x 2 replicas: all 54 per update\n"), std::string::npos);
  few.replicas = 1;
  few.train_images = 64;
  EXPECT_NE(joined(banner_lines(few)).find("x 1 accumulation x 1 device = 64 per update\n"), std::string::npos);
}

TEST(BannerTest, ALimitOfUpdatesIsNoFactorOfTheLength) {
  BannerFacts limited = facts();
  limited.epochs = 10;
  limited.updates_per_epoch = 8;
  limited.max_updates = limited.total_updates = 20;
  EXPECT_NE(joined(banner_lines(limited))
                .find("length    10 epochs x 8 updates = 80 updates\n"
                      "          stops after 20 of 80 updates; the schedule spans all of them\n"),
            std::string::npos);
  limited.max_updates = 5000;
  limited.total_updates = 80;
  EXPECT_NE(
      joined(banner_lines(limited)).find("= 80 updates\n          fewer than the 5,000 of max-updates: raise epochs"),
      std::string::npos);
}

TEST(BannerTest, ShowsWhatTheNetworkSeesAndWhereItsWeightsComeFrom) {
  BannerFacts from_others = facts();
  from_others.model = "resnet18";
  from_others.parameters = 11181642;
  from_others.input = "3 x 224 x 224";
  EXPECT_NE(joined(banner_lines(from_others)).find("model     resnet18, 11,181,642 parameters, input 3 x 224 x 224\n"),
            std::string::npos);
  EXPECT_EQ(joined(banner_lines(from_others)).find("weights of"), std::string::npos);
  from_others.weights = "resnet18.safetensors";
  EXPECT_NE(joined(banner_lines(from_others)).find("3 x 224 x 224\n          starts from the weights of resnet18.s"),
            std::string::npos);
}

TEST(BannerTest, NamesTheRecipe) {
  EXPECT_NE(joined(banner_lines(facts())).find("recipe    sgd lr 0.1\n          seed 42\n"), std::string::npos);
}

}  // namespace
}  // namespace stoker::observe
