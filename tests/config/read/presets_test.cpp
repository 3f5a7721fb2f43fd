// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(PresetsTest, EveryConfigurationFileIsEmbeddedByItsPath) {
  const fs::path configs = fs::path(STOKER_SOURCE_DIR) / "configs";
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(configs)) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const std::string name = fs::relative(entry.path(), configs).replace_extension().generic_string();
    EXPECT_EQ(preset_text(name), text_of_file(entry.path())) << name;
  }
  EXPECT_EQ(preset_names().size(), files);
  EXPECT_GE(files, 2u);
}

TEST(PresetsTest, EveryPresetIsReadWithoutAProblemAndResolves) {
  for (const std::string& name : preset_names()) {
    core::MachineFacts machine;
    machine.cpus = 2;
    machine.accelerators = {{"Card", 80'000'000'000, true}};
    EXPECT_NO_THROW(fixtures::resolved({"--preset", name}, fixtures::facts_of(machine))) << name;
  }
}

TEST(PresetsTest, FilesWithExpectedNumbersOfOneCycleKeepTheMomentumOfThoseNumbers) {
  for (const std::string& name : preset_names()) {
    const ScheduleOptions schedule = fixtures::parsed({"--preset", name})->options.schedule;
    const bool cycles = !schedule.sched.is_auto() && schedule.sched.value() == ScheduleKind::one_cycle;
    EXPECT_FALSE(cycles && schedule.one_cycle_momentum) << name;
  }
}

TEST(PresetsTest, ThePeerPresetHoldsTheHyperparametersOfTheScript) {
  const auto c = fixtures::parsed({"--preset", "bench/fashion_mnist_peer"});
  const Options& o = c->options;
  EXPECT_EQ(o.model.model, "peer_cnn");
  EXPECT_EQ(o.loader.batch_size.value(), 128);
  EXPECT_EQ(o.loader.val_batch_size.value(), 512);
  EXPECT_TRUE(o.loader.drop_last.value());
  EXPECT_EQ(o.optim.lr.value(), 0.1);
  EXPECT_TRUE(o.optim.nesterov);
  EXPECT_TRUE(o.optim.decay_norm_and_bias);
  EXPECT_EQ(o.schedule.sched.value(), ScheduleKind::one_cycle);
  EXPECT_FALSE(o.precision.amp.value());
  EXPECT_TRUE(o.precision.channels_last.value()) << "layout is no hyperparameter: the faster one is taken";
}

TEST(PresetsTest, AnUnknownPresetIsAConfigurationErrorThatListsThem) {
  const auto failure = fixtures::failure_of([] { preset_text("nothing"); });
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_EQ(failure.message, "unknown preset nothing");
  EXPECT_NE(failure.hint.find("fashion_mnist"), std::string::npos);
}

}  // namespace
}  // namespace stoker::config
