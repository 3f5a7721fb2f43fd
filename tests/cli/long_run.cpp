// SPDX-License-Identifier: Apache-2.0
#include "long_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "bad_input.h"

namespace stoker::cli {
namespace {

const std::string kDone = "train: exit=0 reason=epochs-done update=" + std::to_string(kLongRunUpdates) +
                          " checkpoint=run/checkpoints/step-0000" + std::to_string(kLongRunUpdates);

void expect_a_row_per_epoch(const std::string& summary) {
  const std::vector<std::string> lines = lines_of(summary);
  ASSERT_EQ(lines.size(), kLongRunEpochs + 1u) << summary;
  EXPECT_EQ(lines[0].rfind("epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,", 0), 0u) << lines[0];
  for (int epoch = 0; epoch < kLongRunEpochs; ++epoch) {
    EXPECT_EQ(lines[static_cast<size_t>(epoch) + 1].rfind(std::to_string(epoch + 1) + ",", 0), 0u) << summary;
  }
}

}  // namespace

Words long_run_words(const Words& more) {
  Words words = train_words({"--epochs", std::to_string(kLongRunEpochs), "--batch-size", "2", "--save-every", "never",
                             "--val-every", "never"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Launch long_run(const Workplace& work, const Words& more) {
  write_idx(work);
  Launch launch;
  launch.words = long_run_words(more);
  launch.directory = work.path();
  return launch;
}

bool has_epochs(const Workplace& work, size_t epochs, const std::string& run_dir) {
  return lines_of(content_of_file(work / (run_dir + "/summary.csv"))).size() > epochs;
}

void wait_for_two_epochs(Program& program, const Workplace& work) {
  ASSERT_TRUE(program.wait_until([&] { return has_epochs(work, 2); })) << program.err();
}

void expect_stopped(const Ended& ended, const Workplace& work, int exit_code, const std::string& reason) {
  SCOPED_TRACE(ended.out + ended.err);
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.exit_code, exit_code);
  std::smatch parts;
  const std::string line = without_result(last_line(ended.err));
  const std::regex shape(
      "train: exit=([0-9]+) reason=([^ ]+) update=([0-9]+) checkpoint=(run/checkpoints/step-[0-9]{8})");
  ASSERT_TRUE(std::regex_match(line, parts, shape)) << line;
  EXPECT_EQ(parts[1], std::to_string(exit_code));
  EXPECT_EQ(parts[2], reason);
  EXPECT_GE(std::stoi(parts[3]), 64) << "two epochs were seen before";
  EXPECT_TRUE(std::filesystem::exists(work / (parts[4].str() + "/manifest.json")));
  EXPECT_NE(ended.out.find("checkpoint verified: run the same command to continue"), std::string::npos);
  EXPECT_NE(content_of_file(work / "run/status.json").find("\"state\": \"stopped\""), std::string::npos);
  expect_nothing_half_written(work);
}

void expect_same_command_finishes(const Workplace& work, const Words& words) {
  const Ended finished = run(words, work.path());
  EXPECT_EQ(finished.exit_code, 0) << story_of(words, finished);
  EXPECT_EQ(without_result(last_line(finished.err)), kDone);
  expect_already_finished(work, words);
}

void expect_already_finished(const Workplace& work, const Words& words) {
  expect_a_row_per_epoch(content_of_file(work / "run/summary.csv"));
  expect_nothing_half_written(work);
  const std::string before = listing_of(work / "run/checkpoints") + content_of_file(work / "run/summary.csv");
  const Ended again = run(words, work.path());
  EXPECT_EQ(again.exit_code, 0) << story_of(words, again);
  EXPECT_NE(again.out.find("already finished (epochs-done): nothing to do in run"), std::string::npos) << again.out;
  EXPECT_EQ(last_line(again.err).rfind("train: exit=0 reason=already-finished update=", 0), 0u) << again.err;
  EXPECT_EQ(listing_of(work / "run/checkpoints") + content_of_file(work / "run/summary.csv"), before);
}

}  // namespace stoker::cli
