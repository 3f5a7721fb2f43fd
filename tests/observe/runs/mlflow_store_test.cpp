// SPDX-License-Identifier: Apache-2.0
#include "observe/runs/mlflow_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/format.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "tests/temporary_directory.h"

namespace stoker::observe {
namespace {

namespace fs = std::filesystem;

/// A run that was stopped after update 20 and resumed at 10.
void write_run(const fixtures::TemporaryDirectory& folder, const std::string& state) {
  folder.write("lab/a/status.json", R"({"state": ")" + state + R"(", "time": "2026-01-02T00:01:00Z", "updates": 30})");
  folder.write("lab/a/config.yaml", "train:\n  epochs: 7\nschedule:\n  lr: 0.1\n");
  folder.write("lab/a/summary.csv", "epoch,train_loss,eval_loss,eval_top1,updates,best\n1,1.5,1.2,60.5,30,1\n");
  folder.write("lab/a/metrics.jsonl",
               R"({"event":"start","updates":0,"time":"2026-01-02T00:00:00Z"}
{"event":"report","updates":10,"loss":2.5,"resources":{"cpu_percent":50},"note":"no number","time":"2026-01-02T00:00:10Z"}
{"event":"report","updates":20,"loss":9,"time":"2026-01-02T00:00:20Z"}
torn {"event":"rep
{"event":"resume","updates":10,"time":"2026-01-02T00:00:30Z"}
{"event":"report","updates":20,"loss":1.25,"time":"2026-01-02T00:00:40Z"}
{"event":"epoch","epoch":1,"updates":30,"eval_top1":60.5,"eval_loss":null,"time":"2026-01-02T00:00:50Z"}
{"event":"finish","updates":30,"time":"2026-01-02T00:01:00Z"}
)");
}

/// The folder of the only run in a store.
fs::path only_run(const std::string& store) {
  fs::path found;
  for (const auto& entry : fs::recursive_directory_iterator(store)) {
    if (entry.path().filename() == "params") found = entry.path().parent_path();
  }
  return found;
}

core::Json meta_of(const fs::path& folder) {
  core::Json fields;
  for (const std::string& line : core::lines_of(core::read_file((folder / "meta.yaml").string(), 1 << 20))) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) fields[line.substr(0, colon)] = core::Json::parse(line.substr(colon + 2));
  }
  return fields;
}

std::string file(const fs::path& path) { return core::read_file(path.string(), 1 << 20); }

TEST(MlflowStoreTest, HasMetricsOverUpdatesParametersAndTheStateOfTheRun) {
  const fixtures::TemporaryDirectory folder;
  write_run(folder, "finished");
  EXPECT_TRUE(write_mlflow_run(folder / "lab/a/", folder / "store"));
  const fs::path run = only_run(folder / "store");
  EXPECT_EQ(file(run / "metrics/report/loss"), "1767312010000 2.5 10\n1767312040000 1.25 20\n");
  EXPECT_EQ(file(run / "metrics/report/resources/cpu_percent"), "1767312010000 50 10\n");
  EXPECT_EQ(file(run / "metrics/eval_top1"), "1767312050000 60.5 30\n");
  EXPECT_FALSE(fs::exists(run / "metrics/eval_loss"));
  EXPECT_EQ(file(run / "params/epochs"), "7");
  EXPECT_EQ(file(run / "tags/mlflow.runName"), "a");
  const core::Json meta = meta_of(run), experiment = meta_of(run.parent_path());
  EXPECT_EQ(meta["status"], 3);
  EXPECT_EQ(meta["start_time"], 1767312000000);
  EXPECT_EQ(meta["end_time"], 1767312060000);
  EXPECT_EQ(meta["run_id"], run.filename().string());
  EXPECT_EQ(meta["run_id"].get<std::string>().size(), 32);
  EXPECT_EQ(meta["artifact_uri"], "file://" + (folder / "lab/a"));
  EXPECT_EQ(meta["experiment_id"], run.parent_path().filename().string());
  EXPECT_EQ(experiment["experiment_id"], meta["experiment_id"]);
  EXPECT_EQ(experiment["name"], "lab");
}

TEST(MlflowStoreTest, HasTheFoldersWithoutWhichMlflowOpensNoRun) {
  const fixtures::TemporaryDirectory folder;
  write_run(folder, "finished");
  folder.write("lab/a/metrics.jsonl", "");
  write_mlflow_run(folder / "lab/a", folder / "store/");
  const fs::path run = only_run(folder / "store");
  for (const char* const part : {"metrics", "params", "tags", "artifacts"})
    EXPECT_TRUE(fs::is_directory(run / part)) << part;
  EXPECT_EQ(meta_of(run.parent_path())["artifact_location"], "file://" + run.parent_path().string());
}

TEST(MlflowStoreTest, NamesAndOptionsOfAnyBytesAreTextAndTheArtifactsAUri) {
  const fixtures::TemporaryDirectory folder;
  write_run(folder, "finished");
  std::string letters;  // two bytes each: the 6,000th is half of one
  for (int i = 0; i < 4000; ++i) letters += "\xc3\xbc";
  folder.write("lab/a/config.yaml", "train:\n  data-dir: \"x" + letters + "\"\n");
  fs::rename(folder / "lab/a", folder / "lab/50% #1 \xff");
  write_mlflow_run(folder / "lab/50% #1 \xff", folder / "store");
  const fs::path run = only_run(folder / "store");
  EXPECT_EQ(meta_of(run)["artifact_uri"], "file://" + (folder / "lab/50%25%20%231%20%FF"));
  EXPECT_EQ(meta_of(run)["run_name"], "50% #1 \\xff");
  EXPECT_EQ(file(run / "tags/mlflow.runName"), "50% #1 \\xff");
  EXPECT_EQ(file(run / "tags/run-dir"), folder / "lab/50% #1 \\xff");
  EXPECT_EQ(file(run / "params/data-dir"), "x" + letters.substr(0, 5998));
}

TEST(MlflowStoreTest, NoFigureOfAForeignFileIsWrittenOutsideTheStore) {
  const fixtures::TemporaryDirectory folder;
  write_run(folder, "finished");
  folder.write("lab/a/metrics.jsonl",
               R"({"event":"epoch","epoch":1,"updates":30,"../../../../out":1,"a":{"/":{"./b":2}},"c..d":3,"":4})"
               "\n");
  write_mlflow_run(folder / "lab/a", folder / "store");
  const fs::path run = only_run(folder / "store");
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_EQ(file(run / "metrics/_./_./_./_./out"), "0 1 30\n");
  EXPECT_EQ(file(run / "metrics/a/_/_/_/b"), "0 2 30\n");
  EXPECT_EQ(file(run / "metrics/c..d"), "0 3 30\n");
  EXPECT_EQ(file(run / "metrics/_"), "0 4 30\n");
}

TEST(MlflowStoreTest, ARunThatIsWrittenAgainReplacesItself) {
  const fixtures::TemporaryDirectory folder;
  write_run(folder, "training");
  const core::LockFile lock(folder / "lab/a/.lock");
  EXPECT_FALSE(write_mlflow_run(folder / "lab/a", folder / "store"));
  const fs::path run = only_run(folder / "store");
  EXPECT_EQ(meta_of(run)["status"], 1);
  EXPECT_TRUE(meta_of(run)["end_time"].is_null());
  write_run(folder, "finished");
  EXPECT_TRUE(write_mlflow_run(folder / "lab/a", folder / "store"));
  EXPECT_EQ(only_run(folder / "store"), run);
  EXPECT_EQ(meta_of(run)["status"], 3);
}

}  // namespace
}  // namespace stoker::observe
