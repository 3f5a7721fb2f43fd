// SPDX-License-Identifier: Apache-2.0
// Checkpoints and weights that cannot be used: refused by name, and what is on disk stays as it was.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

class BadCheckpoint : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadCheckpoint, IsRefused) {
  const Workplace work;
  place_finished_run(work);
  std::string before;
  BadInput input = GetParam();
  input.make = [&](const Workplace& place) {
    Words words = GetParam().make(place);
    before = listing_of(work / "run/checkpoints");
    return words;
  };
  expect_refused(input, work);
  EXPECT_EQ(listing_of(work / "run/checkpoints"), before);
}

const char kNewest[] = "run/checkpoints/step-00000008";
const char kOlder[] = "run/checkpoints/step-00000004";

using Damage = std::function<void(const Workplace&)>;

/// `train --resume` with the newest checkpoint by name, damaged.
std::function<Words(const Workplace&)> named(const Damage& damage) {
  return [=](const Workplace& work) {
    damage(work);
    return finished_run_words({"--resume", kNewest});
  };
}

/// The finished run's command with one more flag.
std::function<Words(const Workplace&)> again(const Words& more) { return words(finished_run_words(more)); }

/// Its newest manifest with `from` replaced.
Damage manifest_with(const std::string& from, const std::string& to) {
  return [=](const Workplace& work) {
    std::string text = content_of_file(work / std::string(kNewest) + "/manifest.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    work.write(std::string(kNewest) + "/manifest.json", text.replace(at, from.size(), to));
  };
}

void cut(const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }

void flip_a_bit(const std::string& path) {
  std::string content = content_of_file(path);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 0x10);
  std::ofstream(path, std::ios::binary) << content;
}

std::string newest_file(const Workplace& work, const std::string& name) {
  return work / (std::string(kNewest) + "/" + name);
}

const std::vector<BadInput>& damaged() {
  static const std::vector<BadInput> all = {
      {"CutShort",
       named([](const Workplace& work) { cut(newest_file(work, "model.safetensors")); }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: model.safetensors is truncated or longer: it has ",
        "the manifest lists "}},
      {"EmptyFile",
       named([](const Workplace& work) { fs::resize_file(newest_file(work, "optimizer.safetensors"), 0); }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: optimizer.safetensors is truncated", "it has 0 bytes"}},
      {"FlippedBit",
       named([](const Workplace& work) { flip_a_bit(newest_file(work, "model.safetensors")); }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: model.safetensors is damaged: its digest differs from the "
        "manifest's"}},
      {"FlippedBitInTheState",
       named([](const Workplace& work) { flip_a_bit(newest_file(work, "state.json")); }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: state.json is damaged"}},
      {"MissingFile",
       named([](const Workplace& work) { fs::remove(newest_file(work, "random.safetensors")); }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: random.safetensors cannot be opened: No such file"}},
      {"LinkInsteadOfFile",
       named([](const Workplace& work) {
         fs::rename(newest_file(work, "state.json"), newest_file(work, "else.json"));
         fs::create_symlink("else.json", newest_file(work, "state.json"));
       }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: state.json cannot be opened"}},
      {"PipeInsteadOfFile",
       named([](const Workplace& work) {
         fs::remove(newest_file(work, "state.json"));
         ::mkfifo(newest_file(work, "state.json").c_str(), 0600);
       }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: state.json is not a regular file"}},
      {"NoManifest",
       named([](const Workplace& work) { fs::remove(newest_file(work, "manifest.json")); }),
       kNoInput,
       {"no checkpoint in run/checkpoints/step-00000008"}},
      {"ManifestCutShort",
       named([](const Workplace& work) { cut(newest_file(work, "manifest.json")); }),
       kData,
       {"run/checkpoints/step-00000008/manifest.json"}},
      {"ManifestOfNestedBrackets",
       named([](const Workplace& work) {
         work.write(std::string(kNewest) + "/manifest.json", std::string(100'000, '['));
       }),
       kData,
       {"run/checkpoints/step-00000008/manifest.json"}},
      {"ManifestThatIsAnotherObject",
       named([](const Workplace& work) { work.write(std::string(kNewest) + "/manifest.json", "{\"a\": 1}\n"); }),
       kData,
       {"checkpoint run/checkpoints/step-00000008: its manifest was not written by this program"}},
      {"ManifestThatNamesAFileOutside",
       named(manifest_with("\"model.safetensors\"", "\"../../../../etc/passwd\"")),
       kData,
       {"its manifest names a file outside the checkpoint"}},
      {"ManifestOfANewerFormat",
       named(manifest_with("\"format\": 1", "\"format\": 99")),
       kData,
       {"written in format 99 by a newer version"}},
      {"EveryCheckpointDamaged",
       [](const Workplace& work) {
         cut(newest_file(work, "model.safetensors"));
         flip_a_bit(work / (std::string(kOlder) + "/optimizer.safetensors"));
         return finished_run_words();
       },
       kData,
       {"warning: checkpoint run/checkpoints/step-00000008: model.safetensors is truncated",
        "warning: checkpoint run/checkpoints/step-00000004: optimizer.safetensors is damaged",
        "none of the 2 checkpoints in run/checkpoints verifies", "choose another --run-dir to start over"}},
  };
  return all;
}

const std::vector<BadInput>& unfit() {
  static const std::vector<BadInput> all = {
      {"PathThatIsNotThere", again({"--resume", "nowhere"}), kNoInput, {"no checkpoint in nowhere"}},
      {"LastOfARunWithoutCheckpoints",
       again({"--run-dir", "other", "--resume", "last"}),
       kNoInput,
       {"--resume last: there is no such checkpoint in other/checkpoints"}},
      {"FreshStartOverAnOldRun",
       again({"--resume", "none"}),
       kConfig,
       {"--resume none, but run/checkpoints holds checkpoints of an earlier run", "choose another --run-dir"}},
      {"ChangedOptionsAreAllListed",
       again({"--batch-size", "8", "--lr", "0.5", "--seed", "7"}),
       kConfig,
       {"run/checkpoints/step-00000008 was written by a run that differs from this one:",
        "--batch-size: the checkpoint has 16, this run 8", "--lr: the checkpoint has ", "--seed: the checkpoint has ",
        "--override-resume"}},
      {"ChangedModel", again({"--width", "16"}), kConfig, {"--width: the checkpoint has 8, this run 16"}},
      {"ChangedModelInSpiteOfAll",
       again({"--width", "16", "--override-resume"}),
       kData,
       {"run/checkpoints/step-00000008/model.safetensors: ", "instead of"}},
      {"ChangedLabels",
       [](const Workplace& work) {
         work.write("data/train-labels-idx1-ubyte", idx_labels(64, 0x801, 5));
         return finished_run_words();
       },
       kConfig,
       {"data: files, sizes or labels changed since the checkpoint was written"}},
      {"MoreImages",
       [](const Workplace& work) {
         write_idx(work, 80);
         return finished_run_words();
       },
       kConfig,
       {"data: files, sizes or labels changed since the checkpoint was written"}},
  };
  return all;
}

/// A fresh run in other/ that starts from the file w.safetensors.
std::function<Words(const Workplace&)> starts_from(const std::string& content) {
  return [=](const Workplace& work) {
    work.write("w.safetensors", content);
    return train_words({"--run-dir", "other", "--init-from", "w.safetensors"});
  };
}

/// A safetensors file with this header and `data_bytes` bytes behind it.
std::string safetensors(const std::string& header, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + std::string(data_bytes, '\0');
}

const std::vector<BadInput>& bad_weights() {
  static const std::vector<BadInput> all = {
      {"Pickle",
       starts_from(std::string("\x80\x02}q\0(X\x05\0\0\0alphaq\x01K\x01u.", 22)),
       kData,
       {"w.safetensors: this is a zip archive or a pickle, not safetensors", "train import FILE"}},
      {"ZipArchive",
       starts_from("PK\x03\x04" + std::string(100, '\1')),
       kData,
       {"w.safetensors: damaged zip archive: its end is missing: the file was cut short"}},
      {"Text",
       starts_from("these are not the weights you are looking for\n"),
       kData,
       {"w.safetensors: it is text, not weights; it begins with \"these are not"}},
      {"EmptyFile", starts_from(""), kData, {"w.safetensors: it is empty (0 bytes)"}},
      {"HugeHeader",
       starts_from(std::string(8, '\xFF') + "{}"),
       kData,
       {"w.safetensors: not a valid safetensors file"}},
      {"DeepHeader", starts_from(safetensors(std::string(1000, '['), 0)), kData, {"w.safetensors"}},
      {"OffsetsBeyondTheFile",
       starts_from(safetensors(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8)),
       kData,
       {"w.safetensors: not a valid safetensors file: tensor a lies outside the file"}},
      {"ShapeThatWrapsAround",
       starts_from(safetensors(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0)),
       kData,
       {"tensor a has a shape that is too large"}},
      {"OtherArchitecture",
       [](const Workplace& work) {
         work.write("w.safetensors", content_of_file(newest_file(work, "model.safetensors")));
         return train_words({"--run-dir", "other", "--init-from", "w.safetensors", "--width", "16"});
       },
       kData,
       {"w.safetensors: ", "instead of", "check --model, --width, --num-classes and --in-chans"}},
      {"FileThatIsNotThere",
       words(train_words({"--run-dir", "other", "--init-from", "nowhere.safetensors"})),
       kNoInput,
       {"cannot read nowhere.safetensors: No such file or directory"}},
      {"PathThatIsNotThere",
       words(train_words({"--run-dir", "other", "--init-from", "old/model.pth"})),
       kNoInput,
       {"cannot read old/model.pth: No such file or directory", "--init-from names a file"}},
      {"Folder",
       words(train_words({"--run-dir", "other", "--init-from", "data"})),
       kNoInput,
       {"no weights that fit small_cnn in data", "train list weights"}},
      {"EndlessDevice",
       words(train_words({"--run-dir", "other", "--init-from", "/dev/zero"})),
       kNoInput,
       {"cannot read /dev/zero: it is not a regular file"}},
  };
  return all;
}

const std::vector<BadInput>& bad_uses() {
  static const std::vector<BadInput> all = {
      {"EvalOfNothing", words({"eval", "nowhere"}), kNoInput, {"no checkpoint in nowhere", "name a run directory"}},
      {"EvalOfADamagedRun",
       [](const Workplace& work) {
         for (const std::string step : {kNewest, kOlder}) cut(work / (step + "/model.safetensors"));
         return Words{"eval", "run"};
       },
       kData,
       {"model.safetensors is truncated"}},
      {"EvalOnOtherClasses",
       [](const Workplace& work) {
         fs::remove_all(work / "data");
         write_folders(work);
         return Words{"eval", "run", "--threads", "1"};
       },
       kData,
       {"differ from the classes that are learned: only here: cat and dog; missing here: 0, 1, 2"}},
      {"EvalOfASplitThatIsNotThere",
       words({"eval", "run", "--split", "exam", "--threads", "1"}),
       kNoInput,
       {"data has none of the splits exam"}},
      {"PredictNothing", words({"predict", "run", "nowhere.png"}), kNoInput, {"nowhere.png does not exist"}},
      {"PredictAnEmptyFolder",
       [](const Workplace& work) {
         fs::create_directory(work / "images");
         return Words{"predict", "run", "images"};
       },
       kNoInput,
       {"images has no images"}},
      {"PredictABadImage",
       [](const Workplace& work) {
         work.write("bad.png", png_of(8, 8, 1).substr(0, 45));
         return Words{"predict", "run", "bad.png"};
       },
       kData,
       {"bad image bad.png: "}},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Damaged, BadCheckpoint, ::testing::ValuesIn(damaged()), name_of);
INSTANTIATE_TEST_SUITE_P(Unfit, BadCheckpoint, ::testing::ValuesIn(unfit()), name_of);
INSTANTIATE_TEST_SUITE_P(Weights, BadCheckpoint, ::testing::ValuesIn(bad_weights()), name_of);
INSTANTIATE_TEST_SUITE_P(Use, BadCheckpoint, ::testing::ValuesIn(bad_uses()), name_of);

TEST(DamagedNewestCheckpoint, IsPassedOverLoudlyAndTheRunGoesOnFromTheOneBefore) {
  const Workplace work;
  place_finished_run(work);
  const std::string whole = content_of_file(newest_file(work, "model.safetensors"));
  cut(newest_file(work, "model.safetensors"));
  const Ended ended = run(finished_run_words(), work.path());
  SCOPED_TRACE(story_of(finished_run_words(), ended));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_NE(ended.err.find("warning: checkpoint run/checkpoints/step-00000008: model.safetensors is truncated"),
            std::string::npos);
  EXPECT_NE(ended.err.find("going back to the checkpoint before it"), std::string::npos);
  EXPECT_NE(ended.out.find("resumes run/checkpoints/step-00000004"), std::string::npos);
  EXPECT_EQ(content_of_file(newest_file(work, "model.safetensors")), whole) << "the same weights come out again";
  expect_nothing_half_written(work);
}

TEST(UnfinishedCheckpoint, IsNotTakenForOneAndIsSwept) {
  const Workplace work;
  place_finished_run(work);
  const std::string temporary = "run/checkpoints/.tmp-00000012-4711";
  work.write(temporary + "/model.safetensors", "half");
  const Ended ended = run(finished_run_words(), work.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(without_result(last_line(ended.err)),
            "train: exit=0 reason=already-finished update=8 checkpoint=run/checkpoints/step-00000008");
  expect_nothing_half_written(work);
}

}  // namespace
}  // namespace stoker::cli
