// SPDX-License-Identifier: Apache-2.0
// Blocks of YAML as documents about other trainers show them start a run; and the plan of the files that a run would
// read.
#include <gtest/gtest.h>

#include <vector>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

Words dry_run(const Words& more = {}) {
  Words words = {"--data-dir", "data", "--dry-run", "--img-size", "8", "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const std::vector<std::string>& blocks() {
  static const std::vector<std::string> all = {
      "# config/defaults.yaml\ntraining:\n  batch_size: 16\n  num_workers: 8\n  \noptimization:\n  use_amp: false\n",
      "batch_size: 256          # Good GPU utilization without OOM\nnum_workers: 12\nprefetch_factor: 3\npin_memory: "
      "true         # Faster CPU→GPU transfer\npersistent_workers: true\n\n# Model optimization\ncompile_model: "
      "true\n# "
      "channels_last enabled in model code\n\nmixup_alpha: 0.0\ncutmix_alpha: 0.0\nlabel_smoothing: 0.1\n\nlr: 0.5\n"
      "precision: 16-mixed     # FP16 for speed\n",
      "batch_size: 320  # or 384\nlr: 0.625        # or 0.75\n# Monitor GPU memory - should stay < 20GB\n",
      "num_workers: 12\nprefetch_factor: 4\n# RAM buffer: 12 * 4 * 230MB ≈ 11GB\n",
      "total_batch_size: 1024  # 256 × 4\ntotal_workers: 48       # 12 × 4\nlr: 2.0                 # 0.5 × 4\n",
      "batch_size: 192  # or 128\n\n# Disable compilation (saves memory)\ncompile_model: false\n",
      "batch_size: 256          # ✅ Balanced\nnum_workers: 12\ncompile_model: true      # ✅ Enabled\nmixup_alpha: "
      "0.0\n",
      "batch_size: 64\nval_batch_size: 32\nuse_specaugment: false\nprofile_performance: true\nprofile_gpu_util: true\n",
      "{'num_workers': 8, 'pin_memory': true, 'prefetch_factor': 3, 'batch_size': 64, 'use_amp': false,\n "
      "'persistent_workers': true, 'accumulation_steps': 2}\n"};
  return all;
}

TEST(PastedConfigTest, EveryBlockStartsARunAndReportsWhatHasNoEffect) {
  const Workplace work;
  write_folders(work);
  for (const std::string& block : blocks()) {
    work.write("theirs.yaml", block);
    const Words words = dry_run({"-c", "theirs.yaml", "-v"});
    const Ended ended = run(words, work.path());
    SCOPED_TRACE(block + story_of(words, ended));
    EXPECT_EQ(ended.exit_code, 0);
    for (const std::string key : {"compile_model", "total_workers", "persistent_workers", "profile_gpu_util"}) {
      if (block.find(key + ":") == std::string::npos && block.find(key + "'") == std::string::npos) continue;
      std::string name = key;
      for (char& c : name) c = c == '_' ? '-' : c;
      EXPECT_NE((ended.out + ended.err).find(name + " (theirs.yaml:"), std::string::npos) << name;
    }
  }
}

TEST(PastedConfigTest, HalfPrecisionOfAFileTrainsOnACpuWithANote) {
  const Workplace work;
  write_folders(work);
  work.write("theirs.yaml", "precision: 16-mixed\n");
  const Words words = {"--data-dir", "data", "--img-size", "8",           "--threads", "1",
                       "--epochs",   "1",    "-c",         "theirs.yaml", "--run-dir", "run"};
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE(ended.out.find(STOKER_LIBTORCH_COMPUTES_FLOAT16 != 0
                               ? "float16, which the configuration sets for a GPU, is slow on the CPU"
                               : "the CPU computes no float16, which the configuration sets"),
            std::string::npos);
  EXPECT_EQ(ended.out.find("cpu, float16 autocast"), std::string::npos);
}

TEST(PastedConfigTest, TheEnvironmentSetsThreadsBelowTheOption) {
  const Workplace work;
  write_folders(work);
  Launch launch;
  launch.directory = work.path();
  launch.variables = {"OMP_NUM_THREADS=1"};
  launch.words = {"--data-dir", "data", "--dry-run", "--img-size", "8"};
  const Ended by_environment = run(launch);
  EXPECT_NE(by_environment.out.find("threads 1: OMP_NUM_THREADS is 1"), std::string::npos)
      << story_of(launch.words, by_environment);
  launch.words.insert(launch.words.end(), {"--threads", "2"});
  const Ended by_flag = run(launch);
  EXPECT_NE(by_flag.out.find("2 CPU threads"), std::string::npos) << story_of(launch.words, by_flag);
}

TEST(DataFilesTest, ADryRunReadsFilesAndNamesBadOnes) {
  const Workplace work;
  write_folders(work);
  const Ended good = run(dry_run(), work.path());
  EXPECT_EQ(good.exit_code, 0) << story_of(dry_run(), good);
  EXPECT_NE(good.out.find("files     all 8 training samples read, none bad"), std::string::npos) << good.out;
  work.write("data/train/cat/2.png", "");
  work.write("data/val/dog/1.png", "no image at all");
  const Ended bad = run(dry_run(), work.path());
  SCOPED_TRACE(story_of(dry_run(), bad));
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_NE(bad.err.find("data/train/cat/2.png: empty file"), std::string::npos);
  EXPECT_NE(bad.err.find("data/val/dog/1.png: not an image"), std::string::npos);
  EXPECT_NE(bad.err.find("2 bad files would end the run"), std::string::npos);
  EXPECT_EQ(run(dry_run({"--on-bad-image", "skip,2", "--all-files"}), work.path()).exit_code, 0);
}

TEST(DataFilesTest, ACheckNamesBadFilesToo) {
  const Workplace work;
  write_folders(work);
  work.write("data/train/cat/2.png", "");
  const Words words = {"check", "--data-dir", "data", "--threads", "1"};
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_EQ(ended.exit_code, 65);
  EXPECT_NE(ended.out.find("files     all 8 training samples read, 1 bad"), std::string::npos);
  EXPECT_NE(ended.out.find("bad       data/train/cat/2.png: empty file"), std::string::npos);
}

TEST(DataFilesTest, ACheckLooksAtClassFoldersWithoutSplitsToo) {
  const Workplace work;
  write_folders(work);
  work.write("data/train/cat/2.png", "");
  const Words words = {"check", "--data-dir", "data/train", "--threads", "1"};
  const Ended ended = run(words, work.path());
  SCOPED_TRACE(story_of(words, ended));
  EXPECT_NE(ended.out.find("bad       data/train/cat/2.png: empty file"), std::string::npos);
  EXPECT_EQ(ended.exit_code, 65);
}

}  // namespace
}  // namespace stoker::cli
