// SPDX-License-Identifier: Apache-2.0
#include "weights/load/pretrained.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/system/file.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/temporary_directory.h"
#include "tests/weights/made_pickle.h"

namespace stoker::weights {
namespace {

std::shared_ptr<model::ImageModel> network(int64_t classes) {
  model::ModelSpec spec;
  spec.name = "resnet18";
  spec.num_classes = classes;
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

std::string load(model::ImageModel& model, const std::string& path) {
  std::string all;
  for (const std::string& line : load_pretrained(model, "resnet18", "", path)) all += line + "\n";
  return all;
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
  const std::string said = load(*target, folder / "w.safetensors");
  EXPECT_NE(said.find("starts fresh: fc.weight and fc.bias"), std::string::npos) << said;
  EXPECT_EQ(differences(*source, *target), std::vector<std::string>{});
}

TEST(PretrainedTest, RefusesAnotherArchitecture) {
  const fixtures::TemporaryDirectory folder;
  model::ModelSpec other;
  other.name = "resnet34";
  engine::write_safetensors(folder / "w.safetensors", model::state_of(*model::make_model(other)));
  EXPECT_THROW(load(*network(10), folder / "w.safetensors"), core::Error);
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
