// SPDX-License-Identifier: Apache-2.0
// Runs that were stored before options were renamed open as if it had been written today.
#include "config/table/foreign_words.h"

#include <gtest/gtest.h>

#include <string>

#include <fstream>
#include <sstream>

#include "core/text/json.h"
#include "tests/config/command_words.h"

namespace stoker::config {
namespace {

std::string stored(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(STOKER_SOURCE_DIR "/tests/config/table/old_run/" + name, std::ios::binary).rdbuf();
  return text.str();
}

TEST(OldNamesTest, TheConfigurationOfAnOldRunHasTheValuesThatItHadThen) {
  Configuration run;
  read_run_config(stored("config.yaml"), "config.yaml", run);
  const AugmentOptions& augment = run.options.augment;
  EXPECT_EQ(augment.scale_min, 0.3);
  EXPECT_EQ(augment.scale_max, 1);
  EXPECT_EQ(augment.ratio_max, 4.0 / 3);
  EXPECT_EQ(augment.rand_augment, (std::vector<double>{2, 7}));
  EXPECT_EQ(augment.policy, AugmentPolicy::none);
  EXPECT_EQ(augment.color_jitter, std::vector<double>{0.3});
  EXPECT_EQ(augment.color_jitter_prob, 0.5);
  EXPECT_EQ(augment.gaussian_blur, 0.4);
  EXPECT_EQ(augment.gaussian_blur_kernel, 3);
  EXPECT_EQ(augment.gaussian_blur_sigma_max, 2);
  EXPECT_EQ(augment.gaussian_noise_prob, 0.3);
  EXPECT_EQ(augment.freq_masks, 0);
  EXPECT_EQ(run.options.data.on_bad_image, OnBadImage::skip);
  EXPECT_EQ(run.options.data.max_bad, 3);
  EXPECT_EQ(run.options.train.patience, 5);
  EXPECT_EQ(run.options.train.min_delta, 0.01);
  EXPECT_TRUE(run.options.precision.amp.value());
  EXPECT_EQ(run.options.precision.amp_dtype.value(), AmpDtype::bfloat16);
  EXPECT_EQ(run.options.schedule.one_cycle_pct_start, 0.2);
  EXPECT_TRUE(run.options.schedule.one_cycle_momentum);
  EXPECT_EQ(run.options.schedule.one_cycle_base_momentum, 0.8);
  EXPECT_EQ(run.table.row_of(augment.scale_min).origin.kind, Origin::Kind::run);
}

TEST(OldNamesTest, TheOptionsInAnOldCheckpointAreThoseOfItsConfiguration) {
  Configuration run;
  read_run_config(stored("config.yaml"), "config.yaml", run);
  const auto saved = with_current_names(core::Json::parse(stored("training_options.json")).get<OptionTexts>());
  for (const auto& [name, text] : saved) {
    const Row* const row = run.table.find(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_EQ(row->name, name);
    EXPECT_TRUE(row->is_auto() || row->render() == text) << name << " " << row->render() << " " << text;
  }
  for (const Row& row : run.table.rows()) {
    const bool is_none = row.render().empty();  // as in runs that have no such option
    EXPECT_TRUE(!row.training_relevant || is_none || saved.count(row.name) == 1 || !row.value_in_older_runs.empty())
        << row.name << " is younger than that checkpoint, which could not be resumed: its row in table/declare_*.cpp "
        << "needs value_in_older_runs(\"the value with the bits of older programs\"), or free_on_resume()";
  }
}

TEST(OldNamesTest, EachOldValueIsWrittenAsTodaysOptionWritesIt) {
  const std::pair<OptionTexts, OptionTexts> kCases[] = {
      {{{"amp", "true"}, {"amp-dtype", "float16"}}, {{"amp", "float16"}}},
      {{{"amp", "false"}, {"amp-dtype", "bfloat16"}}, {{"amp", "off"}}},
      {{{"amp", "auto"}, {"amp-dtype", "bfloat16"}}, {{"amp", "auto"}}},
      {{{"rand-augment", "2,9"}, {"trivial-augment", "false"}}, {{"auto-augment", "ra"}}},
      {{{"rand-augment", "none"}, {"trivial-augment", "true"}}, {{"auto-augment", "ta-wide"}}},
      {{{"rand-augment", "none"}, {"trivial-augment", "false"}}, {{"auto-augment", "none"}}},
      {{{"one-cycle-momentum", "false"}}, {{"one-cycle-momentum", "off"}}},
      {{{"one-cycle-momentum", "true"}, {"one-cycle-base-momentum", "0.8"}, {"one-cycle-max-momentum", "0.9"}},
       {{"one-cycle-momentum", "0.8,0.9"}}},
      {{{"color-jitter", "none"}, {"color-jitter-prob", "1"}}, {{"color-jitter", "none"}}},
      {{{"color-jitter", "0.4"}}, {{"color-jitter", "0.4"}}},
      {{{"frame-sampling", "stride"}, {"frame-stride", "2"}}, {{"frame-sampling", "stride,2"}}},
      {{{"hdf5-input", ""}, {"hdf5-label", "y"}}, {{"hdf5", ",y"}}},
      {{{"pose-head", "binned"}, {"pose-bins", "66"}, {"pose-range", "99"}, {"pose-loss-weight", "2"}},
       {{"pose-head", "binned,66,99,2"}}},
      {{{"task", "multiclass"}, {"loss", "smooth-l1"}}, {{"task", "multiclass"}, {"loss", "cross-entropy"}}},
      {{{"task", "multilabel"}, {"loss", "l1"}}, {{"task", "multilabel"}, {"loss", "bce"}}},
      {{{"task", "regression"}, {"loss", "l1"}}, {{"task", "regression"}, {"loss", "l1"}}},
      {{{"winograd", "true"}, {"lr", "0.1"}}, {{"lr", "0.1"}}}};
  for (const auto& [before, today] : kCases) EXPECT_EQ(with_current_names(before), today);
}

TEST(OldNamesTest, EveryStrengthOfRandAugmentSurvivesItsNewName) {
  for (int strength = 0; strength <= 30; ++strength) {
    const std::string old = "3," + std::to_string(strength);
    Configuration run;
    read_run_config("rand-augment: [" + old + "]\ntrivial-augment: false\n", "c.yaml", run);
    EXPECT_EQ(run.options.augment.rand_augment, (std::vector<double>{3, double(strength)}));
    const std::string text = run.table.find("auto-augment")->render();
    EXPECT_EQ(with_current_names({{"rand-augment", old}, {"trivial-augment", "false"}}),
              (OptionTexts{{"auto-augment", text}}));
    EXPECT_EQ(run.table.find("auto-augment")->assign(text), "");
    EXPECT_EQ(run.options.augment.rand_augment[1], strength) << text;
  }
}

TEST(OldNamesTest, AFileThatSomebodyWritesGetsAnErrorWithTheNewName) {
  Configuration configuration;
  std::vector<std::string> problems;
  read_yaml("augment:\n  scale_min: 0.3\ntrivial-augment: true\nwinograd: false\n", "a.yaml", Origin::Kind::file,
            configuration.table, problems);
  EXPECT_EQ(problems, (std::vector<std::string>{
                          "a.yaml:2: scale_min is a part of scale now, as in scale: 0.08,1",
                          "a.yaml:3: trivial-augment was renamed: write auto-augment: ra or rand-m9-n2 or ta-wide",
                          "a.yaml:4: winograd was removed; leave it out: convolutions of float32 are LibTorch's, which "
                          "rounds otherwise"}));
}

}  // namespace
}  // namespace stoker::config
