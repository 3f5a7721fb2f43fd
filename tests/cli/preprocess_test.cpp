// SPDX-License-Identifier: Apache-2.0
// preprocess.json of a checkpoint: eval and predict work from it, and from checkpoints that have none.
#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdio>
#include <filesystem>

#include "exit_codes.h"
#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kCheckpoint[] = "run/checkpoints/step-00000008";
constexpr char kRecord[] = "run/checkpoints/step-00000008/preprocess.json";
constexpr char kManifest[] = "run/checkpoints/step-00000008/manifest.json";

std::string digest_of(const std::string& content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

class PreprocessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_finished_run(work_);
    for (int i = 0; i < 3; ++i) {
      work_.write("images/" + std::to_string(i) + ".png", png_of(8, 8, static_cast<uint8_t>(80 * i)));
    }
  }

  Ended ask(Words words) {
    words.insert(words.end(), {"--threads", "1", "--num-workers", "1"});
    return run(words, work_.path());
  }
  std::string predicted(const Words& more = {}) {
    Words words = {"predict", kCheckpoint, "images"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = ask(words);
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
    return ended.out;
  }
  /// Replaces `from` in a file of the checkpoint.
  void edit(const std::string& path, const std::string& from, const std::string& to) {
    std::string text = content_of_file(work_ / path);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " is not in " << text;
    work_.write(path, text.replace(at, from.size(), to));
  }
  /// The same in the record, whose digest and size the manifest then has.
  void edit_record(const std::string& from, const std::string& to) {
    const std::string before = content_of_file(work_ / kRecord);
    edit(kRecord, from, to);
    const std::string after = content_of_file(work_ / kRecord);
    edit(kManifest, digest_of(before), digest_of(after));
    ASSERT_EQ(before.size(), after.size()) << "its size stands in the manifest, too";
  }

  const Workplace work_;
};

TEST_F(PreprocessTest, SizesAreThoseOfTheManifest) {
  edit(kManifest, "\"img-size\": \"8\"", "\"img-size\": \"9\"");
  const Ended ended = ask({"predict", kCheckpoint, "images"});
  EXPECT_EQ(ended.exit_code, kData) << ended.err;
  EXPECT_NE(ended.err.find("img-size is 8 in config.yaml and preprocess.json, but 9 in manifest.json"),
            std::string::npos)
      << ended.err;
}

TEST_F(PreprocessTest, EveryCheckpointHasARecordThatItsManifestLists) {
  const std::string manifest = content_of_file(work_ / kManifest);
  EXPECT_NE(manifest.find("\"preprocess.json\""), std::string::npos);
  EXPECT_NE(manifest.find(digest_of(content_of_file(work_ / kRecord))), std::string::npos);
  edit(kRecord, "multiclass", "multiclasz");
  const Ended ended = ask({"eval", kCheckpoint});
  EXPECT_EQ(ended.exit_code, 65) << ended.err;
  EXPECT_NE(ended.err.find("preprocess.json is damaged"), std::string::npos) << ended.err;
}

TEST_F(PreprocessTest, PredictTakesNormalisationAndNamesFromTheRecord) {
  const std::string before = predicted();
  edit_record("   0.25\n", "   0.75\n");  // the deviation
  const std::string normalised_otherwise = predicted();
  EXPECT_NE(normalised_otherwise, before);
  edit_record("  \"0\",\n  \"1\",\n  \"2\",\n", "  \"A\",\n  \"B\",\n  \"C\",\n");
  edit_record("  \"3\",\n  \"4\",\n  \"5\",\n", "  \"D\",\n  \"E\",\n  \"F\",\n");
  edit_record("  \"6\",\n  \"7\",\n  \"8\",\n  \"9\"\n", "  \"G\",\n  \"H\",\n  \"I\",\n  \"J\"\n");
  for (const std::string& line : lines_of(predicted())) {
    if (line.rfind("path,", 0) == 0) continue;
    const char name = line.at(line.find(',') + 1);
    EXPECT_TRUE(name >= 'A' && name <= 'J') << line;
  }
}

TEST_F(PreprocessTest, EvalRefusesARecordThatItDoesNotUnderstand) {
  edit_record("\"bilinear\"", "\"lanczos3\"");
  const Ended ended = ask({"eval", kCheckpoint});
  EXPECT_EQ(ended.exit_code, 65) << ended.err;
  EXPECT_NE(ended.err.find("preprocess.json: filter is 'lanczos3'"), std::string::npos) << ended.err;
}

TEST_F(PreprocessTest, CheckpointsWithoutARecordGiveTheSamePredictions) {
  const std::string with_record = predicted();
  const std::string record = content_of_file(work_ / kRecord), manifest = content_of_file(work_ / kManifest);
  const size_t begin = manifest.find("\"preprocess.json\""), end = manifest.find('}', begin);
  std::string without = manifest;
  without.erase(begin, manifest.find('"', end) - begin);
  work_.write(kManifest, without);
  fs::remove(work_ / kRecord);
  EXPECT_EQ(predicted(), with_record);
}

TEST(RectangleTest, ARunOnImagesThatAreNotSquareGivesPredictionsAndFiles) {
  const Workplace work;
  for (const char* const folder : {"data/train/a", "data/train/b", "data/val/a", "data/val/b"}) {
    for (uint8_t i = 0; i < 4; ++i) {
      work.write(std::string(folder) + "/" + std::to_string(i) + ".png",
                 png_of(50, 31, static_cast<uint8_t>(60 * i + folder[10])));
    }
  }
  const Words train = {"--data-dir",       "data", "--model",      "tiny_cnn", "--img-size",     "24,40",
                       "--epochs",         "1",    "--batch-size", "4",        "--auto-augment", "rand-m9-n2",
                       "--random-erasing", "1",    "--run-dir",    "run",      "--threads",      "1",
                       "--num-workers",    "1",    "--device",     "cpu"};
  Words refused = train;
  refused.insert(refused.end(), {"--rotate90", "0.5"});
  EXPECT_EQ(run(refused, work.path()).exit_code, 78);
  for (const Words& words : {train, Words{"eval", "run"}, Words{"predict", "run", "data/val"},
                             Words{"export", "run", "data/val", "--check", "-o", "network.onnx"}}) {
    const Ended ended = run(words, work.path());
    EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  }
  const std::string record = content_of_file(work / "run/checkpoints/last/preprocess.json");
  for (const char* const field : {"\"height\": 24", "\"width\": 40", "\"rule\": \"cover\""}) {
    EXPECT_NE(record.find(field), std::string::npos) << field << " is not in " << record;
  }
}

}  // namespace
}  // namespace stoker::cli
