// SPDX-License-Identifier: Apache-2.0
#include "weights/names/known_weights.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "core/hash.h"
#include "core/system/file.h"
#include "engine/saved/safetensors.h"
#include "model/model.h"
#include "model/names.h"
#include "tests/temporary_directory.h"
#include "weights/load/pretrained.h"

namespace stoker::weights {
namespace {

namespace fs = std::filesystem;

/// A machine whose caches lie in one folder, and nowhere else.
class KnownWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name :
         {"TORCH_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "STOKER_WEIGHTS"}) {
      ::unsetenv(name);
    }
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  /// A file that is `days` old.
  std::string put(const std::string& path, int days, const std::string& content = "x") {
    const std::string whole = folder_.write(path, content);
    fs::last_write_time(whole, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
    return whole;
  }
  /// As huggingface_hub leaves a file: a link to a blob that is named by its SHA-256.
  std::string put_blob(const std::string& repository, const std::string& revision, int days, const std::string& blob,
                       const std::string& content = "x") {
    const std::string base = "cache/huggingface/hub/models--" + repository;
    put(base + "/blobs/" + blob, days, content);
    fs::create_directories(folder_ / (base + "/snapshots/" + revision));
    const std::string link = folder_ / (base + "/snapshots/" + revision + "/model.safetensors");
    fs::create_symlink("../../blobs/" + blob, link);
    return link;
  }
  std::vector<std::string> found(const std::string& name, const std::string& network = "resnet50") {
    return find_local_weights(name, network).files;
  }

  const fixtures::TemporaryDirectory folder_;
};

using Names = std::vector<std::string>;

TEST_F(KnownWeightsTest, ANameFindsTheFilesOfBothCachesAndOfTheUserNewestFirst) {
  const std::string torch = put("cache/torch/hub/checkpoints/resnet50-11ad3fa6.pth", 3);
  const std::string first = put("cache/torch/hub/checkpoints/resnet50-0676ba61.pth", 5);
  const std::string timm = put_blob("timm--resnet50.a1_in1k", "abc", 2, std::string(64, 'a'));
  const std::string microsoft = put_blob("microsoft--resnet-50", "def", 4, std::string(64, 'b'));
  put("cache/torch/hub/checkpoints/resnet50d_ra2-464e36ba.pth", 1);  // other networks
  put("cache/torch/hub/checkpoints/wide_resnet50_2-95faca4d.pth", 1);
  put_blob("timm--resnet50d.ra2_in1k", "abc", 1, std::string(64, 'c'));
  put("cache/torch/hub/checkpoints/resnet50.txt", 1);
  ::setenv("STOKER_WEIGHTS", (folder_ / "mine").c_str(), 1);
  const std::string mine = put("mine/resnet50.a2_in1k/model.safetensors", 1);

  EXPECT_EQ(found("resnet50"), (Names{mine, timm, torch, microsoft, first}));
  EXPECT_EQ(found("resnet50.a1_in1k"), Names{timm});
  EXPECT_EQ(found("timm/resnet50.a1_in1k"), Names{timm});
  EXPECT_EQ(found("hf-hub:timm/resnet50.a1_in1k"), Names{timm});
  EXPECT_EQ(found("microsoft/resnet-50"), Names{microsoft});
  EXPECT_EQ(found("IMAGENET1K_V1"), Names{first});
  EXPECT_EQ(found("IMAGENET1K_V2"), Names{torch});
  EXPECT_EQ(found("resnet50-11ad3fa6.pth"), Names{torch});
  EXPECT_EQ(found(folder_ / "mine"), Names{mine}) << "a folder has the files of any name";
  EXPECT_EQ(found("resnet18", "resnet18"), Names{});
}

TEST_F(KnownWeightsTest, VariablesOfPyTorchAndHuggingFaceMoveTheirCaches) {
  const std::string torch = put("t/hub/checkpoints/vit_b_16-c867db91.pth", 1);
  const std::string home = put("h/hub/models--google--vit-base-patch16-224/snapshots/1/model.safetensors", 2);
  const std::string cache = put("c/models--timm--vit_base_patch16_224.augreg_in1k/snapshots/1/pytorch_model.bin", 3);
  ::setenv("TORCH_HOME", (folder_ / "t").c_str(), 1);
  EXPECT_EQ(found("vit_b_16", "vit_b_16"), Names{torch});
  ::setenv("HF_HOME", (folder_ / "h").c_str(), 1);
  EXPECT_EQ(found("vit_b_16", "vit_b_16"), (Names{torch, home}));
  ::setenv("HF_HUB_CACHE", (folder_ / "c").c_str(), 1);
  EXPECT_EQ(found("vit_b_16", "vit_b_16"), (Names{torch, cache}));
}

TEST_F(KnownWeightsTest, UnfinishedDownloadsAreNoWeightsAndAreNamed) {
  put("cache/torch/hub/checkpoints/resnet50-11ad3fa6.pth.0b1c.partial", 1);
  put("cache/huggingface/hub/models--timm--resnet50.a1_in1k/blobs/abc.incomplete", 1);
  fs::remove(fs::canonical(put_blob("timm--resnet50.a2_in1k", "abc", 1, std::string(64, 'a'))));
  const LocalWeights local = find_local_weights("resnet50", "resnet50");
  EXPECT_EQ(local.files, Names{});
  EXPECT_EQ(local.unfinished.size(), 3u);
}

TEST_F(KnownWeightsTest, TheDigitsOfANameMustBeThoseOfTheContent) {
  const std::string sha = core::sha256_hex("x");
  const auto mismatch = [&](const std::string& name) { return mismatch_of_name(put(name, 1), sha); };
  EXPECT_EQ(mismatch("net-" + sha.substr(0, 8) + ".pth"), "");
  EXPECT_NE(mismatch("net-11ad3fa6.pth"), "");
  EXPECT_EQ(mismatch("net-20240131.pth"), "") << "a date";
  EXPECT_EQ(mismatch("net.pth"), "");
  EXPECT_EQ(mismatch_of_name(put_blob("a--b", "1", 1, sha), sha), "");
  EXPECT_NE(mismatch_of_name(put_blob("a--c", "1", 1, std::string(64, 'a')), sha), "");
  EXPECT_EQ(mismatch_of_name(put("efficientnet_b0_rwightman-3dd342df.pth", 1),
                             "7f5810bc96def8f7552d5b7e68d53c4786f81167d28291b21c0d90e1fca14934"),
            "")
      << "replaced at its address under the old name";
}

TEST_F(KnownWeightsTest, EveryNetworkOfOtherLibrariesHasAWayToFetchItsWeights) {
  for (const std::string& name : model::model_names()) {
    const bool is_own = name.find("_cnn") != std::string::npos || name == "resnet9" || name == "two_stream_convlstm";
    EXPECT_EQ(ways_to_fetch(name, name, "").empty(), is_own) << name;
  }
  EXPECT_EQ(ways_to_fetch("IMAGENET1K_V2", "resnet50", "cache"),
            Names{"IMAGENET1K_V2, 102.5 MB, SHA-256 11ad3fa62ca79e40addfd354a8ec4b7c75143b3038b8d2a807fbc68deab379ca: "
                  "curl -L --create-dirs -o cache/resnet50-11ad3fa6.pth "
                  "https://download.pytorch.org/models/resnet50-11ad3fa6.pth"});
  EXPECT_EQ(ways_to_fetch("resnet50.a1h_in1k", "resnet50", ""),
            Names{"curl -L --create-dirs -o resnet50.a1h_in1k/model.safetensors "
                  "https://huggingface.co/timm/resnet50.a1h_in1k/resolve/main/model.safetensors"});
}

TEST_F(KnownWeightsTest, WhatAPrintedCommandFetchesIsFoundUnderTheSameName) {
  const auto path_of = [](const std::string& way) {
    const size_t begin = way.find(" -o ") + 4;
    return way.substr(begin, way.find(' ', begin) - begin);
  };
  int looked_for = 0;
  const auto expect_found = [&](const std::string& name, const std::string& network) {
    for (const std::string& way : ways_to_fetch(name, network, "cache/torch/hub/checkpoints")) {
      const std::string file = put(path_of(way), 1);
      EXPECT_EQ(found(name, network), Names{file}) << name << ": " << way;
      fs::remove(file);
      ++looked_for;
    }
  };
  for (const std::string& network : model::model_names()) expect_found(network, network);
  for (const char* const name : {"timm/resnet18.a1_in1k", "hf-hub:timm/resnet18.a1_in1k", "resnet18.a1_in1k",
                                 "microsoft/resnet-18", "IMAGENET1K_V1"}) {
    expect_found(name, "resnet18");
  }
  EXPECT_GT(looked_for, 60);
  put(path_of(ways_to_fetch("somebody/resnet-18", "resnet18", "cache/torch/hub/checkpoints").at(0)), 1);
  EXPECT_EQ(found("microsoft/resnet-18", "resnet18"), Names{}) << "of another owner";
}

TEST_F(KnownWeightsTest, WeightsOfAnotherNetworkAreNamedWithTheNetworkThatTheyFit) {
  EXPECT_EQ(network_of_name("resnet50"), "resnet50");
  EXPECT_EQ(network_of_name("timm/vit_small_patch16_224.augreg_in21k_ft_in1k"), "vit_s_16");
  EXPECT_EQ(network_of_name("hf-hub:microsoft/resnet-50"), "resnet50");
  EXPECT_EQ(network_of_name("wide_resnet50_2-95faca4d.pth"), "wide_resnet50_2");
  EXPECT_EQ(network_of_name("IMAGENET1K_V1"), "");
  EXPECT_EQ(network_of_name("resnet50d.ra2_in1k"), "");
  for (const char* const name : {"resnet50", "timm/resnet50.a1_in1k", "microsoft/resnet-50"}) {
    try {
      require_local_weights(name, "resnet18");
      FAIL() << name;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
      EXPECT_NE(std::string(error.what()).find("weights of resnet50, which do not fit resnet18"), std::string::npos)
          << error.what();
      EXPECT_NE(error.hint().find("--model resnet50"), std::string::npos) << error.hint();
      EXPECT_NE(error.hint().find("--init-from resnet18"), std::string::npos) << error.hint();
      EXPECT_EQ(error.hint().find("curl"), std::string::npos) << error.hint();
    }
  }
}

TEST_F(KnownWeightsTest, TheNewestThatFitsIsLoadedAndTheOthersAreNamed) {
  model::ModelSpec spec;
  spec.name = "mobilenet_v3_small";
  spec.num_classes = 5;
  const auto source = model::make_model(spec), target = model::make_model(spec);
  const std::string name = "mobilenet_v3_small", base = "cache/torch/hub/checkpoints/" + name;
  const auto write = [&](const std::string& path, int days, const model::ImageModel& network) {
    put(path, days);
    engine::write_safetensors(folder_ / (path + ".new"), model::state_of(network));
    fs::rename(folder_ / (path + ".new"), folder_ / path);
    fs::last_write_time(folder_ / path, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  };
  write(base + "_old.safetensors", 9, *target);
  write(base + "_mine.safetensors", 7, *source);
  spec.name = "mobilenet_v3_large";
  write(base + "_wrong.safetensors", 5, *model::make_model(spec));
  write(base + "-11ad3fa6.safetensors", 3, *target);
  put(base + "_cut.safetensors", 1,
      core::read_file(folder_ / (base + "_mine.safetensors"), 1 << 30).substr(0, 1'000'000));
  const LoadedWeights loaded = load_by_name(*target, name, "", name);
  EXPECT_EQ(loaded.file, folder_ / (base + "_mine.safetensors"));
  EXPECT_EQ(loaded.sha256, core::sha256_hex(core::read_file(loaded.file, 1 << 30)));
  EXPECT_TRUE(torch::equal(model::state_of(*source)[0].tensor, model::state_of(*target)[0].tensor));
  std::string report;
  for (const std::string& line : loaded.report) report += line + "\n";
  for (const char* const passed_over :
       {"_cut.safetensors: ", "_wrong.safetensors: ", "-11ad3fa6.safetensors: its SHA"}) {
    EXPECT_NE(report.find(name + passed_over), std::string::npos) << passed_over << "\n" << report;
  }
  EXPECT_NE(report.find("mobilenet_v3_small is " + loaded.file + ": the newest that fits, of 5 files"),
            std::string::npos)
      << report;
  fs::remove(loaded.file);
  fs::remove(folder_ / (base + "_old.safetensors"));
  try {
    load_by_name(*target, name, "", name);
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
    EXPECT_NE(std::string(error.what()).find("no weights of mobilenet_v3_small; looked into"), std::string::npos)
        << error.what();
    EXPECT_NE(error.hint().find("https://download.pytorch.org/models/mobilenet_v3_small-047dcff4.pth"),
              std::string::npos)
        << error.hint();
  }
}

}  // namespace
}  // namespace stoker::weights
