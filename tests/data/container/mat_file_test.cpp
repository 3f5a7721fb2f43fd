// SPDX-License-Identifier: Apache-2.0
// MAT-files, and the head pose data that is annotated with them. Golden bytes were written by SciPy's
// savemat.
#include "data/container/mat_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "data/dataset/head_pose_file.h"
#include "data/open_datasets.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// From byte 116 on: 'roi' int16 [1, 4], 'Pose_Para' float32 [1, 7] (0.1, -0.5, 0.25, ...), 'pt2d' float64
/// [2, 4].
constexpr char kPlainMat[] =
    "00000000000000000001494d0e0000003800000006000000080000000a0000000000000005000000080000000100000004000000"
    "01000300726f69"
    "00030000000800000001000200030004000e00000060000000060000000800000007000000000000000500000008000000010000"
    "0007000000010000"
    "0009000000506f73655f5061726100000000000000070000001c000000cdcccc3d000000bf0000803e0000c84200004843000000"
    "006f12833a00000000"
    "0e000000700000000600000008000000060000000000000005000000080000000200000004000000010004007074326409000000"
    "4000000000000000"
    "000024400000000000003440000000000000f0bf000000000000f0bf000000000000494000000000000044400000000000003e40"
    "0000000000005440";
constexpr char kCompressedMat[] =
    "00000000000000000001494d0f0000002c000000789ce3636060b000623620e600622e06086085f2198198054c333314e5670249"
    "98381390cdc20000"
    "31c101d40f0000004b000000789ce36360604800623620e600627606086085f219a162209a138803f28b53e303128b12a1ea4072"
    "32407cf6cc195b20"
    "b59f81a1c18e81e1841303838733483e5fa8d90a4403008b300b320f0000003d000000789ce36360602800623620e680d220c00a"
    "e53301310b103302"
    "c98212a3144e20db81010654a04c1328fd613f2aed09157781d276503ac4010093d708c3";

/// Compressed, from byte 116 on: a text, sparse, three-dimensional and complex arrays, an empty one [0, 3],
/// booleans; each class of integers with its least and its greatest number; 'single', 'double' [2, 2]; cells
/// and a record.
constexpr char kKindsMat[] =
    "00000000000000000001494d0f0000002c000000789ce3636060b000623620e600621606086085f219a1728c409992d48a120128"
    "3f5101c4"
    "63600000458004930f0000003b000000789ce36360602800623620e6006256206682d21c5036083342d51417241615a722e419a0"
    "72203e0f"
    "129f09cae60462010618f8600fa301130005d30f0000002d000000789ce3636060a800623620e680d220c00ac43c40cc84844180"
    "91818521"
    "b934299513c87660a01c0000e16c029f0f0000002c000000789ce3636060f000623620e600d120020858a17c46386661284f2c4b"
    "e5848a43"
    "c0077b543e830300781b03cb0f00000026000000789ce36360603000623620e680d220c00ae5830033103332b030e4e5e7a57242"
    "c500248a"
    "02210f0000002b000000789ce3636060b000623620e600624e2606306085f2198198094a83c44a8a4a4b32c0624c60310037d202"
    "b20f0000"
    "0029000000789ce36360603000623620e68062106085b2198198094cb33064e695583002790df50c0c00268702ef0f0000002c00"
    "0000789c"
    "e3636060b000623620e600624e06086085f2198198094a83c44a33f34a2cc06240d1ff0c0c003754036f0f0000002f000000789c"
    "e3636060"
    "b000623620e600622e06086085f2198198094a83c432f34a0ccd803433030b0343c3ff7a0034f8042c0f0000002f000000789ce3"
    "636060b0"
    "00623620e600626e06086085f2198198094a83d49466e695189a3130b0002103c3ffff0039e204a40f0000002e000000789ce363"
    "60607000"
    "623620e600621e06086085f2198198094a83c432f34a8c8d90e481a0e1fffffff500511306380f0000002d000000789ce3636060"
    "70006236"
    "20e600625e06086085f2198198094a83d49466e695181b21d483c07f20000058bf06b00f00000032000000789ce3636060f00062"
    "3620e600"
    "623e06086085f2198198094a83c432f34acc4c80340f100b30c041c37f08a8070083900a520f00000031000000789ce3636060f0"
    "00623620"
    "e600627e06086085f2198198094a83d49466e69598993030f002d9020c08f01f0a008cf70aca0f00000031000000789ce3636060"
    "70006236"
    "20e600627606086085f2198198094a83d41467e6a5e7a442d4714094ee7fb631b11e005f2c06420f00000045000000789ce36360"
    "60880062"
    "3620e680d220c00ae533413123542e25bf34292795818113c85600e2c8cf3f0ec9e72d6584e8fa503fa794a1c3e689f9bf593341"
    "60a73d00"
    "8203115c0f00000046000000789ce36360605801c46c40cc01c48c0c10c08ac46782d220b1e4d49c9c6220cd07c41648faf8b0e8"
    "6344328f"
    "07cd7c907a0324fd2c58f43323a91700f24acaf31900e41305450f0000004a000000789ce36360609801c46c40cc01c44c0c10c0"
    "0ae53322"
    "61909aa2d4e4fca214903c0b980f134fcb4ccd010a33f001b10792796c58cc6386d220c009c4120ce8e0833d94e1000073d2077"
    "2";

Bytes mat_file(const std::string& hex) {
  Bytes bytes(116, 'x');
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

Bytes little(const std::vector<uint32_t>& words) {
  Bytes bytes;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  return bytes;
}

/// A file with one array x of doubles, whose numbers are stored as `type` in `data`, padded to eight bytes.
Bytes mat_of_doubles(uint32_t rows, uint32_t columns, uint32_t type, const Bytes& data) {
  Bytes array = little({6, 8, 6, 0, 5, 8, rows, columns, 1 << 16 | 1, 'x', type, static_cast<uint32_t>(data.size())});
  array.insert(array.end(), data.begin(), data.end());
  array.resize((array.size() + 7) / 8 * 8);
  Bytes file(124, ' ');
  for (const uint8_t byte : {0, 1, 73, 77}) file.push_back(byte);
  const Bytes tag = little({14, static_cast<uint32_t>(array.size())});
  file.insert(file.end(), tag.begin(), tag.end());
  file.insert(file.end(), array.begin(), array.end());
  return file;
}

class MatFileTest : public testing::Test {
 protected:
  /// Returns "" or what is wrong.
  std::string read(const Bytes& bytes, const std::string& name, MatArray& array) {
    std::filesystem::remove(folder_ / "a.mat");  // ext4 would wait for the disk when a file is written over
    folder_.write("a.mat", bytes);
    MatFile file;
    const std::string problem = file.open(folder_ / "a.mat");
    return problem.empty() ? file.read_array(name, array) : problem;
  }

  const TempFolder folder_;
};

TEST_F(MatFileTest, ReadsWhatSciPyWrotePlainAndCompressed) {
  for (const char* const hex : {kPlainMat, kCompressedMat}) {
    folder_.write("a.mat", mat_file(hex));
    MatFile file;
    ASSERT_EQ(file.open(folder_ / "a.mat"), "");
    MatArray array;
    ASSERT_EQ(file.read_array("Pose_Para", array), "");
    EXPECT_EQ(array.rows, 1);
    EXPECT_EQ(array.columns, 7);
    EXPECT_EQ(array.values, (std::vector<double>{0.1F, -0.5, 0.25, 100, 200, 0, 0.001F}));
    ASSERT_EQ(file.read_array("pt2d", array), "");
    EXPECT_EQ(array.rows, 2);
    EXPECT_EQ(array.values, (std::vector<double>{10, 20, -1, -1, 50, 40, 30, 80}));
    ASSERT_EQ(file.read_array("roi", array), "");
    EXPECT_EQ(array.values, (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(file.read_array("pose", array), "holds no array pose");
  }
}

template <typename T>
std::vector<double> limits_of() {
  return {static_cast<double>(std::numeric_limits<T>::min()), static_cast<double>(std::numeric_limits<T>::max())};
}

TEST_F(MatFileTest, ReadsEveryClassOfRealNumbersAndNothingElse) {
  const Bytes bytes = mat_file(kKindsMat);
  MatArray array;
  const auto values = [&](const char* name) {
    EXPECT_EQ(read(bytes, name, array), "");
    return array.values;
  };
  EXPECT_EQ(values("int8"), limits_of<int8_t>());
  EXPECT_EQ(values("uint8"), limits_of<uint8_t>());
  EXPECT_EQ(values("int16"), limits_of<int16_t>());
  EXPECT_EQ(values("uint16"), limits_of<uint16_t>());
  EXPECT_EQ(values("int32"), limits_of<int32_t>());
  EXPECT_EQ(values("uint32"), limits_of<uint32_t>());
  EXPECT_EQ(values("int64"), limits_of<int64_t>());
  EXPECT_EQ(values("uint64"), limits_of<uint64_t>());
  EXPECT_EQ(values("single"), (std::vector<double>{-0.5, 3e38F}));
  EXPECT_EQ(values("double"), (std::vector<double>{1e-300, HUGE_VAL, -1e300, 0.1})) << "column by column";
  EXPECT_EQ(values("truth"), (std::vector<double>{1, 0}));
  EXPECT_EQ(values("none"), std::vector<double>{});
  EXPECT_EQ(array.columns, 3);
  for (const std::string name : {"text", "sparse", "wave"}) {
    EXPECT_EQ(read(bytes, name, array), name + " is not an array of real numbers");
  }
  EXPECT_EQ(read(bytes, "cube", array), "cube has not two dimensions");
  EXPECT_EQ(read(bytes, "record", array),
            "holds cells or structures, which are not read, before an array record is found");
}

TEST_F(MatFileTest, NumbersMayBeStoredInFewerBytesThanTheyMean) {
  constexpr uint32_t kInt8 = 1, kUint16 = 4;
  MatArray array;
  ASSERT_EQ(read(mat_of_doubles(1, 3, kInt8, {1, 0xFF, 3}), "x", array), "");
  EXPECT_EQ(array.values, (std::vector<double>{1, -1, 3}));
  ASSERT_EQ(read(mat_of_doubles(2, 1, kUint16, {0, 1, 0xFF, 0xFF}), "x", array), "");
  EXPECT_EQ(array.values, (std::vector<double>{256, 65535}));
}

TEST_F(MatFileTest, DamageIsAValueAtEveryCutAndEveryChangedByte) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  MatArray array;
  for (const char* const hex : {kPlainMat, kCompressedMat}) {
    const Bytes whole = mat_file(hex);
    for (size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<int64_t>(size));
      EXPECT_NE(read(cut, "pt2d", array), "") << size;
    }
    for (size_t at = 124; at < whole.size(); ++at) {
      for (const uint8_t value : {0x00, 0x7F, 0xFF}) {
        Bytes damaged = whole;
        damaged[at] = value;
        const std::string problem = read(damaged, "pt2d", array);  // must return
        const bool is_in_checksum = hex == kCompressedMat && at >= 136 && value != whole[at];
        EXPECT_TRUE(!problem.empty() || !is_in_checksum) << at;
      }
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "matio is silent";
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(MatFileTest, ReportsWhatIsWrongWithAFile) {
  MatArray array;
  EXPECT_EQ(read({}, "x", array), "not a MAT-file of level 5 in little-endian order");
  const Bytes whole = mat_of_doubles(1, 1, 1, {1});
  Bytes other = whole;
  std::swap(other[126], other[127]);
  EXPECT_EQ(read(other, "x", array), "not a MAT-file of level 5 in little-endian order");
  other = whole;
  other[125] = 2;
  EXPECT_EQ(read(other, "x", array), "a MAT-file of level 7.3: save it with -v7, which gives level 5");
  other = whole;
  other.pop_back();
  EXPECT_EQ(read(other, "x", array), "cut short");
  other = whole;
  other[128] = 13;
  EXPECT_EQ(read(other, "x", array), "damaged before an array x is found");
  // Faults that matio does not see: numbers of an unknown type, fewer than the dimensions need.
  EXPECT_EQ(read(mat_of_doubles(1, 1, /*type=*/99, {1}), "x", array), "damaged array");
  EXPECT_EQ(read(mat_of_doubles(100, 1, /*type=*/1, {1}), "x", array), "damaged array");
  // Refused before memory is taken: a name of 2 GiB, an array of 8 EiB or of 64 MiB and more.
  other = whole;
  other[168] = 1;
  other[170] = 0;  // the name's length is in the next word now
  other[175] = 0x7F;
  EXPECT_EQ(read(other, "x", array), "damaged before an array x is found");
  EXPECT_EQ(read(mat_of_doubles(0xFFFFFFFF, 0xFFFFFFFF, 1, {1}), "x", array), "x has more than 8388608 numbers");
  EXPECT_EQ(read(mat_of_doubles(4096, 2049, 1, {1}), "x", array), "x has more than 8388608 numbers");
}

TEST_F(MatFileTest, OnlyRegularFilesOfBoundedSizeAreOpened) {
  MatFile file;
  EXPECT_EQ(error_of([&] { file.open(folder_ / "none.mat"); }).kind(), core::ErrorKind::no_input);
  ASSERT_EQ(::mkfifo((folder_ / "pipe.mat").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { file.open(folder_ / "pipe.mat"); }).kind(), core::ErrorKind::no_input);
  folder_.write("long.mat", Bytes((16 << 20) + 1));
  const core::Error error = error_of([&] { file.open(folder_ / "long.mat"); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_NE(std::string(error.what()).find("long.mat"), std::string::npos);
  MatArray array;
  EXPECT_NE(file.read_array("x", array), "") << "nothing is open";
}

TEST_F(MatFileTest, ThreadsReadAtOnce) {
  folder_.write("plain.mat", mat_file(kPlainMat));
  folder_.write("packed.mat", mat_file(kCompressedMat));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        MatFile file;
        MatArray array;
        const bool is_read = file.open(folder_ / (i % 2 == 0 ? "plain.mat" : "packed.mat")).empty() &&
                             file.read_array("pt2d", array).empty();
        if (!is_read || array.values != std::vector<double>{10, 20, -1, -1, 50, 40, 30, 80}) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST_F(MatFileTest, Reads300WLPInDegreesWithTheBoxOfKnownLandmarks) {
  folder_.write("a.mat", mat_file(kCompressedMat));
  HeadPose pose;
  ASSERT_EQ(read_300w_pose(folder_ / "a.mat", /*margin=*/0.25, pose), "");
  EXPECT_NEAR(pose.angles[0], -0.5 * 180 / 3.141592653589793, 1e-5);
  EXPECT_NEAR(pose.angles[1], 0.1 * 180 / 3.141592653589793, 1e-5);
  EXPECT_NEAR(pose.angles[2], 0.25 * 180 / 3.141592653589793, 1e-5);
  // Landmarks reach from 10 to 50 and from 20 to 80.
  EXPECT_DOUBLE_EQ(pose.face.left, 0);
  EXPECT_DOUBLE_EQ(pose.face.top, 5);
  EXPECT_DOUBLE_EQ(pose.face.width, 60);
  EXPECT_DOUBLE_EQ(pose.face.height, 90);
}

TEST_F(MatFileTest, ThreeHundredWLPHasAMatFileBesideEachImage) {
  const Bytes jpeg = jpeg_of(pattern_pixels(100, 120, 3), 100, 120);
  for (const char* const name : {"300W_LP/AFW/a", "300W_LP/IBUG/b", "AFLW2000/c"}) {
    folder_.write(std::string(name) + ".jpg", jpeg);
    folder_.write(std::string(name) + ".mat", mat_file(kCompressedMat));
  }
  folder_.write("AFLW2000/alone.jpg", jpeg);
  config::DataOptions options;
  options.data_dir = folder_.path();
  options.task = config::TaskKind::head_pose;
  options.dataset = config::DatasetType::w300lp;
  options.train_split = "300W_LP";
  options.val_split = std::string("AFLW2000");
  options.face_margin = 0.25;
  const Datasets data = open_datasets(options);
  EXPECT_EQ(data.train->size(), 2);
  ASSERT_EQ(data.val->size(), 1);
  ASSERT_FALSE(data.notes.empty());
  EXPECT_NE(data.notes.back().find("images without .mat beside them"), std::string::npos) << data.notes.back();
  EXPECT_DOUBLE_EQ(data.val->region(0).top, 5);
  EXPECT_DOUBLE_EQ(data.val->region(0).width, 60);
  EXPECT_DOUBLE_EQ(data.val->region(0).height, 90);
  folder_.write("AFLW2000/c.mat", std::string("MATLAB 5.0"));
  EXPECT_NE(std::string(error_of([&] { open_datasets(options); }).what()).find("c.mat: not a MAT-file"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::data
