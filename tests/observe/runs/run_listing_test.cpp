// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/run_listing.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/system/file.h"
#include "tests/temporary_directory.h"

namespace stoker::observe {
namespace {

constexpr int64_t kNow = 1'790'000'000;

class RunListingTest : public ::testing::Test {
 protected:
  void add_run(const std::string& name, const std::string& state, int64_t age, const std::string& rows = "") {
    folder_.write(name + "/status.json", "{\"state\": \"" + state + "\", \"pid\": 1, \"time\": \"" + utc(kNow - age) +
                                             "\", \"updates\": 40, \"images_per_second\": 1234.5}");
    folder_.write(name + "/config.yaml", "train:\n  epochs: 7\n");
    folder_.write(name + "/summary.csv", "epoch,train_loss,eval_loss,eval_top1,updates,best\n" + rows);
  }
  static std::string utc(int64_t seconds) {
    const std::time_t time = seconds;
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.123Z", std::gmtime(&time));
    return text;
  }
  const fixtures::TemporaryDirectory folder_;
};

TEST_F(RunListingTest, ShowsWhereARunStandsFromItsFilesAlone) {
  add_run("a", "finished", 90, "1,1.5,1.2,60.5,20,1\n2,1.1,1.0,71.25,40,1\n3,1.0,1.1,70.0,60,0\n");
  const ListedRun run = list_run(folder_ / "a", kNow);
  EXPECT_EQ(run.state, "finished");
  EXPECT_EQ(run.epochs_done, 3);
  EXPECT_EQ(run.epochs, 7);
  EXPECT_EQ(run.updates, 40);
  EXPECT_EQ(run.best_metric, "top1");
  EXPECT_EQ(run.best_value, 71.25);
  EXPECT_EQ(run.best_epoch, 2);
  EXPECT_EQ(run.images_per_second, 1234.5);
  EXPECT_EQ(run.age_seconds, 90);
}

TEST_F(RunListingTest, ARunThatIsTrainingAndHoldsNoLockIsLost) {
  add_run("a", "training", 5);
  EXPECT_EQ(list_run(folder_ / "a", kNow).state, "lost");
  const core::LockFile lock(folder_ / "a/.lock");
  EXPECT_EQ(list_run(folder_ / "a", kNow).state, "training");
}

TEST_F(RunListingTest, FindsRunsBelowAFolderThoseThatTrainFirstThenByAge) {
  add_run("old", "finished", 5000);
  add_run("deep/er/new", "stopped", 50);
  add_run("now", "training", 4000);
  add_run("now/checkpoints/inner", "finished", 1);
  folder_.write("none/notes.txt", "no run");
  const core::LockFile lock(folder_ / "now/.lock");
  const std::vector<ListedRun> runs = list_runs(folder_.path(), kNow);
  ASSERT_EQ(runs.size(), 3u) << "a run lies not inside of a run";
  EXPECT_EQ(runs[0].path, folder_ / "now");
  EXPECT_EQ(runs[1].path, folder_ / "deep/er/new");
  EXPECT_EQ(runs[2].path, folder_ / "old");
  const std::string table = runs_table(runs);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_EQ(runs_json(runs).size(), 3u);
}

TEST_F(RunListingTest, TheBestComesFirstWithTheOptionsThatDiffer) {
  for (const auto& [name, lr, top1] :
       {std::tuple("a", "0.1", "60"), std::tuple("b", "0.2", "80"), std::tuple("c", "0.3", "70")}) {
    add_run(name, "finished", 10, std::string("1,1.5,1.2,") + top1 + ",20,1\n");
    folder_.write(std::string(name) + "/config.yaml", std::string("train:\n  epochs: 7   # default\n  lr: ") + lr +
                                                          "   # --lr\n  run-dir: " + name + "   # --run-dir\n");
  }
  add_run("none", "finished", 5);
  const std::vector<ListedRun> runs = list_runs(folder_.path(), kNow);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].path, folder_ / "b");
  EXPECT_EQ(runs[1].path, folder_ / "c");
  EXPECT_EQ(runs[3].path, folder_ / "none") << "without a result last";
  const std::string table = runs_table(runs);
  EXPECT_NE(table.find("best (epoch)  lr   images/s"), std::string::npos) << table;
  EXPECT_NE(table.find("top1 80 (1)   0.2     1,235"), std::string::npos) << table;
  EXPECT_EQ(table.find("run-dir"), std::string::npos);
  EXPECT_EQ(runs_json(runs)[0]["differing_options"]["lr"], "0.2");
}

TEST_F(RunListingTest, RunsOfDifferentMetricsAreGroupsEachWithTheBestFirst) {
  for (const auto& [name, metric, value] :
       {std::tuple("a", "top1", "60"), std::tuple("b", "mae", "7"), std::tuple("c", "top1", "70"),
        std::tuple("d", "mae", "90"), std::tuple("e", "mae", "3")}) {
    add_run(name, "finished", 10);
    folder_.write(std::string(name) + "/config.yaml", std::string("train:\n  eval-metric: ") + metric + "\n");
    folder_.write(std::string(name) + "/summary.csv",
                  std::string("epoch,eval_loss,eval_") + metric + ",best\n1,1.0," + value + ",1\n");
  }
  const std::vector<ListedRun> runs = list_runs(folder_.path(), kNow);
  const std::string table = runs_table(runs);
  size_t at = 0;
  for (const char* const part : {"mae 3 (1)", "mae 7 (1)", "mae 90 (1)", "\n\n", "top1 70 (1)", "top1 60 (1)"}) {
    at = table.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << table;
  }
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 5 + 1);
}

TEST_F(RunListingTest, DamagedFilesCostOnlyWhatStandsInThem) {
  add_run("a", "finished", 10, "1,1.5,1.2,60.5,20,1\n2,1.1,1.");
  folder_.write("a/status.json", "{\"state\": ");
  const ListedRun run = list_run(folder_ / "a", kNow);
  EXPECT_EQ(run.state, "unknown");
  EXPECT_EQ(run.epochs_done, 1);
  EXPECT_EQ(run.best_value, 60.5);
  EXPECT_LT(run.age_seconds, 0);
}

TEST_F(RunListingTest, ARowThatCannotBeReadIsNamed) {
  add_run("a", "finished", 10, "1,1.5,1.2,60.5,20,1\n2,1.1\n");
  const std::vector<ListedRun> runs = list_runs(folder_.path(), kNow);
  EXPECT_NE(runs_table(runs).find("a/summary.csv:3: 2 fields instead of 6"), std::string::npos) << runs_table(runs);
  EXPECT_EQ(runs_json(runs)[0]["left_out"].size(), 1u);
}

TEST_F(RunListingTest, AFolderThatIsNotThereOrNoRunIsAnError) {
  EXPECT_THROW(list_runs(folder_ / "absent", kNow), core::Error);
  EXPECT_THROW(list_run(folder_.path(), kNow), core::Error);
  EXPECT_TRUE(list_runs(folder_.path(), kNow).empty());
}

TEST(SecondsOfUtcTest, ReadsWhatTheFilesHold) {
  EXPECT_EQ(seconds_of_utc("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(seconds_of_utc("2026-11-21T05:41:36.049Z"), 1795239696);
  EXPECT_EQ(seconds_of_utc("yesterday"), -1);
}

}  // namespace
}  // namespace stoker::observe
