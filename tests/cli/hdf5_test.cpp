// SPDX-License-Identifier: Apache-2.0
// Spectrograms in HDF5 through the program: the same weights for any number of workers and any place of the
// file.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "spectrograms.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class Hdf5Test : public ::testing::Test {
 protected:
  Hdf5Test() {
    fs::create_directories(work_ / "fast");
    write_spectrograms(work_);
  }

  Words words(const Words& more) const {
    Words all = {"--data-dir",  "data", "--task",        "binary",  "--model",      "spectrogram_cnn",
                 "--epochs",    "2",    "--threads",     "1",       "--batch-size", "16",
                 "--device",    "cpu",  "--eval-metric", "roc-auc", "--lr",         "0.02",
                 "--freq-mask", "1",    "--time-mask",   "1",       "--no-amp"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Ended succeed(const Words& all) {
    const Ended ended = run(all, work_.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(all, ended);
    return ended;
  }

  const Workplace work_;
};

TEST_F(Hdf5Test, TheWeightsAreTheSameForAnyWorkersAndAStagedCopyAndTheBannerShowsWhatWasChosen) {
  std::string weights;
  for (const auto& [name, more] : {std::pair<std::string, Words>{"none", {"--num-workers", "0"}},
                                   {"many", {"--num-workers", "16"}},
                                   {"staged", {"--num-workers", "2", "--stage-dir", "fast"}}}) {
    Words all = words(more);
    all.insert(all.end(), {"--run-dir", name, "-v"});
    const Ended ended = succeed(all);
    for (const std::string expected :
         {"measured on 64 samples of the training split", "--hflip 0: samples have a fixed size",
          "x float32 of 16 x 24, in 8 chunks, shuffled, deflated; labels y int64",
          "augment   1 frequency mask below 8, 1 time mask below 8"}) {
      EXPECT_NE(ended.out.find(expected), std::string::npos) << expected << "\n" << ended.out;
    }
    EXPECT_EQ(ended.out.find("are read from fast (") != std::string::npos, name == "staged");
    const std::string now = content_of_file(work_ / (name + "/checkpoints/last/model.safetensors"));
    ASSERT_FALSE(now.empty());
    if (weights.empty()) weights = now;
    EXPECT_TRUE(now == weights) << name;
  }
  EXPECT_TRUE(fs::is_empty(work_ / "fast")) << "the copies go with the run";
  const Ended evaluated = succeed({"eval", "many", "--threads", "1", "--device", "cpu"});
  EXPECT_NE(evaluated.err.find("samples 20"), std::string::npos) << evaluated.err;
  EXPECT_NE(evaluated.err.find("roc_auc"), std::string::npos) << evaluated.err;
}

TEST_F(Hdf5Test, AStoppedRunRemovesItsCopies) {
  Words all = words({"--stage-dir", "fast", "--epochs", "100000", "--num-workers", "1", "--run-dir", "run"});
  Program program({all, work_.path()});
  ASSERT_TRUE(program.wait_until([&] { return fs::exists(work_ / "run/metrics.jsonl"); }))
      << program.out() << program.err();
  EXPECT_FALSE(fs::is_empty(work_ / "fast"));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, 75);
  EXPECT_TRUE(fs::is_empty(work_ / "fast"));
}

TEST_F(Hdf5Test, AFailedRunRemovesItsCopies) {
  Words all = words({"--stage-dir", "fast", "--hflip", "0.5"});
  EXPECT_EQ(run(all, work_.path()).exit_code, 78);
  EXPECT_TRUE(fs::is_empty(work_ / "fast"));
}

TEST_F(Hdf5Test, SpectrogramsAreNotMirroredInEvaluation) {
  succeed(words({"--epochs", "1", "--run-dir", "run"}));
  const Ended trained = run(words({"--tta", "hflip", "--run-dir", "other"}), work_.path());
  const Ended evaluated = run({"eval", "run", "--tta", "hflip", "--threads", "1", "--device", "cpu"}, work_.path());
  for (const Ended& ended : {trained, evaluated}) {
    EXPECT_EQ(ended.exit_code, 78) << ended.err;
    EXPECT_NE(ended.err.find("tta is for images, but samples of HDF5 and multi-band files are not changed"),
              std::string::npos)
        << ended.err;
  }
}

TEST_F(Hdf5Test, APlanMakesNoCopiesAndThePresetFits) {
  const Words all = {"--preset", "s4_spectrogram_hdf5", "--data-dir", "data",     "--device", "cpu", "--threads",
                     "1",        "--stage-dir",         "fast",       "--dry-run"};
  const Ended ended = succeed(all);
  EXPECT_EQ(ended.out.find("staging"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("task binary"), std::string::npos) << ended.out;
  EXPECT_TRUE(fs::is_empty(work_ / "fast"));
}

TEST_F(Hdf5Test, AWrongLayoutShowsTheExpectedOneAndWhatIsThere) {
  fs::rename(work_ / "data/train.h5", work_ / "data/recordings.h5");
  const Ended ended = run(words({"--dataset", "hdf5"}), work_.path());
  EXPECT_EQ(ended.exit_code, 66) << ended.err;
  for (const char* const expected : {"has no split 'train'", "HDF5:   train.h5 and val.h5",
                                     "recordings.h5:", "x  float32 [64, 16, 24]", "y  int64 [64]"}) {
    EXPECT_NE(ended.err.find(expected), std::string::npos) << expected << "\n" << ended.err;
  }
}

TEST_F(Hdf5Test, PreviewAndTheReportDrawThem) {
  Words preview = {"preview", "--output", "p.png"}, data = {"--data-dir", "data", "--task", "binary", "--threads", "1"};
  preview.insert(preview.end(), data.begin(), data.end());
  EXPECT_NE(succeed(preview).out.find("written: p.png ("), std::string::npos);
  EXPECT_EQ(content_of_file(work_ / "p.png").rfind("\x89PNG", 0), 0u);
  succeed(words({"--run-dir", "run", "--report"}));
  EXPECT_NE(content_of_file(work_ / "run/report.html").find("src=\"data:image/jpeg;base64,/9j/"), std::string::npos);
  succeed({"eval", "run", "--threads", "1", "--output", "run/eval"});
  const std::string page = content_of_file(work_ / "run/report.html");
  for (const char* const part :
       {">Ordinary predictions</h2>", ">Precision and recall</figcaption>", ">F1 over the threshold</figcaption>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace stoker::cli
