// SPDX-License-Identifier: Apache-2.0
// Reads good files: every layout that torch.save() has had, and the names, shapes and bytes in it.
#include "weights/file/weight_file.h"

#include <gtest/gtest.h>

#include "tests/weights/file/refusal.h"

namespace stoker::weights {
namespace {

using fixtures::all_storages;
using fixtures::made_zip;
using fixtures::MadeMember;
using fixtures::MadePickle;
using fixtures::MadeTensor;
using fixtures::opened;
using fixtures::state_dict_pickle;
using fixtures::two_numbers;

std::string names_of(const WeightFile& file) {
  std::string names;
  for (const StoredTensor& tensor : file.tensors)
    names += (tensor.group.empty() ? "" : tensor.group + ":") + tensor.name + " ";
  return names;
}

TEST(WeightFileTest, ReadsTheNewerLayoutOfEveryRelease) {
  const std::string pickle = state_dict_pickle({two_numbers()});
  MadeMember plain{"m/data/0", "abcdefgh"}, padded = plain, deflated = plain, large = plain, unsummed = plain;
  padded.padding = 37;
  deflated.deflated = true;
  large.zip64 = true;
  unsummed.checksum = false;
  for (const MadeMember& storage : {plain, padded, deflated, large, unsummed}) {
    for (const bool zip64_end : {false, true}) {
      // The records of a current PyTorch: names, order, no new line behind the version.
      const std::string bytes = made_zip({{"m/data.pkl", pickle},
                                          {"m/.format_version", "1"},
                                          {"m/.storage_alignment", "64"},
                                          {"m/byteorder", "little"},
                                          storage,
                                          {"m/version", "3\n"},
                                          {"m/.data/serialization_id", "0636067131894917"}},
                                         zip64_end);
      const WeightFile file = opened(bytes);
      EXPECT_EQ(file.format, "PyTorch zip archive");
      EXPECT_EQ(names_of(file), "a ");
      EXPECT_EQ(all_storages(file), "abcdefgh");
    }
  }
}

TEST(WeightFileTest, ReadsTheOlderLayout) {
  MadeTensor second{"b", NumberType::i64, {}, {}, "12345678"};
  const WeightFile file = opened(fixtures::torch_legacy_file({two_numbers(), second}));
  EXPECT_EQ(file.format, "PyTorch file of before 1.6");
  EXPECT_EQ(names_of(file), "a b ");
  EXPECT_EQ(file.tensors[1].type, NumberType::i64);
  EXPECT_EQ(file.tensors[1].count(), 1u);
  EXPECT_EQ(all_storages(file), "abcdefgh12345678");
}

TEST(WeightFileTest, KnowsTypesShapesStridesAndOffsets) {
  std::vector<MadeTensor> tensors;
  for (int type = 0; type <= static_cast<int>(NumberType::boolean); ++type) {
    const auto number_type = static_cast<NumberType>(type);
    tensors.push_back(
        {"t" + std::to_string(type), number_type, {2, 3}, {1, 2}, std::string(7 * bytes_of(number_type), 'x')});
    tensors.back().offset = 1;
  }
  const WeightFile file = opened(fixtures::torch_zip_file(tensors));
  ASSERT_EQ(file.tensors.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(file.tensors[i].type, static_cast<NumberType>(i));
    EXPECT_EQ(file.tensors[i].shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(file.tensors[i].strides, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(file.tensors[i].offset, 1u);
    EXPECT_EQ(file.storages[file.tensors[i].storage].bytes, 7 * bytes_of(file.tensors[i].type));
  }
}

TEST(WeightFileTest, TensorsThatShareAStorageReadItOnce) {
  MadeTensor first = two_numbers(), second = two_numbers();
  second.name = "b";
  const std::string bytes = made_zip({{"w/data.pkl", state_dict_pickle({first, second})}, {"w/data/0", "abcdefgh"}});
  const WeightFile file = opened(bytes);
  EXPECT_EQ(file.storages.size(), 1u);
  EXPECT_EQ(file.tensors[1].storage, 0u);
}

TEST(WeightFileTest, DictionariesAroundTensorsAreTheirGroup) {
  MadePickle pickle;
  pickle.op("}").text("epoch").integer(3).op("s").text("best").op("G" + std::string(8, '\0') + "s");
  pickle.text("state_dict").op("}").text("a").tensor(two_numbers()).op("ss");
  pickle.text("optimizer")
      .op("}")
      .text("state")
      .op("}")
      .integer(0)
      .op("}")
      .text("momentum")
      .tensor(two_numbers())
      .op("ssss");
  EXPECT_EQ(names_of(opened(fixtures::zip_around(pickle.done()))), "state_dict:a optimizer.state.0:momentum ");
}

TEST(WeightFileTest, ALaterItemOfTheSameNameCounts) {
  MadeTensor later = two_numbers();
  later.shape = {1};
  MadePickle pickle;
  pickle.op("}(").text("a").tensor(two_numbers()).text("a").tensor(later).op("u");
  const WeightFile file = opened(fixtures::zip_around(pickle.done()));
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].shape, std::vector<int64_t>{1});
}

TEST(WeightFileTest, ParametersSizesDevicesAndItemsOfPython2AreUnderstood) {
  const std::string empty = MadePickle().global("collections", "OrderedDict").op(")R").bytes.substr(2);
  MadePickle pickle;
  pickle.global("collections", "OrderedDict")
      .op("(](](")
      .text("a")
      .global("torch._utils", "_rebuild_parameter")
      .op("(");
  pickle.tensor(two_numbers()).op("\x88" + empty + "tReetR");
  pickle.text("size").global("torch", "Size").op("(").tuple({2, 3}).op("tRs");
  pickle.text("device").global("torch", "device").op("(").text("cpu").op("tRs");
  pickle.text("type").global("torch", "float32").op("s").text("old").op("U").op(std::string("\1x", 2)).op("s");
  EXPECT_EQ(names_of(opened(fixtures::zip_around(pickle.done()))), "a ");
}

TEST(WeightFileTest, ReadsProtocol4WithFramesAndMemoizedNames) {
  std::string pickle("\x80\x04\x95", 3);
  pickle += fixtures::little_endian(200, 8);
  pickle += "}\x94" + std::string("\x8c\x01", 2) + "a\x94";
  pickle +=
      std::string("\x8c\x0c", 2) + "torch._utils\x94" + std::string("\x8c\x12", 2) + "_rebuild_tensor_v2\x94\x93\x94((";
  pickle += std::string("\x8c\x07", 2) + "storage" + std::string("\x8c\x05", 2) + "torch" + std::string("\x8c\x0c", 2) +
            "FloatStorage\x93" + std::string("\x8c\x01", 2) + "0" + std::string("\x8c\x03", 2) + "cpuK\x02tQ" +
            std::string("K\0", 2) + "K\x02\x85K\x01\x85\x89NtRs.";
  EXPECT_EQ(names_of(opened(fixtures::zip_around(pickle))), "a ");
}

}  // namespace
}  // namespace stoker::weights
