// SPDX-License-Identifier: Apache-2.0
#include "config/table/table.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>

namespace stoker::config {
namespace {

class TableTest : public ::testing::Test {
 protected:
  Options options_;
  Table table_{options_};
};

TEST_F(TableTest, EveryNameStandsForOneOptionOnly) {
  std::set<std::string> seen;
  for (const std::string& name : table_.all_names()) EXPECT_TRUE(seen.insert(name).second) << name;
  std::set<std::string> short_names;
  for (const Row& row : table_.rows()) {
    for (const std::string& alias : row.aliases) {
      EXPECT_TRUE(alias.size() > 1 || short_names.insert(alias).second) << alias;
    }
  }
}

TEST_F(TableTest, EveryRowIsDescribedAndInAGroup) {
  for (const Row& row : table_.rows()) {
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_EQ(row.help.back(), '.') << row.name;
    EXPECT_NE(table_.find_group(row.group), nullptr) << row.name;
    EXPECT_EQ(row.name.find('_'), std::string::npos) << row.name;
    EXPECT_EQ(row.origin.kind, Origin::Kind::built_in) << row.name;
    const bool shows_its_value = row.is_switch || !row.choices.empty() || !row.placeholder.empty();
    EXPECT_TRUE(shows_its_value) << row.name;
  }
}

TEST_F(TableTest, EveryRenderedDefaultIsAccepted) {
  for (Row& row : table_.rows()) {
    EXPECT_EQ(row.default_text, row.render()) << row.name;
    EXPECT_EQ(row.assign(row.default_text), "") << row.name;
    EXPECT_EQ(row.render(), row.default_text) << row.name;
  }
}

TEST_F(TableTest, UnderscoresAreDashesInEveryName) {
  EXPECT_EQ(table_.find("batch_size"), table_.find("batch-size"));
  EXPECT_EQ(table_.find("gradient_accumulation_steps"), table_.find("accumulation-steps"));
  EXPECT_NE(table_.find("batch_size"), nullptr);
  EXPECT_EQ(table_.find("batchsize"), nullptr);
}

TEST_F(TableTest, AcceptsTheNamesOfOtherTrainers) {
  const std::pair<const char*, const char*> kAliases[] = {{"b", "batch-size"},
                                                          {"batch", "batch-size"},
                                                          {"vb", "val-batch-size"},
                                                          {"j", "num-workers"},
                                                          {"workers", "num-workers"},
                                                          {"prefetch", "prefetch-factor"},
                                                          {"pin-mem", "pin-memory"},
                                                          {"use-amp", "amp"},
                                                          {"grad-accum-steps", "accumulation-steps"},
                                                          {"gradient-accumulation-steps", "accumulation-steps"},
                                                          {"accumulate-grad-batches", "accumulation-steps"},
                                                          {"optimizer", "opt"},
                                                          {"learning-rate", "lr"},
                                                          {"wd", "weight-decay"},
                                                          {"lr-scheduler", "sched"},
                                                          {"clip-grad-norm", "clip-grad"},
                                                          {"max-grad-norm", "clip-grad"},
                                                          {"smoothing", "label-smoothing"},
                                                          {"output", "run-dir"},
                                                          {"resume-from", "resume"},
                                                          {"save-interval", "save-every"},
                                                          {"val-interval", "val-every"},
                                                          {"log-interval", "report-every"},
                                                          {"checkpoint-hist", "keep-last"},
                                                          {"monitor", "eval-metric"},
                                                          {"early-stopping", "patience"},
                                                          {"d", "device"},
                                                          {"m", "model"},
                                                          {"arch", "model"},
                                                          {"weights", "init-from"},
                                                          {"pretrained", "init-from"},
                                                          {"imgsz", "img-size"},
                                                          {"image-size", "img-size"},
                                                          {"data", "data-dir"},
                                                          {"data-path", "data-dir"},
                                                          {"max-epochs", "epochs"},
                                                          {"max-steps", "max-updates"},
                                                          {"log", "log-file"}};
  for (const auto& [alias, name] : kAliases) {
    ASSERT_NE(table_.find(alias), nullptr) << alias;
    EXPECT_EQ(table_.find(alias)->name, name) << alias;
  }
}

TEST_F(TableTest, ShorthandsSetTheOptionsBehindThem) {
  std::vector<Assignment> assignments;
  EXPECT_EQ(table_.expand("precision", "bf16-mixed", assignments), "");
  EXPECT_EQ(table_.expand("gpus", "3", assignments), "");
  ASSERT_EQ(assignments.size(), 3u);
  EXPECT_EQ(assignments[0].row->name, "amp");
  EXPECT_EQ(assignments[0].text, "bfloat16");
  EXPECT_EQ(assignments[1].row->name, "device");
  EXPECT_EQ(assignments[2].row->name, "devices");
  EXPECT_EQ(assignments[2].text, "3");
  EXPECT_EQ(table_.expand("precision", "64", assignments),
            "\"64\" is not accepted; write one of 32, 32-true, 16, 16-mixed, bf16, bf16-mixed");
  EXPECT_EQ(table_.expand("fp16", "false", assignments), "\"false\" is not accepted; write true");
}

TEST_F(TableTest, EveryShorthandNamesOptionsAndValuesThatExist) {
  for (const Shorthand& shorthand : table_.shorthands()) {
    EXPECT_EQ(table_.find(shorthand.name), nullptr) << shorthand.name;
    for (const auto& choice : shorthand.choices) {
      std::vector<Assignment> assignments;
      EXPECT_EQ(
          table_.expand(shorthand.name, choice.first == "N" || choice.first == "I" ? "7" : choice.first, assignments),
          "");
      for (const Assignment& assignment : assignments) {
        ASSERT_NE(assignment.row, nullptr) << shorthand.name;
        EXPECT_EQ(assignment.row->assign(assignment.text), "") << shorthand.name;
      }
    }
  }
}

TEST_F(TableTest, ThereAreAtMostAHundredAndEightyOptions) {
  EXPECT_LE(table_.rows().size(), 180u)
      << "an option exists only where no good default does, see CONTRIBUTING.md: choose "
      << "the value, make it a value of another option, or remove one that is less used";
}

TEST_F(TableTest, ALaterKindOfOriginIsNeverReplacedByAnEarlierOne) {
  Row& row = *table_.find("epochs");
  EXPECT_EQ(table_.set(row, "7", {Origin::Kind::flag, "--epochs"}), "");
  EXPECT_EQ(table_.set(row, "3", {Origin::Kind::file, "a.yaml:1"}), "");
  EXPECT_EQ(options_.train.epochs, 7);
  EXPECT_EQ(row.origin.detail, "--epochs");
  EXPECT_EQ(table_.set(row, "9", {Origin::Kind::flag, "--max-epochs"}), "");
  EXPECT_EQ(options_.train.epochs, 9) << "of the same kind the later one counts";
}

TEST_F(TableTest, AHiddenValueIsStillChecked) {
  Row& row = *table_.find("epochs");
  EXPECT_EQ(table_.set(row, "7", {Origin::Kind::flag, "--epochs"}), "");
  EXPECT_EQ(table_.set(row, "0", {Origin::Kind::file, "a.yaml:1"}), "0 is out of range; accepted: 1 to 1000000");
  EXPECT_EQ(options_.train.epochs, 7);
}

TEST_F(TableTest, AutomaticValuesCanBeAskedForAgain) {
  Row& row = *table_.find("num-workers");
  EXPECT_TRUE(row.is_auto());
  EXPECT_EQ(row.assign("3"), "");
  EXPECT_FALSE(row.is_auto());
  EXPECT_EQ(options_.loader.num_workers.value(), 3);
  EXPECT_EQ(row.assign("auto"), "");
  EXPECT_TRUE(row.is_auto());
  EXPECT_EQ(row.assign("-1"), "-1 is out of range; accepted: 0 to 1024; -1 does not mean automatic, write auto");
}

TEST_F(TableTest, EveryRowIsFoundByTheFieldThatItIsBoundTo) {
  EXPECT_EQ(table_.row_of(options_.optim.lr).name, "lr");
  EXPECT_EQ(table_.row_of(options_.data.task).name, "task");
  EXPECT_EQ(table_.row_of(options_.data.dataset).name, "dataset");
  std::set<const void*> fields;
  for (const Row& row : table_.rows()) {
    EXPECT_TRUE(fields.insert(row.field).second) << row.name;
    for (const void* const field : row.more_fields) EXPECT_TRUE(fields.insert(field).second) << row.name;
  }
  EXPECT_EQ(table_.row_of(options_.augment.scale_max).name, "scale");
  const Options others;
  EXPECT_THROW(table_.row_of(others.optim.lr), std::logic_error);
}

static_assert(!std::is_convertible_v<Auto<double>, double>, "only resolve() reads automatic values");

TEST_F(TableTest, ResolvedOptionsHaveTheSameRowsAndNothingAutomatic) {
  ResolvedOptions options;
  const Table resolved(options);
  ASSERT_EQ(resolved.rows().size(), table_.rows().size());
  for (size_t i = 0; i < resolved.rows().size(); ++i) {
    const Row &row = resolved.rows()[i], &given = table_.rows()[i];
    EXPECT_EQ(row.name, given.name);
    EXPECT_EQ(row.group, given.group) << row.name;
    EXPECT_FALSE(row.is_auto()) << row.name;
  }
}

TEST_F(TableTest, ReadingAnUnchosenAutomaticValueIsABug) { EXPECT_THROW(options_.optim.lr.value(), std::logic_error); }

TEST_F(TableTest, WhatMayChangeOnResumeIsMarkedSo) {
  for (const char* name :
       {"run-dir", "num-workers", "prefetch-factor", "pin-memory", "save-every", "keep-last", "device", "threads",
        "log-level", "max-updates", "max-time", "patience", "report-every", "data-dir"}) {
    EXPECT_FALSE(table_.find(name)->training_relevant) << name;
  }
  for (const char* name : {"batch-size", "epochs", "lr", "seed", "model", "amp", "accumulation-steps", "hflip", "sched",
                           "channels-last", "drop-last", "weight-decay", "img-size", "label-smoothing"}) {
    EXPECT_TRUE(table_.find(name)->training_relevant) << name;
  }
}

}  // namespace
}  // namespace stoker::config
