// SPDX-License-Identifier: Apache-2.0
// `train inspect replay`, `verify` and `diff`: past updates of a run that was stopped and resumed, computed again.
#include <gtest/gtest.h>

#include <filesystem>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

Words words_of(const std::string& run_dir, const Words& more = {}) {
  Words words = train_words({"--epochs", "2", "--run-dir", run_dir, "--width", "4", "--mixup", "0.4", "--digest-every",
                             "1", "--save-every", "3u", "--keep-last", "99", "--class-balanced"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Stopped after 5 of 8 updates, and resumed.
void train_run(const Workplace& work, const std::string& run_dir, const Words& more = {}) {
  for (const char* const updates : {"5", "0"}) {
    Words words = words_of(run_dir, more);
    words.insert(words.end(), {"--max-updates", updates});
    const Ended ended = run(words, work.path());
    ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  }
}

class ReplayCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_idx(work_);
    train_run(work_, "run");
  }
  Ended ask(const Words& words) const { return run(words, work_.path()); }
  const Workplace work_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(ReplayCommandTest, APastUpdateComesOutAsItWasRecordedWithPicturesAndFigures) {
  for (const char* const update : {"1", "5", "8"}) {
    const Ended ended = ask({"inspect", "replay", "run", "--update", update, "--json"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(has(ended.out, "\"images_equal\": true")) << ended.out;
    EXPECT_TRUE(has(ended.out, "\"weights_equal\": true")) << ended.out;
  }
  const std::string folder = work_ / "run/replay/update-00000008";
  EXPECT_TRUE(has(content_of_file(folder + "/sheet.png"), "PNG"));
  EXPECT_TRUE(has(content_of_file(folder + "/images/0015.png"), "PNG"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/images/0016.png"));
  const std::string json = content_of_file(folder + "/replay.json");
  for (const char* const part :
       {"\"loss\"", "\"mixed_with\"", "\"learning_rate\"", "\"fc.weight\"", "\"gradient_norm\""}) {
    EXPECT_TRUE(has(json, part)) << part;
  }
}

TEST_F(ReplayCommandTest, OtherDataIsRefusedAndAnUpdateThatIsToComeIsAnError) {
  EXPECT_EQ(ask({"inspect", "replay", "run", "--update", "9"}).exit_code, 64);
  EXPECT_EQ(ask({"inspect", "replay", "run"}).exit_code, 64);
  EXPECT_EQ(ask({"inspect", "replay", "data", "--update", "1"}).exit_code, 66);
  std::string labels = content_of_file(work_ / "data/train-labels-idx1-ubyte");
  labels.back() = static_cast<char>(labels.back() == 0 ? 1 : 0);
  work_.write("data/train-labels-idx1-ubyte", labels);
  const Ended ended = ask({"inspect", "replay", "run", "--update", "3"});
  EXPECT_EQ(ended.exit_code, 78) << ended.err;
}

TEST_F(ReplayCommandTest, WithoutAnEarlierCheckpointTheRunIsComputedFromItsBeginning) {
  for (const char* const gone : {"3", "4"}) {
    std::filesystem::remove_all(work_ / ("run/checkpoints/step-0000000" + std::string(gone)));
  }
  const Ended ended = ask({"inspect", "replay", "run", "--update", "4"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "4 updates are recomputed from the beginning")) << ended.err;
  EXPECT_TRUE(has(ended.out, "as recorded")) << ended.out;
  EXPECT_FALSE(has(ended.out, "differs from the recording")) << ended.out;
}

TEST_F(ReplayCommandTest, AnHonestRunVerifiesAndOneWhoseWeightsComeFromElsewhereDoesNot) {
  const Ended honest = ask({"inspect", "verify", "run", "--segments", "all"});
  EXPECT_EQ(honest.exit_code, 0) << honest.out << honest.err;
  EXPECT_TRUE(has(honest.out, "8 of 8 updates (100%)")) << honest.out;
  train_run(work_, "other", {"--seed", "9"});
  const std::string last = "checkpoints/step-00000008";
  std::filesystem::remove_all(work_ / ("run/" + last));
  copy_folder(work_ / ("other/" + last), work_ / ("run/" + last));
  const Ended forged = ask({"inspect", "verify", "run", "--segments", "all"});
  EXPECT_EQ(forged.exit_code, 65) << forged.out;
  EXPECT_TRUE(has(forged.err, last)) << forged.err;
}

TEST_F(ReplayCommandTest, AReceiptIsProvenAgainAndOneThatWasFalsifiedIsNot) {
  const auto verified = [&](const std::string& what) { return ask({"inspect", "verify", what, "--segments", "1"}); };
  std::filesystem::rename(work_ / "run", work_ / "50% run #1");
  ASSERT_EQ(ask({"inspect", "verify", "50% run #1", "--segments", "1", "--receipt", "r.json"}).exit_code, 0);
  const std::string spdx = content_of_file(work_ / "r.json.spdx.json");
  EXPECT_TRUE(has(spdx, "\"ai_AIPackage\""));
  EXPECT_TRUE(has(spdx, "/50%25%20run%20%231\"")) << "a URI";
  const std::string honest = content_of_file(work_ / "r.json");
  const Ended again = verified("r.json");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(has(again.out, "of this run")) << again.out;
  // Weights, an option, data, the program, the machine, a checkpoint.
  for (const char* const field : {"\"sha256\": \"", "\"lr\": \"", "\"xxh3_128\": \"", "\"executable\": \"",
                                  "\"processor\": \"", "\"name\": \"checkpoints/step-0000000"}) {
    std::string forged = honest;
    const size_t at = forged.find(field);
    ASSERT_NE(at, std::string::npos) << field;
    char& first = forged[at + std::string(field).size()];
    first = first == '1' ? '2' : '1';
    work_.write("forged.json", forged);
    const Ended ended = verified("forged.json");
    EXPECT_EQ(ended.exit_code, 65) << field << ended.out;
    EXPECT_TRUE(has(ended.err, "the receipt's /")) << ended.err;
  }
  for (const char* const text : {"{}", "[1]", "no JSON"}) {
    work_.write("none.json", text);
    EXPECT_EQ(verified("none.json").exit_code, 65) << text;
  }
}

TEST_F(ReplayCommandTest, ARecordIsReadHoweverItIsWritten) {
  const std::string path = work_ / "run/metrics.jsonl", honest = content_of_file(path);
  const size_t digest = honest.find("\"event\":\"digest\""), begin = honest.rfind('\n', digest) + 1;
  const size_t weights = honest.find("\"weights\":\"", digest) + 11;
  std::string forged = honest;
  forged[weights] = forged[weights] == '0' ? '1' : '0';
  forged.replace(digest, 8, "\"event\": ");  // a space, by which it was passed over
  const std::string torn = honest.substr(0, begin) + honest.substr(begin + 1);
  for (const std::string& records : {forged, torn}) {
    work_.write("run/metrics.jsonl", records);
    const Ended ended = ask({"inspect", "verify", "run", "--segments", "all"});
    EXPECT_EQ(ended.exit_code, 65) << ended.out << ended.err;
  }
}

TEST_F(ReplayCommandTest, NumbersInARecordMakeNothingComputeForEver) {
  for (const char* const updates : {"9000000000000000000", "1000000000", "-5"}) {
    append(work_ / "run/metrics.jsonl",
           "{\"event\":\"report\",\"updates\":" + std::string(updates) + ",\"train_loss\":1}\n");
    const Ended ended = ask({"inspect", "blame", "run"});
    EXPECT_EQ(ended.exit_code, 0) << updates << ended.err;
  }
  std::filesystem::rename(work_ / "run/checkpoints/step-00000005", work_ / "run/checkpoints/step-999999999999999999");
  EXPECT_EQ(ask({"inspect", "blame", "run"}).exit_code, 0);
}

TEST_F(ReplayCommandTest, WhereOtherLibrariesReadTheDataThatIsTheCause) {
  const std::string metrics = work_ / "run/metrics.jsonl", step = "run/checkpoints/step-00000008/";
  std::string text = content_of_file(metrics);
  const size_t images = text.find("\"images\":\"", text.rfind("\"event\":\"digest\"")) + 10;
  text[images] = text[images] == '0' ? '1' : '0';
  work_.write("run/metrics.jsonl", text);
  const Words replay = {"inspect", "replay", "run", "--update", "8"},
              verify = {"inspect", "verify", "run", "--segments", "all"};
  for (const Words& words : {replay, verify}) {
    const Ended ended = ask(words);
    EXPECT_EQ(ended.exit_code, 65) << ended.err;
    EXPECT_FALSE(has(ended.err, "other libraries")) << ended.err;
    EXPECT_TRUE(has(ended.err, "data changed") || has(ended.err, "data that changed")) << ended.err;
  }
  // As a run of another OpenCV would have it; the manifest vouches for what was there before.
  std::string state = content_of_file(work_ / (step + "state.json")),
              manifest = content_of_file(work_ / (step + "manifest.json"));
  work_.write(step + "state.copy", state);
  work_.write(step + "manifest.json", manifest.replace(manifest.find("state.json"), 10, "state.copy"));
  const size_t begin = state.find("OpenCV "), end = state.find('"', begin);
  ASSERT_NE(begin, std::string::npos) << state;
  work_.write(step + "state.json", state.replace(begin, end - begin, "OpenCV 1.2.3"));
  for (const Words& words : {replay, verify}) {
    const Ended ended = ask(words);
    EXPECT_EQ(ended.exit_code, 65) << ended.err;
    EXPECT_TRUE(has(ended.err, ": OpenCV 1.2.3 then, OpenCV ")) << ended.err;
  }
}

TEST_F(ReplayCommandTest, BlameNamesTheUpdateInWhichADivergenceBegan) {
  const Ended quiet = ask({"inspect", "blame", "run"});
  EXPECT_EQ(quiet.exit_code, 0) << quiet.err;
  EXPECT_TRUE(has(last_line(quiet.err), "reason=nothing-found")) << quiet.out;
  const Ended diverged = ask(words_of("far", {"--lr", "1e30", "--sched", "constant"}));
  ASSERT_EQ(diverged.exit_code, 80) << diverged.err;
  EXPECT_TRUE(has(diverged.err, "train inspect blame far shows in which update")) << diverged.err;
  const Ended ended = ask({"inspect", "blame", "far"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "began     epoch 1, update 2: ")) << ended.out;
  EXPECT_TRUE(has(last_line(ended.err), "reason=found update=2")) << ended.err;
}

TEST_F(ReplayCommandTest, DiffNamesTheFirstUpdateAtWhichRunsPart) {
  train_run(work_, "same");
  EXPECT_TRUE(has(last_line(ask({"inspect", "diff", "run", "same"}).err), "reason=same"));
  train_run(work_, "later", {"--sched", "multistep", "--decay-milestones", "1", "--decay-rate", "0.5"});
  train_run(work_, "constant", {"--sched", "constant"});
  const Ended ended = ask({"inspect", "diff", "constant", "later"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "diverged  epoch 2, update 5")) << ended.out;
  EXPECT_TRUE(has(ended.out, "learning rate")) << ended.out;
  EXPECT_TRUE(has(ended.out, "--sched: constant / multistep")) << ended.out;
  train_run(work_, "averaged", {"--sched", "constant", "--model-ema", "--label-smoothing", "0.1"});
  const Ended averaged = ask({"inspect", "diff", "constant", "averaged"});
  EXPECT_TRUE(has(averaged.out, "diverged  epoch 1, update 1")) << "an average more is no difference\n" << averaged.out;
  const std::string step = "/checkpoints/step-0000000";
  const Ended checkpoints = ask({"inspect", "diff", "constant" + step + "4", "later" + step + "4"});
  EXPECT_TRUE(has(checkpoints.out, "are the same, to the bit")) << checkpoints.out << checkpoints.err;
  EXPECT_TRUE(has(ask({"inspect", "diff", "constant" + step + "8", "later" + step + "8"}).out,
                  "the first is stem.conv.weight"));
}

}  // namespace
}  // namespace stoker::cli
