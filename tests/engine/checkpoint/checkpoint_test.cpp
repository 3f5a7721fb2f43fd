// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "core/log.h"
#include "tests/engine/checkpoint/tiny_learner.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

namespace fs = std::filesystem;
using fixtures::TemporaryDirectory;

RunProgress state_at(int64_t updates) {
  RunProgress state;
  state.epoch = 3;
  state.update_in_epoch = 2;
  state.updates = updates;
  state.best.value = 0.75;
  state.best.epoch = 1;
  state.best.updates = 1;
  return state;
}

RunIdentity identity(const std::string& lr = "0.1", const std::string& data = "abc") {
  RunIdentity identity;
  identity.config_yaml = "lr: " + lr + "\n";
  identity.training_options = {{"lr", lr, ""}, {"epochs", "5", ""}, {"eval-metric", "top1", ""}};
  identity.data_fingerprint = data;
  identity.class_names = {"cat", "dog"};
  return identity;
}

class CheckpointsTest : public ::testing::Test {
 protected:
  void SetUp() override { checkpoints_.files().prepare(); }

  void save(int64_t updates, double weight) {
    Learner learner = learner_of(weight);
    checkpoints_.save(state_at(updates), learner, {{7, "a.png", "truncated"}});
  }
  core::Error error_of_loading(Learner& learner) {
    try {
      std::vector<data::BadSample> bad;
      checkpoints_.load(checkpoints_.files().path_of(1), learner, bad);
    } catch (const core::Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error was thrown";
    return core::Error(core::ErrorKind::bug, "");
  }
  Checkpoints of(const RunIdentity& identity) { return Checkpoints({checkpoints_.files().directory()}, identity); }

  const TemporaryDirectory folder_;
  Checkpoints checkpoints_{{folder_ / "checkpoints"}, identity()};
};

TEST_F(CheckpointsTest, AnotherDeviceIsLoggedAndNotRefused) {
  std::vector<std::string> lines;
  core::set_console_writer([&](core::LogLevel, std::string_view line) { lines.emplace_back(line); });
  const auto on = [](const std::string& device) {
    RunIdentity of_device = identity();
    of_device.computed_by = device;
    return of_device;
  };
  Learner learner = learner_of(1);
  of(on("Card A (9.0)")).save(state_at(1), learner, {});
  const std::string path = checkpoints_.files().path_of(1);
  EXPECT_TRUE(of(on("Card A (9.0)")).differences(path).empty());
  EXPECT_TRUE(lines.empty());
  EXPECT_TRUE(of(on("Card B (8.0)")).differences(path).empty());
  core::set_console_writer(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("computed by Card A (9.0), this run is by Card B (8.0)"), std::string::npos) << lines[0];
}

TEST_F(CheckpointsTest, LoadsWhatWasSaved) {
  Learner saved = learner_of(1.5);
  saved.optimizer->set_steps_taken(12);
  const CheckpointEvent event = checkpoints_.save(state_at(12), saved, {{7, "a.png", "truncated"}});
  EXPECT_EQ(event.path, checkpoints_.files().path_of(12));
  EXPECT_EQ(event.updates, 12);
  EXPECT_GT(event.bytes, 0);

  Learner loaded = learner_of(0);
  std::vector<data::BadSample> bad;
  const RunProgress state = checkpoints_.load(event.path, loaded, bad);
  EXPECT_EQ(state.to_json(), state_at(12).to_json());
  EXPECT_EQ(weight_of(loaded), 1.5);
  EXPECT_EQ(loaded.optimizer->steps_taken(), 12);
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].sample, 7);
  EXPECT_EQ(bad[0].name, "a.png");
  EXPECT_EQ(bad[0].reason, "truncated");
}

TEST_F(CheckpointsTest, RandomNumbersGoOnWhereTheyWere) {
  Learner learner = learner_of(0);
  torch::manual_seed(5);
  torch::rand({3});
  checkpoints_.save(state_at(1), learner, {});
  const torch::Tensor expected = torch::rand({8});
  std::vector<data::BadSample> bad;
  checkpoints_.load(checkpoints_.files().path_of(1), learner, bad);
  EXPECT_TRUE(torch::equal(torch::rand({8}), expected));
}

TEST_F(CheckpointsTest, ANetworkOfAnotherShapeIsRefusedAndUnchanged) {
  save(1, 1.5);
  Learner other = learner_of(0, /*outputs=*/3);
  const core::Error error = error_of_loading(other);
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("fc.weight"), std::string::npos) << error.what();
  EXPECT_EQ(weight_of(other), 0);
}

TEST_F(CheckpointsTest, ADamagedFileIsRefusedBeforeAnythingIsChanged) {
  save(1, 1.5);
  const std::string path = checkpoints_.files().path_of(1) + "/optimizer.safetensors";
  fs::resize_file(path, fs::file_size(path) - 1);
  Learner learner = learner_of(0);
  EXPECT_EQ(error_of_loading(learner).kind(), core::ErrorKind::data);
  EXPECT_EQ(weight_of(learner), 0);
}

TEST_F(CheckpointsTest, WeightsThatAreNotFiniteAreNeverSaved) {
  save(1, 1.5);
  try {
    save(2, std::numeric_limits<double>::infinity());
    FAIL() << "no error was thrown";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::diverged);
    EXPECT_NE(error.hint().find(checkpoints_.files().path_of(1)), std::string::npos) << error.hint();
  }
  EXPECT_EQ(checkpoints_.files().list(), std::vector<int64_t>{1});
}

TEST_F(CheckpointsTest, SavingMovesLinksAndPrunesAllButTheNewestAndTheBest) {
  save(1, 1);
  for (int64_t updates = 2; updates <= 4; ++updates) save(updates, 1);
  EXPECT_EQ(checkpoints_.files().list(), (std::vector<int64_t>{4, 3, 1}));
  EXPECT_EQ(checkpoints_.files().pointed("last"), 4);
  EXPECT_EQ(checkpoints_.files().pointed("best"), 1);
}

TEST_F(CheckpointsTest, DifferencesNameTheOptionAndBothValues) {
  save(1, 1);
  const std::string path = checkpoints_.files().path_of(1);
  EXPECT_TRUE(of(identity()).differences(path).empty());
  EXPECT_EQ(of(identity("0.2")).differences(path),
            std::vector<std::string>{"--lr: the checkpoint has 0.1, this run 0.2"});
  EXPECT_EQ(of(identity("0.1", "other")).differences(path),
            std::vector<std::string>{"data: files, sizes or labels changed since the checkpoint was written"});
  RunIdentity newer = identity();
  newer.training_options.push_back({"mixup", "0.2", ""});
  EXPECT_EQ(of(newer).differences(path),
            std::vector<std::string>{"--mixup: the checkpoint has (not set), this run 0.2"});
}

TEST_F(CheckpointsTest, AnOptionThatTheCheckpointLacksHasTheValueFromBeforeItExisted) {
  save(1, 1);
  RunIdentity newer = identity();
  newer.training_options.push_back({"cycle", "false", "false"});
  EXPECT_TRUE(of(newer).differences(checkpoints_.files().path_of(1)).empty());
  newer.training_options.back().value = "true";
  EXPECT_EQ(of(newer).differences(checkpoints_.files().path_of(1)),
            std::vector<std::string>{"--cycle: the checkpoint has false, this run true"});
  newer.training_options.back() = {"csv-label", "", ""};
  EXPECT_TRUE(of(newer).differences(checkpoints_.files().path_of(1)).empty()) << "it had no value, and has none";
}

TEST_F(CheckpointsTest, AnOptionThatWasRemovedIsNoDifferenceAndLoggedWhereBitsDependedOnIt) {
  std::vector<std::string> lines;
  core::set_console_writer([&](core::LogLevel, std::string_view line) { lines.emplace_back(line); });
  for (const std::string value : {"false", "true"}) {
    core::Json manifest = manifest_of(identity());
    manifest["training_options"]["winograd"] = value;
    EXPECT_TRUE(differences(identity(), manifest, "run/checkpoints/step-00000001").empty()) << value;
    EXPECT_EQ(lines.size(), value == "true" ? 1u : 0u);
  }
  core::set_console_writer(nullptr);
  EXPECT_NE(lines.at(0).find("trained with --winograd, which was removed"), std::string::npos) << lines.at(0);
}

TEST_F(CheckpointsTest, WhatHasAnotherNameSinceIsComparedByWhatItMeans) {
  core::Json manifest = manifest_of(identity());
  manifest["training_options"].update(
      {{"scale-min", "0.3"}, {"scale-max", "1"}, {"amp", "true"}, {"amp-dtype", "float16"}});
  RunIdentity today = identity();
  today.training_options.push_back({"scale", "0.3,1", ""});
  today.training_options.push_back({"amp", "float16", ""});
  EXPECT_TRUE(differences(today, manifest, "run/checkpoints/step-00000001").empty());
  today.training_options.back().value = "off";
  EXPECT_EQ(differences(today, manifest, "run/checkpoints/step-00000001"),
            std::vector<std::string>{"--amp: the checkpoint has float16, this run off"});
}

TEST_F(CheckpointsTest, RepairedLinksAgreeWithTheState) {
  for (int64_t updates = 1; updates <= 2; ++updates) save(updates, 1);
  fs::remove(checkpoints_.files().directory() + "/best");
  checkpoints_.files().point("last", 1);
  checkpoints_.repair_links(state_at(2));
  EXPECT_EQ(checkpoints_.files().pointed("last"), 2);
  EXPECT_EQ(checkpoints_.files().pointed("best"), 1);

  RunProgress gone = state_at(2);
  gone.best.updates = 99;
  checkpoints_.repair_links(gone);
  EXPECT_EQ(checkpoints_.files().pointed("best"), -1) << "a link never names what is not there";
  gone.updates = 77;
  checkpoints_.repair_links(gone);
  EXPECT_EQ(checkpoints_.files().pointed("last"), 2);
}

TEST_F(CheckpointsTest, WhereTheBestOneIsGoneItIsTheBestOneThatIsLeft) {
  RunProgress state;
  const auto evaluated = [&](int64_t updates, double value) {
    state.updates = updates;
    state.epoch = updates;
    state.note_result(value, /*loss=*/1, /*lower_is_better=*/false, 0, /*is_due=*/true);
    Learner learner = learner_of(1);
    checkpoints_.save(state, learner, {});
  };
  const auto remove = [&](int64_t updates) { fs::remove_all(checkpoints_.files().path_of(updates)); };
  for (const auto& [updates, value] : {std::pair(1, 0.9), {2, 0.5}, {3, 0.7}}) evaluated(updates, value);
  remove(1);
  checkpoints_.continue_from(state);
  checkpoints_.repair_links(state);
  EXPECT_EQ(state.best.updates, 3);
  EXPECT_EQ(state.best.value, 0.7);
  EXPECT_EQ(checkpoints_.files().pointed("best"), 3);
  evaluated(4, 0.8);  // less than what is gone
  EXPECT_EQ(checkpoints_.files().pointed("best"), 4);
  for (const int64_t updates : {2, 3, 4}) remove(updates);
  checkpoints_.continue_from(state);
  checkpoints_.repair_links(state);
  EXPECT_FALSE(state.best.exists());
  EXPECT_EQ(checkpoints_.files().pointed("best"), -1);
}

TEST_F(CheckpointsTest, WhereTheBestOneWasRemovedByHandEvaluationTakesTheBestOneThatIsLeft) {
  RunIdentity of_mae = identity();
  of_mae.training_options.back().value = "mae";
  const std::string run = folder_ / "of-mae";
  Checkpoints::Settings settings;
  settings.directory = run + "/checkpoints";
  Checkpoints checkpoints(settings, of_mae);
  checkpoints.files().prepare();
  RunProgress state;
  for (const auto& [updates, value] : {std::pair(1, 0.5), {2, 0.3}, {3, 0.9}, {4, 0.7}}) {
    state.updates = state.epoch = updates;
    state.note_result(value, /*loss=*/1, /*lower_is_better=*/true, 0, /*is_due=*/true);
    Learner learner = learner_of(1);
    checkpoints.save(state, learner, {});
  }
  EXPECT_EQ(find_checkpoint(run, "best"), checkpoints.files().path_of(2));
  fs::remove_all(checkpoints.files().path_of(2));
  EXPECT_EQ(find_checkpoint(run, "best"), checkpoints.files().path_of(4)) << "0.7 is less than 0.9; 1 was pruned";
  EXPECT_EQ(find_checkpoint(run, "last"), checkpoints.files().path_of(4));
  fs::remove_all(checkpoints.files().path_of(4));
  EXPECT_EQ(find_checkpoint(run, "best"), checkpoints.files().path_of(3));
}

TEST_F(CheckpointsTest, OfEqualResultsThatAreLeftTheLowestLossIsTheBestOneAndThenTheEarliest) {
  RunProgress state;
  for (const auto& [updates, value, loss] : {std::tuple(1, 0.9, 1.0), {2, 0.7, 3.0}, {3, 0.7, 2.0}, {4, 0.7, 2.0}}) {
    state.updates = state.epoch = updates;
    state.note_result(value, loss, /*lower_is_better=*/false, 0, /*is_due=*/true);
    checkpoints_.keep({/*every=*/1});
    Learner learner = learner_of(1);
    checkpoints_.save(state, learner, {});
  }
  fs::remove_all(checkpoints_.files().path_of(1));
  checkpoints_.continue_from(state);
  EXPECT_EQ(state.best.updates, 3);
  fs::remove_all(checkpoints_.files().path_of(3));
  checkpoints_.continue_from(state);
  EXPECT_EQ(state.best.updates, 4);
}

TEST_F(CheckpointsTest, ADamagedBestOneIsAsOneThatIsGone) {
  RunProgress state;
  for (const auto& [updates, value] : {std::pair(1, 0.9), {2, 0.7}, {3, 0.5}}) {
    state.updates = state.epoch = updates;
    state.note_result(value, /*loss=*/1, /*lower_is_better=*/false, 0, /*is_due=*/true);
    Learner learner = learner_of(1);
    checkpoints_.save(state, learner, {});
  }
  const std::string weights = checkpoints_.files().path_of(1) + "/model.safetensors";
  fs::resize_file(weights, fs::file_size(weights) - 1);
  checkpoints_.continue_from(state);
  checkpoints_.repair_links(state);
  EXPECT_EQ(state.best.updates, 2);
  EXPECT_EQ(checkpoints_.files().pointed("best"), 2);
}

TEST_F(CheckpointsTest, InSpiteOfDifferencesWhatFitsIsTakenAndTheRestBeginsFresh) {
  std::vector<std::string> logged;
  core::set_console_writer([&](core::LogLevel, std::string_view line) { logged.emplace_back(line); });
  const auto learner_with = [](config::OptimizerKind kind, double momentum, bool averages, bool thawed) {
    Learner learner = learner_of(0);
    config::ResolvedOptimOptions options;
    options.opt = kind;
    options.momentum = momentum;
    std::vector<optim::NamedParameter> parameters;
    for (const auto& item : learner.model->named_parameters()) {
      if (thawed || item.key() == "fc.weight") parameters.push_back({item.key(), item.value()});
    }
    learner.optimizer = std::make_unique<optim::Optimizer>(parameters, options);
    if (averages) learner.ema = std::make_unique<optim::Ema>(*learner.model, 0.9, /*warmup=*/false);
    return learner;
  };
  using Kind = config::OptimizerKind;
  Learner saved = learner_with(Kind::adam, 0, /*averages=*/false, /*thawed=*/false);
  for (const auto& item : saved.model->named_parameters()) item.value().data().fill_(1.5);
  for (const auto& entry : saved.optimizer->state()) torch::Tensor(entry.tensor).fill_(0.5);
  saved.optimizer->set_steps_taken(12);
  checkpoints_.save(state_at(1), saved, {});
  const struct {
    Kind kind;
    double momentum;
    bool averages, thawed;
    std::map<std::string, int64_t> begun_at;
    std::vector<std::string> lines;
  } cases[] = {
      {Kind::adamw, 0, false, false, {}, {}},
      {Kind::adam, 0, true, false, {}, {"the average of weights starts again at the weights of the checkpoint"}},
      {Kind::adam, 0, false, true, {{"fc.bias", 12}}, {"exp_avg is reset: fc.bias", "exp_avg_sq is reset: fc.bias"}},
      {Kind::sgd,
       0.9,
       false,
       false,
       {},
       {"momentum is reset: fc.weight", "exp_avg of the checkpoint is left out: fc.weight",
        "exp_avg_sq of the checkpoint is left out: fc.weight"}},
  };
  for (const auto& one : cases) {
    logged.clear();
    Learner learner = learner_with(one.kind, one.momentum, one.averages, one.thawed);
    std::vector<data::BadSample> bad;
    checkpoints_.load(checkpoints_.files().path_of(1), learner, bad, /*in_spite_of_differences=*/true);
    EXPECT_EQ(weight_of(learner), 1.5);
    EXPECT_EQ(learner.optimizer->steps_taken(), 12);
    EXPECT_EQ(learner.optimizer->begun_at(), one.begun_at);
    const auto state = learner.optimizer->state();
    EXPECT_EQ(state.at(0).tensor[0][0].item<double>(), one.kind == Kind::sgd ? 0 : 0.5);
    EXPECT_TRUE(!learner.ema || learner.ema->averages().at(0).tensor[0][0].item<double>() == 1.5);
    ASSERT_EQ(logged.size(), one.lines.size());
    for (size_t i = 0; i < logged.size(); ++i) {
      EXPECT_NE(logged[i].find("--override-resume: " + one.lines[i]), std::string::npos) << logged[i];
    }
    checkpoints_.save(state_at(2), learner, {});
    Learner later = learner_with(one.kind, one.momentum, one.averages, one.thawed);
    checkpoints_.load(checkpoints_.files().path_of(2), later, bad);
    EXPECT_EQ(later.optimizer->begun_at(), one.begun_at) << "the run continues a second time";
  }
  core::set_console_writer(nullptr);
}

TEST_F(CheckpointsTest, AnEpochOfOtherBatchesIsGoneThroughAgainAndTheScheduleStaysInPlace) {
  RunIdentity of_16 = identity(), of_48 = identity("0.2"), of_other_data = identity("0.1", "other");
  of_16.training_options.push_back({"batch-size", "16", ""});
  of_48.training_options.push_back({"batch-size", "48", ""});
  of_other_data.training_options.push_back({"batch-size", "16", ""});
  Learner learner = learner_of(1);
  of(of_16).save(state_at(20), learner, {});
  const std::string path = checkpoints_.files().path_of(20);
  std::vector<data::BadSample> bad;
  EXPECT_EQ(of(of_16).load(path, learner, bad, /*in_spite_of_differences=*/true).update_in_epoch, 2);
  for (const RunIdentity& other : {of_48, of_other_data}) {
    const RunProgress at = of(other).load(path, learner, bad, /*in_spite_of_differences=*/true);
    EXPECT_EQ(at.update_in_epoch, 0);
    EXPECT_EQ(at.updates, 20) << "names continue";
    EXPECT_EQ(at.schedule_update(/*updates_per_epoch=*/2), 6) << "3 epochs of 2 updates";
  }
}

TEST_F(CheckpointsTest, EvaluationReadsWeightsNamesAndOptions) {
  save(1, 1.5);
  const SavedModel saved = load_saved_model(checkpoints_.files().path_of(1));
  EXPECT_EQ(saved.config_yaml, "lr: 0.1\n");
  EXPECT_EQ(saved.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(saved.state.updates, 1);
  EXPECT_EQ(saved.weights.size(), 2u);
}

}  // namespace
}  // namespace stoker::engine
