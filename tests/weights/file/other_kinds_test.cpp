// SPDX-License-Identifier: Apache-2.0
// Files that hold no weights: each is named by its first bytes, with the next step.
#include "weights/file/other_kinds.h"

#include <gtest/gtest.h>

#include "core/system/file.h"
#include "tests/temporary_directory.h"
#include "tests/weights/file/refusal.h"

namespace stoker::weights {
namespace {

using namespace std::string_literals;

/// The message and the hint that a file of these bytes is refused with.
std::string refused_text(const std::string& bytes) {
  try {
    fixtures::opened(bytes);
  } catch (const core::Error& error) {
    return error.text();
  }
  return "accepted";
}

std::string tar_header() {
  std::string header = "weights.pth" + std::string(501, '\0');
  return header.replace(257, 6, "ustar\0"s);
}

struct OtherFile {
  std::string bytes;
  const char *kind, *step;
};

const std::vector<OtherFile>& other_files() {
  static const std::vector<OtherFile> all = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n", "it is a pointer of Git LFS",
       "git lfs pull"},
      {"<!DOCTYPE html><html>", "it is a web page (HTML)", "download it again"},
      {"\xEF\xBB\xBF\r\n <!-- page --><HTML lang=\"en\">", "it is a web page (HTML)", "download it again"},
      // As train export and PyTorch's exporter begin: the version, then the producer or the graph.
      {"\x08\x07\x12\x06stoker\x1a\x05"s + "0.1.0:\xbc\xb1\x76"s, "it is ONNX",
       "only files of PyTorch (torch.save()) and safetensors are read"},
      {"\x08\x0a\x3a\x20\x0a\x1e"s + std::string(30, '\1'), "it is ONNX", "exported from"},
      {"\x89HDF\r\n\x1a\n\0\0\0\0"s, "it is HDF5, as Keras writes it", "safetensors.torch.save_file"},
      {"\x1f\x8b\x08\x08\xf8\xd6\x0a\x6b\x02\xffold.pth.tar\0"s, "it is packed with gzip", "tar xzf"},
      {"\xFD\x37zXZ\0\0"s, "it is packed with xz", "unxz <"},
      {"BZh91AY&SY\x80\x12", "it is packed with bzip2", "bunzip2 <"},
      {"\x28\xB5\x2F\xFD\x04\x58"s, "it is packed with Zstandard", "zstd -d <"},
      {"7z\xBC\xAF\x27\x1C"s, "it is an archive of 7-Zip", "7z x"},
      {tar_header(), "it is a tar archive", "tar xf"},
      {"\x93NUMPY\1\0v\0"s, "it is an array of NumPy", "only files of PyTorch"},
      {"[1, 2]", "it is JSON", "give the file of weights beside it"},
      {" {\"epoch\": 1}", "it is JSON", "give the file of weights beside it"},
      {"", "it is empty (0 bytes)", "copy or download the file again"},
      {std::string(100, '\0'), "its first 100 bytes are zero", "copy or download the file again"},
      {std::string(100'000, '\0'), "its first 4,096 bytes are zero", "copy or download the file again"},
      {"Access denied\nlog in first\n", "it is text, not weights; it begins with \"Access denied\"\n", "again"},
      {"caf\xC3\xA9 " + std::string(5000, 'x'), "it begins with \"caf\xC3\xA9 xxx", "again"},
      {std::string(4095, 'x') + "\xC3\xA9", "it is text, not weights", "again"},
      {std::string(59, 'x') + "\xC3\xA9y", "xxx\"...", "again"},
  };
  return all;
}

TEST(OtherKindsTest, AFileThatHoldsNoWeightsIsNamedByItsFirstBytesWithTheNextStep) {
  for (const OtherFile& other : other_files()) {
    const std::string text = refused_text(other.bytes);
    EXPECT_EQ(text.rfind("w.pth: ", 0), 0u) << text;
    EXPECT_NE(text.find(other.kind), std::string::npos) << other.kind << " was " << text;
    EXPECT_NE(text.find(other.step, text.find("\nhint: ")), std::string::npos) << other.step << " was " << text;
    EXPECT_EQ(text.find("safetensors file"), std::string::npos) << text;
  }
}

TEST(OtherKindsTest, CommandsHaveTheNameOfTheFileAsAShellReadsIt) {
  const fixtures::TemporaryDirectory folder;
  const std::string path = folder / "my weights.pth";
  core::write_file_atomically(path, "\x1f\x8b\x08"s + std::string(20, '\2'), false);
  try {
    open_weight_file(path);
    FAIL();
  } catch (const core::Error& error) {
    const std::string command = "gunzip < '" + path + "' > '" + path + "'.unpacked";
    EXPECT_NE(error.hint().find(command), std::string::npos) << error.hint();
  }
}

/// The length in front of it may have any bytes: of gzip, of ONNX, of a text.
TEST(OtherKindsTest, SafetensorsIsReadAndRefusedAsSuchWhateverItsLengthIs) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  for (const uint64_t length : {uint64_t{header.size()}, uint64_t{0x1208}, uint64_t{0x8B1F}, uint64_t{0x120708}}) {
    const std::string blanks(length - header.size(), ' ');
    const std::string file = fixtures::little_endian(length, 8) + header + blanks + "abcdefgh";
    EXPECT_EQ(fixtures::all_storages(fixtures::opened(file)), "abcdefgh") << length;
    const std::string damaged = refused_text(file.substr(0, file.size() - 1));
    EXPECT_NE(damaged.find("not a valid safetensors file"), std::string::npos) << damaged;
  }
  EXPECT_NE(refused_text(std::string(8, '\xFF') + "{}").find("not a valid safetensors file"), std::string::npos);
}

}  // namespace
}  // namespace stoker::weights
