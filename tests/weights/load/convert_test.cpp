// SPDX-License-Identifier: Apache-2.0
#include "weights/load/pretrained.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "model/model.h"
#include "tests/weights/file/refusal.h"

namespace stoker::weights {
namespace {

using fixtures::MadeTensor;
using fixtures::opened;

/// All tensors of a network, under other names where `rename` has a row for the start of a name.
WeightFile file_of(const model::ImageModel& model,
                   const std::vector<std::pair<std::string, std::string>>& rename = {}) {
  std::vector<MadeTensor> tensors;
  for (const model::NamedTensor& entry : model::state_of(model)) {
    const torch::Tensor plain = entry.tensor.detach().contiguous();
    MadeTensor made{
        entry.name, plain.scalar_type() == at::kLong ? NumberType::i64 : NumberType::f32, plain.sizes().vec(), {}, ""};
    made.storage.assign(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
    for (const auto& [ours, theirs] : rename) {
      if (made.name.rfind(ours, 0) == 0) made.name = theirs + made.name.substr(ours.size());
    }
    tensors.push_back(made);
  }
  return opened(fixtures::torch_zip_file(tensors));
}

std::shared_ptr<model::ImageModel> network(const char* name, int64_t classes, int64_t channels,
                                           int64_t img_size = 224) {
  model::ModelSpec spec;
  spec.name = name;
  spec.num_classes = classes;
  spec.in_chans = channels;
  spec.img_size = {img_size, img_size};
  return model::make_model(spec);
}

TEST(ConvertTest, ANetworkIsMadeWithTheClassesChannelsAndImageSizeOfTheFile) {
  const auto resnet = network("resnet18", 7, 1), vit = network("vit_s_16", 3, 3, 48);
  for (const auto& [name, model] : {std::pair("resnet18", resnet), std::pair("vit_s_16", vit)}) {
    const Conversion conversion = convert_for(name, file_of(*model, {{"", "module."}}));
    const auto wanted = model::state_of(*model);
    ASSERT_EQ(conversion.tensors.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(conversion.tensors[i].name, wanted[i].name);
      EXPECT_TRUE(torch::equal(conversion.tensors[i].tensor, wanted[i].tensor)) << wanted[i].name;
    }
  }
}

TEST(ConvertTest, AsTheyAreTensorsLoseOnlyThePrefixesOfWrappers) {
  MadeTensor half{"module.x", NumberType::f16, {2}, {}, "abcd"};
  half.strides = {1};
  const Conversion conversion = convert_as_is(opened(fixtures::torch_zip_file({half})));
  ASSERT_EQ(conversion.tensors.size(), 1u);
  EXPECT_EQ(conversion.tensors[0].name, "x");
  EXPECT_EQ(conversion.tensors[0].tensor.scalar_type(), at::kHalf);
}

TEST(ConvertTest, ANetworkThatIsNotInTheFileIsRefused) {
  const WeightFile file = file_of(*network("resnet18", 7, 1));
  EXPECT_THROW(convert_for("resnet34", file), core::Error);
  EXPECT_THROW(convert_for("two_stream_convlstm", file), core::Error);
  EXPECT_THROW(convert_for("no_such_network", file), core::Error);
}

TEST(ConvertTest, TheNetworkOfAFileIsFoundByNamesAndShapes) {
  EXPECT_EQ(networks_of(file_of(*network("resnet34", 7, 1))),
            std::vector<std::string>{"resnet34 (7 classes, 1 channels, names of torchvision and timm)"});
  EXPECT_EQ(networks_of(file_of(*network("small_cnn", 7, 1))), std::vector<std::string>{});
}

}  // namespace
}  // namespace stoker::weights
