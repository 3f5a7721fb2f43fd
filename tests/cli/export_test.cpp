// SPDX-License-Identifier: Apache-2.0
// `train export` as a user calls it: what is written agrees with what the program itself predicts, in the eyes of
// others.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "finished_run.h"

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

const std::string kTrain = STOKER_TRAIN_PROGRAM;
const bool kHasChecker = fs::exists(fs::path(kTrain).parent_path() / "stoker-check-onnx");

bool has_python_torch() {
  static const bool has = std::system("python3 -c 'import torch, numpy' >/dev/null 2>&1") == 0;
  return has;
}

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_finished_run(work_);
    for (int i = 0; i < 5; ++i) {
      work_.write("images/" + std::to_string(i) + ".png", png_of(8, 8, static_cast<uint8_t>(50 * i)));
    }
  }

  Ended export_run(const Words& more, int exit_code = 0) {
    Words words = {"export", "run"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, work_.path());
    EXPECT_EQ(ended.exit_code, exit_code) << story_of(words, ended);
    return ended;
  }
  bool has(const std::string& path) const { return fs::exists(work_ / path); }

  const Workplace work_;
};

TEST_F(ExportTest, WritesOnnxIntoTheRunWithVectorsBesideIt) {
  const Ended ended = export_run({});
  EXPECT_TRUE(has("run/export/model.onnx") && has("run/export/model.vectors.safetensors")) << ended.err;
  EXPECT_EQ(ended.out, "");
  const std::string file = content_of_file(work_ / "run/export/model.onnx");
  for (const char* const word : {"images", "logits", "batch", "class_names", "preprocess", "stoker-preprocess"}) {
    EXPECT_NE(file.find(word), std::string::npos) << word;
  }
  const Ended vectors = run({"import", "run/export/model.vectors.safetensors"}, work_.path());
  EXPECT_NE(vectors.out.find("images,F32,8x1x8x8"), std::string::npos) << vectors.out;
  EXPECT_NE(vectors.out.find("logits,F32,8x10"), std::string::npos) << vectors.out;
}

TEST_F(ExportTest, OpenCvAgreesWithEveryBoundary) {
  if (!kHasChecker) GTEST_SKIP() << "built without OpenCV's dnn";
  for (const Words& boundary : std::vector<Words>{
           {}, {"--with-preprocessing"}, {"--with-predictions"}, {"--with-preprocessing", "--with-predictions"}}) {
    Words words = {"images", "--check", "-o", "a.onnx"};
    words.insert(words.end(), boundary.begin(), boundary.end());
    const Ended ended = export_run(words);
    EXPECT_NE(ended.err.find("agrees on 5 samples"), std::string::npos) << ended.err;
  }
}

TEST_F(ExportTest, OpenCvAgreesOnColourImagesThatAreNormalisedInside) {
  if (!kHasChecker) GTEST_SKIP() << "built without OpenCV's dnn";
  const Words train = {"--data-dir", "data",      "--model", "tiny_cnn", "--in-chans", "3",     "--epochs",
                       "1",          "--threads", "1",       "--no-amp", "--run-dir",  "colour"};
  ASSERT_EQ(run(train, work_.path()).exit_code, 0);
  const Words words = {"export", "colour", "--check", "--with-preprocessing", "-o", "c.onnx"};
  const Ended ended = run(words, work_.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  EXPECT_NE(ended.err.find("agrees on"), std::string::npos) << ended.err;
}

TEST_F(ExportTest, ACalibratedCheckpointExportsItsTemperature) {
  ASSERT_EQ(run({"eval", "run", "--calibrate", "--threads", "1"}, work_.path()).exit_code, 0);
  const Words check = kHasChecker ? Words{"images", "--check", "-o", "a.onnx"} : Words{"images", "-o", "a.onnx"};
  for (const Words& boundary : std::vector<Words>{{}, {"--with-predictions"}}) {
    Words words = check;
    words.insert(words.end(), boundary.begin(), boundary.end());
    export_run(words);
    EXPECT_NE(content_of_file(work_ / "a.onnx").find("\"temperature\":"), std::string::npos);
  }
}

TEST_F(ExportTest, ACheckFailsWhereAnotherReaderPredictsOtherwise) {
  work_.write("bin/stoker-check-onnx", "#!/bin/sh\n{ echo 8 10 Liar 1 batches; head -c 320 /dev/zero; } > \"$3\"\n");
  ::chmod((work_ / "bin/stoker-check-onnx").c_str(), 0755);
  fs::copy_file(kTrain, work_ / "bin/train");
  fs::copy_file(fs::path(kTrain).parent_path() / "stoker-train", work_ / "bin/stoker-train");
  const std::string command = "cd " + work_.path() + " && bin/train export run --check > output 2>&1";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 78);
  const std::string output = content_of_file(work_ / "output");
  EXPECT_NE(output.find("Liar 1 disagrees: predictions differ by up to"), std::string::npos) << output;
}

TEST_F(ExportTest, TorchScriptRunsInPythonWithTheNumbersOfTheVectors) {
  export_run({"--format", "torchscript", "--check", "-o", "a.pt"});
  if (!has_python_torch()) GTEST_SKIP() << "without python3-torch";
  work_.write("check.py", R"(
import json, struct, numpy, torch
def read(path):
    blob = open(path, 'rb').read()
    n = struct.unpack('<Q', blob[:8])[0]
    header = json.loads(blob[8:8 + n]); meta = header.pop('__metadata__')
    return {k: torch.from_numpy(numpy.frombuffer(blob[8 + n + v['data_offsets'][0]:8 + n + v['data_offsets'][1]],
            dtype=numpy.float32).reshape(v['shape']).copy()) for k, v in header.items()}, meta
tensors, meta = read('a.vectors.safetensors')
extra = {'preprocess': '', 'class_names': ''}
network = torch.jit.load('a.pt', _extra_files=extra)
for batch in (tensors['images'], tensors['images'][:1]):
    outputs = network(batch)
    assert (outputs - tensors['logits'][:len(batch)]).abs().max() < 1e-5
assert json.loads(extra['preprocess'])['task'] == 'multiclass', extra
assert json.loads(extra['class_names']) == [str(i) for i in range(10)], extra
names = dict(network.named_parameters())
assert 'fc.weight' in names, list(names)
print('python agrees')
)");
  const std::string command = "cd " + work_.path() + " && python3 check.py > output 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << content_of_file(work_ / "output");
}

TEST_F(ExportTest, ALinkStaysAndAStreamIsWrittenThrough) {
  work_.write("target.onnx", "old");
  std::filesystem::create_symlink("target.onnx", work_ / "link.onnx");
  export_run({"--output", "link.onnx"});
  EXPECT_TRUE(std::filesystem::is_symlink(work_ / "link.onnx"));
  EXPECT_GT(std::filesystem::file_size(work_ / "target.onnx"), 1000u);
  std::filesystem::create_symlink("/proc/self/fd/1", work_ / "out");
  const Ended onnx = export_run({"--output", "out"});
  EXPECT_EQ(onnx.out.size(), std::filesystem::file_size(work_ / "target.onnx"));
  const Ended weights = export_run({"--output", "out", "--format", "safetensors"});
  EXPECT_NE(weights.out.find("\"dtype\""), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_symlink(work_ / "out"));
  export_run({"--output", "out", "--check"}, 64);
}

TEST_F(ExportTest, SafetensorsHoldTheWeightsUnderTheirNames) {
  export_run({"--output", "weights.safetensors"});
  const Ended listed = run({"import", "weights.safetensors", "--model", "small_cnn"}, work_.path());
  const Ended own = run({"import", "run/checkpoints/best/model.safetensors"}, work_.path());
  const Ended exported = run({"import", "weights.safetensors"}, work_.path());
  EXPECT_EQ(exported.out, own.out);
  EXPECT_NE(content_of_file(work_ / "weights.safetensors").find("class_names"), std::string::npos);
  EXPECT_FALSE(has("weights.vectors.safetensors"));
}

TEST_F(ExportTest, WhatAKilledOneLeftGoesWithTheNext) {
  std::vector<std::string> left = {"run/export/model.onnx.tmp-999999",  // no process has this number
                                   "run/export/model.vectors.safetensors.tmp-999999", "w.safetensors.tmp-999999"};
  if (kHasChecker) left.emplace_back("tmp/stoker-check.tmp-999999/x");
  for (const std::string& path : left) work_.write(path, "half of a");
  Launch launch;
  launch.directory = work_.path();
  launch.variables = {"TMPDIR=" + work_ / "tmp"};
  for (const Words& words : {Words{"export", "run"}, Words{"export", "run", "-o", "w.safetensors"}}) {
    launch.words = words;
    if (kHasChecker && words.size() == 2) launch.words.emplace_back("--check");
    const Ended ended = run(launch);
    EXPECT_EQ(ended.exit_code, 0) << story_of(launch.words, ended);
  }
  for (const std::string& path : left) EXPECT_FALSE(has(path)) << path;
}

TEST_F(ExportTest, RefusesWhatItCannotWrite) {
  EXPECT_NE(export_run({"-o", "a.tflite"}, 64).err.find("unknown file extension"), std::string::npos);
  EXPECT_NE(export_run({"-o", "a.safetensors", "--check"}, 64).err.find("weights alone"), std::string::npos);
  export_run({"--format", "tflite"}, 64);
  const std::string manifest = content_of_file(work_ / "run/checkpoints/step-00000008/manifest.json");
  const size_t begin = manifest.find("\"preprocess.json\""), end = manifest.find('}', begin);
  std::string without = manifest;
  without.erase(begin, manifest.find('"', end) - begin);
  work_.write("run/checkpoints/step-00000008/manifest.json", without);
  EXPECT_NE(export_run({"--which", "last"}, 65).err.find("has no preprocess.json"), std::string::npos);
}

/// Sets every running variance in a file of safetensors. Those of a fresh network leave nothing of an image: all
/// predictions are alike, whatever a reader makes of the file.
void set_running_variances(const std::string& path, float variance) {
  std::string bytes = content_of_file(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::string header = bytes.substr(sizeof length, length), offsets = "\"data_offsets\":[";
  size_t changed = 0;
  for (size_t at = header.find("running_var"); at != std::string::npos; at = header.find("running_var", at + 1)) {
    size_t begin = 0, end = 0;
    const size_t place = header.find(offsets, at) + offsets.size();
    ASSERT_EQ(std::sscanf(header.c_str() + place, "%zu,%zu", &begin, &end), 2) << header.substr(at, 100);
    for (; begin < end; begin += sizeof variance, ++changed) {
      std::memcpy(bytes.data() + sizeof length + length + begin, &variance, sizeof variance);
    }
  }
  ASSERT_GT(changed, 0u);
  std::ofstream(path, std::ios::binary) << bytes;
}

/// One update of a network on made-up images, then its export in the eyes of OpenCV, on the images it was trained on.
class NetworkExportTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_agreement(const Workplace& work) {
    const Words words = {"export", "run", "data/val", "--check"};
    const Ended exported = run(words, work.path());
    EXPECT_EQ(exported.exit_code, 0) << story_of(words, exported);
    EXPECT_NE(exported.err.find("agrees on 8 samples"), std::string::npos) << exported.err;
  }
};

TEST_P(NetworkExportTest, OpenCvAgreesWithinTenThousandth) {
  if (!kHasChecker) GTEST_SKIP() << "built without OpenCV's dnn";
  const Workplace work;
  write_folders(work);
  const Words trained = {"--data-dir",
                         "data",
                         "--model",
                         GetParam(),
                         "--img-size",
                         "64",
                         "--epochs",
                         "1",
                         "--threads",
                         "1",
                         "--num-workers",
                         "1",
                         "--batch-size",
                         "4",
                         "--device",
                         "cpu",
                         "--run-dir",
                         "run",
                         "--no-amp",
                         "--max-updates",
                         "1",
                         "--no-space-check"};
  const Ended ended = run(trained, work.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(trained, ended);
  if (std::string(GetParam()) != "mobilenet_v3_small") return expect_agreement(work);
  fs::copy_file(work / "run/checkpoints/last/model.safetensors", work / "weights.safetensors");
  set_running_variances(work / "weights.safetensors", 0.15F);
  fs::remove_all(work / "run");
  Words again = trained;
  again.insert(again.end(), {"--init-from", "weights.safetensors", "--freeze", "*,!classifier.3"});
  const Ended second = run(again, work.path());
  ASSERT_EQ(second.exit_code, 0) << story_of(again, second);
  expect_agreement(work);
}

// OpenCV 4.6 cannot run the files of ConvNeXt and ViT; 4.10 can.
INSTANTIATE_TEST_SUITE_P(Networks, NetworkExportTest,
                         ::testing::Values("resnet18", "resnet9", "tiny_cnn", "mobilenet_v3_small", "mobilenet_v2",
                                           "densenet121", "regnet_y_400mf"));

}  // namespace
}  // namespace stoker::cli
