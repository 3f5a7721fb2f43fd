// SPDX-License-Identifier: Apache-2.0
#include "weights/load/pretrained.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/system/file.h"
#include "engine/saved/safetensors.h"
#include "model/model.h"
#include "tests/temporary_directory.h"
#include "tests/weights/made_pickle.h"
#include "weights/load/fitting.h"

namespace stoker::weights {
namespace {

std::shared_ptr<model::ImageModel> network(int64_t classes, int64_t channels = 3, const char* name = "resnet18",
                                           config::ImageSize img_size = {64, 64}) {
  model::ModelSpec spec;
  spec.name = name;
  spec.num_classes = classes;
  spec.in_chans = channels;
  spec.img_size = img_size;
  spec.backbone = "mobilenet_v3_small";
  return model::make_model(spec);
}

std::vector<fixtures::MadeTensor> made_state(const model::ImageModel& model, const std::string& prefix = "") {
  std::vector<fixtures::MadeTensor> tensors;
  for (const model::NamedTensor& entry : model::state_of(model)) {
    const torch::Tensor plain = entry.tensor.detach().contiguous();
    fixtures::MadeTensor made;
    made.name = prefix + entry.name;
    made.type = plain.scalar_type() == at::kLong ? NumberType::i64 : NumberType::f32;
    made.shape = plain.sizes().vec();
    made.storage.assign(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
    tensors.push_back(made);
  }
  return tensors;
}

std::string joined(const PretrainedReport& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

std::string load(model::ImageModel& model, const std::string& path, const char* name = "resnet18") {
  return joined(load_pretrained(model, name, "mobilenet_v3_small", path));
}

torch::Tensor tensor_of(const model::ImageModel& model, const std::string& name) {
  for (const model::NamedTensor& entry : model::state_of(model)) {
    if (entry.name == name) return entry.tensor;
  }
  throw std::out_of_range(name);
}

/// Names of tensors that differ, but for the classifier's.
std::vector<std::string> differences(const model::ImageModel& one, const model::ImageModel& other) {
  const auto a = model::state_of(one), b = model::state_of(other);
  std::vector<std::string> names;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].name.rfind("fc.", 0) != 0 && !torch::equal(a[i].tensor, b[i].tensor)) names.push_back(a[i].name);
  }
  return names;
}

TEST(PretrainedTest, ReplacesOnlyTheClassifierAndSaysSo) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(1000), target = network(7);
  engine::write_safetensors(folder / "w.safetensors", model::state_of(*source));
  const std::string report = load(*target, folder / "w.safetensors");
  EXPECT_NE(report.find("is randomly initialised: fc.weight and fc.bias"), std::string::npos) << report;
  EXPECT_EQ(differences(*source, *target), std::vector<std::string>{});
}

/// Rows of a classifier of three classes in one of as many or more: -1 is one that the file does not have.
TEST(PretrainedTest, RowsOfTheClassifierFollowTheNamesOfClassesAndOthersAreFresh) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(3);
  engine::write_safetensors(folder / "w", model::state_of(*source));
  const std::string other = "the classifier is of other classes in the file and is randomly initialised: fc.weight";
  struct Case {
    std::vector<int64_t> rows;
    int64_t classes;
    std::string line;
  };
  for (const Case& each : {Case{{2, -1, 0, -1}, 3, "classifier: 2 of 4 classes match by name"},
                           Case{{1, 0, 2}, 3, "classifier: 3 of 3 classes match by name"}, Case{{-1, -1, -1}, 3, other},
                           Case{{1, -1, 0}, 4, other}}) {  // of four classes in three rows nothing is known
    const auto target = network(static_cast<int64_t>(each.rows.size()));
    StartOptions start;
    start.head_rows = each.rows;
    start.head_classes = each.classes;
    const auto names = {"fc.weight", "fc.bias"};
    std::vector<torch::Tensor> fresh;
    for (const char* const name : names) fresh.push_back(tensor_of(*target, name).clone());
    const std::string report = joined(load_pretrained(*target, "resnet18", "", folder / "w", start));
    EXPECT_NE(report.find(each.line), std::string::npos) << report;
    for (size_t row = 0; row < each.rows.size(); ++row) {
      const int64_t from = each.line == other ? -1 : each.rows[row];
      auto before = fresh.begin();
      for (const char* const name : names) {
        const torch::Tensor wanted = from < 0 ? (*before)[row] : tensor_of(*source, name)[from];
        EXPECT_TRUE(torch::equal(tensor_of(*target, name)[row], wanted)) << name << " of class " << row;
        ++before;
      }
    }
  }
}

/// Five outputs, of which three have names.
TEST(PretrainedTest, OutputsThatNoClassHasStayWithTheClassifier) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(5);
  engine::write_safetensors(folder / "w", model::state_of(*source));
  for (const int64_t outputs : {3, 5, 7}) {
    const auto target = network(outputs);
    StartOptions start;
    for (int64_t i = 0; i < outputs; ++i) start.head_rows.push_back(i);
    start.head_classes = 3;
    const std::string report = joined(load_pretrained(*target, "resnet18", "", folder / "w", start));
    EXPECT_EQ(report.find("randomly initialised: fc"), std::string::npos) << report;
    for (int64_t row = 0; row < std::min<int64_t>(outputs, 5); ++row) {
      EXPECT_TRUE(torch::equal(tensor_of(*target, "fc.weight")[row], tensor_of(*source, "fc.weight")[row])) << row;
    }
  }
}

/// One score for two classes, 99 bins for three angles.
TEST(PretrainedTest, OutputsThatAreNotOneForEachNameStayWhereAllNamesAreTheSame) {
  for (const auto& [outputs, names] : {std::pair<int64_t, int64_t>(1, 2), {99, 3}}) {
    const fixtures::TemporaryDirectory folder;
    const auto source = network(outputs), target = network(outputs);
    engine::write_safetensors(folder / "w", model::state_of(*source));
    StartOptions start;
    for (int64_t i = 0; i < names; ++i) start.head_rows.push_back(i);
    start.head_classes = names;
    const std::string report = joined(load_pretrained(*target, "resnet18", "", folder / "w", start));
    EXPECT_EQ(report.find("randomly initialised"), std::string::npos) << report;
    EXPECT_TRUE(torch::equal(tensor_of(*target, "fc.weight"), tensor_of(*source, "fc.weight")));
  }
}

TEST(PretrainedTest, AClassifierWithoutNamesOfClassesIsTakenOverWithANote) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(3), target = network(3);
  engine::write_safetensors(folder / "w", model::state_of(*source));
  StartOptions start;
  const std::string note = "taken over output by output: the file names no classes";
  const std::string report = joined(load_pretrained(*target, "resnet18", "", folder / "w", start));
  EXPECT_NE(report.find(note), std::string::npos) << report;
  EXPECT_TRUE(torch::equal(tensor_of(*target, "fc.weight"), tensor_of(*source, "fc.weight")));
  start.head_classes = 3;  // as names of classes that are ours
  EXPECT_EQ(joined(load_pretrained(*target, "resnet18", "", folder / "w", start)).find(note), std::string::npos);
}

TEST(PretrainedTest, AFreshHeadKeepsNothingOfTheClassifier) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(3), target = network(3);
  engine::write_safetensors(folder / "w", model::state_of(*source));
  const torch::Tensor fresh = tensor_of(*target, "fc.weight").clone();
  StartOptions start;
  start.fresh_head = true;
  const std::string report = joined(load_pretrained(*target, "resnet18", "", folder / "w", start));
  EXPECT_NE(report.find("(--fresh-head): fc.weight and fc.bias"), std::string::npos) << report;
  EXPECT_TRUE(torch::equal(tensor_of(*target, "fc.weight"), fresh));
  EXPECT_EQ(differences(*source, *target), std::vector<std::string>{});
}

TEST(PretrainedTest, RefusesAnotherArchitecture) {
  const fixtures::TemporaryDirectory folder;
  model::ModelSpec other;
  other.name = "resnet34";
  engine::write_safetensors(folder / "w.safetensors", model::state_of(*model::make_model(other)));
  EXPECT_THROW(load(*network(10), folder / "w.safetensors"), core::Error);
}

TEST(PretrainedTest, SaysWhereTheWeightsCameFrom) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4), target = network(4);
  core::write_file_atomically(folder / "w.pth", fixtures::torch_zip_file(made_state(*source, "module.")), false);
  EXPECT_EQ(load(*target, folder / "w.pth"),
            "122 tensors from " + folder / "w.pth" +
                " (PyTorch zip archive, names of torchvision and timm, without module.)\n"
                "the classifier is taken over output by output: the file names no classes (--fresh-head starts at "
                "random)\n");
}

TEST(PretrainedTest, AFileOfAnotherNetworkIsRefusedWithItsNames) {
  const fixtures::TemporaryDirectory folder;
  engine::write_safetensors(folder / "w", model::state_of(*network(4, 3, "small_cnn")));
  try {
    load(*network(4), folder / "w");
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_NE(std::string(error.what()).find("tensors have names of resnet18, of the supported libraries; it has "),
              std::string::npos)
        << error.what();
  }
}

TEST(PretrainedTest, GrayImagesSumTheChannelsOfRgbWeights) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4), gray = network(4, 1), six = network(4, 6);
  engine::write_safetensors(folder / "w", model::state_of(*source));
  const std::string report = load(*gray, folder / "w");
  EXPECT_NE(report.find(
                "changed conv1.weight: its 3 input channels summed to 1: a gray picture in all of them gives the same "
                "where each was normalised by the mean and std of this run"),
            std::string::npos)
      << report;
  const torch::Tensor wanted = tensor_of(*source, "conv1.weight").sum(1, true);
  EXPECT_TRUE(torch::allclose(tensor_of(*gray, "conv1.weight"), wanted));
  load(*six, folder / "w");
  EXPECT_TRUE(torch::allclose(tensor_of(*six, "conv1.weight").sum(1, true), wanted, 1e-4, 1e-6))
      << "gray in all channels gives the same as before";
}

TEST(PretrainedTest, AViTTakesWeightsOfAnotherImageSize) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4, 3, "vit_s_16", {96, 96});
  const auto target = network(4, 3, "vit_s_16", {64, 64}), wide = network(4, 3, "vit_s_16", {64, 128});
  {
    const torch::NoGradGuard no_gradients;  // what rises evenly is resampled to what rises evenly, away from the border
    const torch::Tensor rows = torch::arange(6.0).reshape({6, 1, 1}).expand({6, 6, 384}).reshape({1, 36, 384});
    tensor_of(*source, "encoder.pos_embedding").slice(1, 1).copy_(rows);
  }
  engine::write_safetensors(folder / "w", model::state_of(*source));
  const std::string report = load(*target, folder / "w", "vit_s_16");
  EXPECT_NE(report.find("encoder.pos_embedding: resampled from 36 to 16 positions"), std::string::npos) << report;
  const torch::Tensor positions = tensor_of(*target, "encoder.pos_embedding");
  EXPECT_TRUE(torch::equal(positions.slice(1, 0, 1), tensor_of(*source, "encoder.pos_embedding").slice(1, 0, 1)));
  const torch::Tensor grid = positions.slice(1, 1).reshape({4, 4, 384});
  // Golden: torch.nn.functional.interpolate(mode="bicubic", antialias=True) of PyTorch 1.13.
  const torch::Tensor wanted = torch::tensor({0.288025, 1.709035, 3.290964, 4.711974}, at::kFloat).reshape({4, 1, 1});
  EXPECT_TRUE(torch::allclose(grid, wanted.expand({4, 4, 384}), 1e-4, 1e-4)) << grid.slice(2, 0, 1);
  load(*wide, folder / "w", "vit_s_16");
  const torch::Tensor wide_grid = tensor_of(*wide, "encoder.pos_embedding").slice(1, 1).reshape({4, 8, 384});
  EXPECT_TRUE(torch::allclose(wide_grid, wanted.expand({4, 8, 384}), 1e-4, 1e-4)) << "rows rise, columns do not";
}

TEST(PretrainedTest, BothBackbonesOfATwoStreamNetworkTakeWeightsOfTheirKind) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(1000, 3, "mobilenet_v3_small"), target = network(2, 3, "two_stream_convlstm");
  engine::write_safetensors(folder / "w", model::state_of(*source));
  const std::string report = load(*target, folder / "w", "two_stream_convlstm");
  EXPECT_NE(report.find("loaded into 2 backbones"), std::string::npos) << report;
  EXPECT_NE(report.find("left out: classifier.0.bias"), std::string::npos) << report;
  for (const char* name : {"features.0.0.weight", "features.12.1.running_var"}) {
    for (const char* stream : {"high_quality.backbone.", "low_quality.backbone."}) {
      EXPECT_TRUE(torch::equal(tensor_of(*target, std::string(stream) + name), tensor_of(*source, name))) << name;
    }
  }
  engine::write_safetensors(folder / "whole", model::state_of(*target));
  EXPECT_EQ(load(*network(2, 3, "two_stream_convlstm"), folder / "whole", "two_stream_convlstm").find("backbones"),
            std::string::npos)
      << "weights of the whole network are taken as they are";
}

TEST(PretrainedTest, BatchNormsOfAnotherEpsilonEvaluateAlike) {
  const torch::Tensor x = torch::linspace(-1, 1, 12).reshape({4, 3}), mean = torch::full({3}, 0.1);
  const torch::Tensor weight = torch::full({3}, 3.0), bias = torch::ones({3}), variance = torch::full({3}, 0.002);
  const auto norm = [&](const torch::Tensor& scale, double eps) {
    return torch::batch_norm(x, scale, bias, mean, variance, /*training=*/false, 0.1, eps, false);
  };
  EXPECT_TRUE(torch::allclose(norm(rescale_norm(weight, variance, 1e-5, 1e-3), 1e-3), norm(weight, 1e-5), 1e-5));
  EXPECT_FALSE(torch::allclose(norm(weight, 1e-3), norm(weight, 1e-5), 1e-2));
}

TEST(PretrainedTest, HalfNumbersAndViewsBecomeFloats) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4), target = network(4);
  std::vector<model::NamedTensor> half = model::state_of(*source);
  for (model::NamedTensor& entry : half) {
    if (entry.tensor.is_floating_point())
      entry.tensor = entry.tensor.to(entry.tensor.dim() == 4 ? at::kBFloat16 : at::kHalf);
  }
  engine::write_safetensors(folder / "w", half);
  load(*target, folder / "w");
  EXPECT_TRUE(torch::allclose(tensor_of(*target, "conv1.weight"), tensor_of(*source, "conv1.weight"), 0.01));
  EXPECT_TRUE(torch::allclose(tensor_of(*target, "fc.weight"), tensor_of(*source, "fc.weight"), 0.001, 1e-4));
  EXPECT_EQ(tensor_of(*target, "fc.weight").scalar_type(), at::kFloat);
}

TEST(PretrainedTest, AGivenEpsilonRescalesBatchNorms) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4), target = network(4);
  {
    const torch::NoGradGuard no_gradients;
    tensor_of(*source, "bn1.running_var").fill_(0.003);
    tensor_of(*source, "bn1.weight").fill_(2);
  }
  engine::write_safetensors(folder / "w", model::state_of(*source));
  StartOptions start;
  start.norm_eps = 1e-3;
  const std::string report = joined(load_pretrained(*target, "resnet18", "", folder / "w", start));
  EXPECT_NE(report.find("the weights of 20 batch norms, whose epsilon is 0.001 there and 1e-05 here"),
            std::string::npos)
      << report;
  const double wanted = 2 * std::sqrt((0.003 + 1e-5) / (0.003 + 1e-3));
  EXPECT_NEAR(tensor_of(*target, "bn1.weight")[0].item<double>(), wanted, 1e-6);
  EXPECT_TRUE(torch::equal(tensor_of(*target, "bn1.running_var"), tensor_of(*source, "bn1.running_var")));
}

TEST(PretrainedTest, CountersOfProfilersAreLeftOutByName) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4), target = network(4);
  std::vector<model::NamedTensor> tensors = model::state_of(*source);
  for (const char* const name : {"total_ops", "total_params", "layer1.0.conv1.total_ops", "fc.total_params"}) {
    tensors.push_back({name, torch::ones({1}, at::kDouble)});
  }
  engine::write_safetensors(folder / "w", tensors);
  const std::string report = load(*target, folder / "w");
  EXPECT_NE(report.find("left out: 4 counters of a profiler (total_ops, total_params)"), std::string::npos) << report;
  EXPECT_EQ(differences(*source, *target), std::vector<std::string>{});
}

TEST(PretrainedTest, OneOfSeveralFilesIsRefusedWithTheirIndex) {
  const fixtures::TemporaryDirectory folder;
  std::vector<model::NamedTensor> half = model::state_of(*network(4));
  half.resize(half.size() / 2);
  engine::write_safetensors(folder / "model-00001-of-00002.safetensors", half);
  try {
    load(*network(4), folder / "model-00001-of-00002.safetensors");
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_NE(error.hint().find("one of several: give the index"), std::string::npos) << error.hint();
  }
}

TEST(PretrainedTest, AnIndexNamesTheFilesThatHoldTheTensors) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4), target = network(4);
  const std::vector<model::NamedTensor> all = model::state_of(*source);
  std::vector<model::NamedTensor> parts[2];
  std::string map;
  for (size_t i = 0; i < all.size(); ++i) {
    parts[i % 2].push_back(all[i]);
    map += (i > 0 ? ",\"" : "\"") + all[i].name + "\":\"part-" + std::to_string(i % 2) + ".safetensors\"";
  }
  for (int i : {0, 1}) engine::write_safetensors(folder / ("part-" + std::to_string(i) + ".safetensors"), parts[i]);
  const std::string index = folder / "model.safetensors.index.json";
  core::write_file_atomically(index, R"({"metadata":{"total_size":1},"weight_map":{)" + map + "}}", false);
  load(*target, index);
  EXPECT_EQ(differences(*source, *target), std::vector<std::string>{});
  core::write_file_atomically(index, R"({"weight_map":{"fc.weight":"../part-0.safetensors"}})", false);
  EXPECT_THROW(load(*target, index), core::Error);
  core::write_file_atomically(index, R"({"weight_map":{"fc.weight":"part-9.safetensors"}})", false);
  EXPECT_THROW(load(*target, index), core::Error);
}

TEST(PretrainedTest, ReadsWhatTorchSaveWritesInBothLayouts) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(4);
  core::write_file_atomically(folder / "zip.pth", fixtures::torch_zip_file(made_state(*source)), false);
  core::write_file_atomically(folder / "old.pth", fixtures::torch_legacy_file(made_state(*source, "module.")), false);
  for (const char* name : {"zip.pth", "old.pth"}) {
    const auto target = network(4);
    load(*target, folder / name);
    EXPECT_EQ(differences(*source, *target), std::vector<std::string>{}) << name;
    EXPECT_TRUE(torch::equal(model::state_of(*source).at(61).tensor, model::state_of(*target).at(61).tensor)) << name;
  }
}

}  // namespace
}  // namespace stoker::weights
