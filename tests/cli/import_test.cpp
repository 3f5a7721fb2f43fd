// SPDX-License-Identifier: Apache-2.0
// `train import` as a user calls it: rows on standard output, files whole or not at all.
#include <gtest/gtest.h>

#include <filesystem>

#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override { place_finished_run(work_); }

  Ended import(const Words& more, int exit_code = 0) {
    Words words = {"import"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, exit_code) << story_of(words, ended);
    return ended;
  }

  const Workplace work_;
  const std::string weights_ = "run/checkpoints/step-00000008/model.safetensors";
};

TEST_F(ImportTest, ListsOneRowPerTensorOnStandardOutputAlone) {
  const Ended ended = import({weights_});
  const std::vector<std::string> lines = lines_of(ended.out);
  ASSERT_GT(lines.size(), 10u) << ended.out;
  EXPECT_EQ(lines[0], "name,type,shape,dictionary");
  EXPECT_NE(ended.out.find("\nfc.bias,F32,10,\n"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.err.rfind(weights_ + ": safetensors, ", 0), 0u) << ended.err;
  EXPECT_EQ(last_line(ended.err), "train: exit=0 reason=listed");
}

TEST_F(ImportTest, WritesSafetensorsThatItReadsBackAlike) {
  EXPECT_EQ(import({weights_, "-o", "w.safetensors"}).out, "");
  EXPECT_EQ(import({"w.safetensors"}).out, import({weights_}).out);
  const std::string first = content_of_file(work_ / "w.safetensors");
  import({"w.safetensors", "--output", "again.safetensors"});
  EXPECT_EQ(content_of_file(work_ / "again.safetensors"), first);
  EXPECT_FALSE(fs::exists(work_ / "again.safetensors.part"));
}

TEST_F(ImportTest, ARunStartsFromTheWeightsThatAnotherRunOrACheckpointIsEvaluatedWith) {
  const auto starting_with = [&](const std::string& from) {
    Words words = train_words({"--run-dir", "next", "--fresh", "--init-from", from, "--dry-run"});
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    const std::string before = " tensors from ";
    const size_t begin = ended.out.find(before) + before.size();
    return ended.out.substr(begin, ended.out.find(" (", begin) - begin);
  };
  const std::string best = std::string("run/checkpoints/") + fs::read_symlink(work_ / "run/checkpoints/best").string();
  EXPECT_EQ(starting_with("run"), best + "/model.safetensors");
  EXPECT_EQ(starting_with("run/checkpoints/step-00000008"), weights_);
  fs::create_directory(work_ / "hub");
  fs::copy_file(work_ / weights_, work_ / "hub/model.safetensors");
  EXPECT_EQ(starting_with("hub"), "hub/model.safetensors");
  fs::copy_file(work_ / weights_, work_ / (best + "/model_ema.safetensors"));
  EXPECT_EQ(starting_with("run"), best + "/model.safetensors") << "a file that the checkpoint does not list";
  const Words averaged = train_words({"--run-dir", "averaged", "--epochs", "1", "--model-ema"});
  const Ended trained = run(averaged, work_.path());
  ASSERT_EQ(trained.exit_code, 0) << story_of(averaged, trained);
  const fs::path file = starting_with("averaged");
  EXPECT_EQ(file.filename(), "model_ema.safetensors") << "as train eval takes them";
}

TEST_F(ImportTest, WeightsOfANameAreTheNewestOfTheCachesAndTheirDigestStaysWithTheRun) {
  Launch launch;
  launch.directory = work_.path();
  launch.variables = {"HOME=" + work_.path(), "XDG_CACHE_HOME=", "TORCH_HOME=", "HF_HOME=", "HF_HUB_CACHE="};
  const auto train = [&](const Words& more, int exit_code = 0) {
    launch.words = train_words({"--model", "small_cnn", "--pretrained", "--run-dir", "next"});
    launch.words.insert(launch.words.end(), more.begin(), more.end());
    const Ended ended = run(launch);
    EXPECT_EQ(ended.exit_code, exit_code) << story_of(launch.words, ended);
    return ended;
  };
  const auto digest = [&] {
    const std::string manifest = content_of_file(work_ / "next/checkpoints/last/manifest.json");
    const size_t begin = manifest.find("\"starting_weights\"");
    return begin == std::string::npos ? "" : manifest.substr(begin, manifest.find('}', begin) - begin);
  };
  const Ended none = train({}, 66);
  EXPECT_NE(
      none.err.find("no weights of small_cnn; looked into " + work_.path() +
                    "/.cache/torch/hub/checkpoints (absent) and " + work_.path() + "/.cache/huggingface/hub (absent)"),
      std::string::npos)
      << none.err;
  const Ended published = train({"--model", "resnet50"}, 66);
  EXPECT_NE(published.err.find("IMAGENET1K_V2, 102.5 MB, SHA-256 11ad3fa62ca7"), std::string::npos) << published.err;
  EXPECT_NE(published.err.find("curl -L --create-dirs -o " + work_.path() +
                               "/.cache/torch/hub/checkpoints/resnet50-11ad3fa6.pth "
                               "https://download.pytorch.org/models/resnet50-11ad3fa6.pth"),
            std::string::npos)
      << published.err;
  const std::string cached = ".cache/torch/hub/checkpoints/small_cnn.safetensors";
  fs::create_directories(fs::path(work_ / cached).parent_path());
  fs::copy_file(work_ / weights_, work_ / cached);
  const Ended first = train({"--max-updates", "2"});
  EXPECT_NE(first.out.find("starts from the weights of " + work_.path() + "/" + cached + " (SHA-256 "),
            std::string::npos)
      << first.out;
  const std::string began_with = digest();
  EXPECT_NE(began_with.find(cached), std::string::npos) << began_with;
  fs::remove(work_ / cached);
  train({});
  EXPECT_EQ(digest(), began_with) << "a run that continues reads no weights";
}

TEST_F(ImportTest, RefusalsNameTheFileAndWriteNothing) {
  work_.write("evil.pth",
              std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02", 23) +
                  "cos\nsystem\n(X\x02" + std::string(3, '\0') + "idtR.");
  const Ended evil = import({"evil.pth", "-o", "w.safetensors"}, 65);
  EXPECT_NE(evil.err.find("error: evil.pth: it names os.system"), std::string::npos) << evil.err;
  EXPECT_FALSE(fs::exists(work_ / "w.safetensors"));
  EXPECT_NE(import({weights_, "--model", "resnet18"}, 65).err.find("tensors have names of resnet18"),
            std::string::npos);
  EXPECT_NE(import({weights_, "--model", "resnet81"}, 78).err.find("did you mean"), std::string::npos);
  import({"nowhere.pth"}, 66);
  import({}, 64);
}

}  // namespace
}  // namespace stoker::cli
