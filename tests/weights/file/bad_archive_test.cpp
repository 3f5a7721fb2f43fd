// SPDX-License-Identifier: Apache-2.0
// Archives around state dicts that are damaged or made to deceive, in both layouts: each is refused with a reason.
#include <gtest/gtest.h>

#include "tests/weights/file/refusal.h"

namespace stoker::weights {
namespace {

using fixtures::little_endian;
using fixtures::made_zip;
using fixtures::MadeMember;
using fixtures::MadePickle;
using fixtures::refusal;
using fixtures::state_dict_pickle;
using fixtures::two_numbers;

std::string good_pickle() { return state_dict_pickle({two_numbers()}); }
std::string good_zip() { return fixtures::zip_around(good_pickle()); }

/// `bytes` with `part` written over those from `at` on.
std::string overwritten(std::string bytes, size_t at, const std::string& part) {
  return bytes.replace(at, part.size(), part);
}

size_t place_of(const std::string& bytes, const std::string& text, int which = 0) {
  size_t at = bytes.find(text);
  for (; which > 0; --which) at = bytes.find(text, at + 1);
  return at;
}

// Places in an entry of the directory, from its signature on.
constexpr size_t kFlags = 8, kMethod = 10, kChecksum = 16, kStored = 20, kBytes = 24, kPlace = 42, kName = 46;

std::string with_entry(size_t field, const std::string& part, int which = 0) {
  const std::string zip = good_zip();
  return overwritten(zip, place_of(zip, "PK\1\2", which) + field, part);
}

/// The end of an archive with another count, size and place of its directory.
std::string with_end(uint64_t count, uint64_t bytes, uint64_t begin) {
  const std::string zip = good_zip();
  return overwritten(
      zip, zip.size() - 14,
      little_endian(count, 2) + little_endian(count, 2) + little_endian(bytes, 4) + little_endian(begin, 4));
}

std::string deflated_zip() {
  MadeMember storage{"w/data/0", "abcdefgh"};
  storage.deflated = true;
  return made_zip({{"w/data.pkl", good_pickle()}, storage});
}

/// A storage whose header claims that it inflates from 3 MB to 3 GB.
std::string large_bomb() {
  constexpr uint64_t kBytes3G = 3'000'000'000;
  std::string noise;  // deflates to as much
  for (uint32_t i = 0; noise.size() < 3'200'000; ++i) noise += little_endian((i + 1) * 2654435761u, 4);
  MadePickle pickle;
  pickle.op("}").text("a").global("torch._utils", "_rebuild_tensor_v2").op("((").text("storage");
  pickle.global("torch", "FloatStorage").text("0").text("cpu").integer(kBytes3G / 4).op("tQ").integer(0);
  pickle.tuple({2}).tuple({1}).op("\x89NtRs");
  MadeMember storage{"w/data/0", noise};
  storage.deflated = true;
  const std::string zip = made_zip({{"w/data.pkl", pickle.done()}, storage});
  return overwritten(zip, place_of(zip, "PK\1\2", 1) + kBytes, little_endian(kBytes3G, 4));
}

/// Two equal entries.
std::string with_its_entry_twice() {
  const std::string zip = made_zip({{"w/data.pkl", good_pickle()}});
  const size_t directory = place_of(zip, "PK\1\2"), end = place_of(zip, "PK\5\6");
  const std::string entry = zip.substr(directory, end - directory);
  return zip.substr(0, end) + entry + "PK\5\6" + std::string(4, '\0') + little_endian(2, 2) + little_endian(2, 2) +
         little_endian(2 * entry.size(), 4) + little_endian(directory, 4) + std::string(2, '\0');
}

struct BadArchive {
  const char* name;
  std::string bytes;
  const char* reason;
};

std::vector<BadArchive> bad_zips() {
  const std::string zip = good_zip();
  const size_t directory = place_of(zip, "PK\1\2");
  const std::string two_pickles = made_zip({{"a/data.pkl", good_pickle()}, {"b/data.pkl", good_pickle()}});
  const std::string far_end = made_zip({{"w/data.pkl", good_pickle()}, {"w/data/0", "abcdefgh"}}, /*zip64_end=*/true);
  const size_t deflated = place_of(deflated_zip(), "PK\1\2", 1);
  return {
      {"CutShort", zip.substr(0, zip.size() - 1), "its end is missing: the file was cut short"},
      {"OnlyItsBegin", zip.substr(0, 4), "its end is missing"},
      {"BytesBehindItsEnd", zip + "x", "its end is missing"},
      {"Encrypted", with_entry(kFlags, "\1"), "is encrypted"},
      {"OtherCompression", with_entry(kMethod, "\x63"), "is compressed by method 99"},
      {"OtherMethodThanItsHeader", with_entry(kMethod, "\x08"), "has a header unlike its entry"},
      {"TwoSizes", with_entry(kBytes, little_endian(7, 4), 1), "is stored, but has two sizes"},
      {"OtherChecksum", with_entry(kChecksum, little_endian(1, 4), 1), "does not fit its checksum"},
      {"ChangedNumber", overwritten(zip, place_of(zip, "abcdefgh"), "X"), "does not fit its checksum"},
      {"BeyondTheFile", with_entry(kStored, little_endian(1 << 30, 4) + little_endian(1 << 30, 4), 1),
       "lies outside the file"},
      {"HeaderBeyondTheFile", with_entry(kPlace, little_endian(1 << 30, 4)), "lies outside the file"},
      {"HeaderSomewhereElse", with_entry(kPlace, little_endian(1, 4)), "has a header unlike its entry"},
      {"OtherNameThanItsHeader", with_entry(kName, "v"), "has another name in its header"},
      {"MembersOverOneAnother", with_its_entry_twice(), "members lie over one another"},
      {"NameTwice", made_zip({{"w/data.pkl", good_pickle()}, {"w/data/0", "abcdefgh"}, {"w/data/0", "abcdefgh"}}),
       "w/data/0 is there twice"},
      {"MoreMembersThanItsDirectory", with_end(3, zip.size() - 22 - directory, directory), "cannot have 3 members"},
      {"FewerMembersThanItsDirectory", with_end(1, zip.size() - 22 - directory, directory),
       "bytes that belong to no member"},
      {"DirectorySomewhereElse", with_end(2, 92, 0), "its directory is not where its end record points"},
      {"LongEndOutsideTheFile", overwritten(far_end, place_of(far_end, "PK\6\7") + 8, little_endian(1ull << 60, 8)),
       "its zip64 end lies outside the file"},
      {"LongEndMissing", overwritten(far_end, place_of(far_end, "PK\6\7") + 8, little_endian(0, 8)),
       "its zip64 end is missing"},
      {"LongSizesMissing", with_entry(kBytes, little_endian(0xFFFFFFFF, 4)), "lacks its 64-bit sizes"},
      {"Bomb", overwritten(deflated_zip(), deflated + kBytes, little_endian(1 << 30, 4)), "cannot inflate from"},
      {"LargeBomb", large_bomb(), "inflates to 3000000000 bytes, more than is read"},
      {"InflatesToMore", overwritten(deflated_zip(), deflated + kBytes, little_endian(4, 4)),
       "has 4 bytes instead of 8"},
      {"DamagedStream", overwritten(deflated_zip(), place_of(deflated_zip(), "w/data/0") + 8, "\xFF"),
       "is a damaged deflate stream"},
      {"TwoPickles", two_pickles, "it holds several pickles"},
      {"NoPickle", made_zip({{"w/data/0", "abcdefgh"}}), "this zip archive was not written by torch.save()"},
      {"TorchScript", made_zip({{"w/data.pkl", good_pickle()}, {"w/constants.pkl", "x"}}),
       "this is a TorchScript program"},
      {"OtherByteOrder", made_zip({{"w/data.pkl", good_pickle()}, {"w/data/0", "abcdefgh"}, {"w/byteorder", "big"}}),
       "its numbers are not little-endian"},
      {"MegabytesOfPickle", made_zip({{"w/data.pkl", std::string(33 << 20, 'N')}}), "more than a state dict needs"},
  };
}

std::vector<BadArchive> bad_older_files() {
  const fixtures::MadeTensor tensor = two_numbers();
  const std::string pickle = state_dict_pickle({tensor}, /*legacy=*/true);
  const std::string good = fixtures::torch_legacy_file(pickle, {tensor});
  fixtures::MadeTensor other = tensor;
  other.key = "unknown";
  MadePickle two_types;
  fixtures::MadeTensor halves = tensor;
  halves.type = NumberType::f16;
  two_types.op("}").text("a").tensor(tensor, true).op("s").text("b").tensor(halves, true).op("s");
  return {
      {"CutInItsNumbers", good.substr(0, good.size() - 1), "it was cut short: its storage 0 should have 2 numbers"},
      {"CutBeforeItsNumbers", good.substr(0, good.size() - 9), "it was cut short"},
      {"CutInItsPickles", good.substr(0, 100), "of its pickle: "},
      {"OnlyItsMagic", good.substr(0, 15), "it is cut short"},
      {"OtherVersion", overwritten(good, place_of(good, std::string("\xe9\x03", 2)), "\1"), "its version is not 1001"},
      {"OtherByteOrder", overwritten(good, place_of(good, "\x88u"), "\x89"), "its numbers are not little-endian"},
      {"NoTensorOfItsStorage", fixtures::torch_legacy_file(pickle, {other}), "it lists a storage that no tensor has"},
      {"StorageTwice", fixtures::torch_legacy_file(pickle, {tensor, tensor}), "it lists a storage twice"},
      {"MissingStorage", fixtures::torch_legacy_file(pickle, {}), "its storage 0 is missing"},
      {"StorageOfTwoTypes", fixtures::torch_legacy_file(two_types.done(), {tensor}),
       "one of its storages has two types"},
      {"CountThatWrapsAround", overwritten(good, good.size() - 16, std::string(8, '\xFF')), "it was cut short"},
      {"OtherCount", overwritten(good, good.size() - 16, "\1"), "has 4 bytes instead of 8"},
  };
}

TEST(BadArchiveTest, IsRefusedWithAReason) {
  for (const BadArchive& bad : bad_zips()) {
    const std::string message = refusal(bad.bytes);
    EXPECT_NE(message.find(bad.reason), std::string::npos) << bad.name << " was " << message;
  }
}

TEST(BadArchiveTest, OfTheOlderLayoutIsRefusedWithAReason) {
  for (const BadArchive& bad : bad_older_files()) {
    const std::string message = refusal(bad.bytes);
    EXPECT_NE(message.find(bad.reason), std::string::npos) << bad.name << " was " << message;
  }
}

TEST(BadArchiveTest, NoPrefixOfAGoodOneIsAccepted) {
  const std::string zip = good_zip(), older = fixtures::torch_legacy_file({two_numbers()});
  ASSERT_EQ(refusal(zip), "accepted");
  ASSERT_EQ(refusal(older), "accepted");
  for (size_t size = 0; size < zip.size(); ++size) EXPECT_NE(refusal(zip.substr(0, size)), "accepted") << size;
  for (size_t size = 0; size < older.size(); ++size) EXPECT_NE(refusal(older.substr(0, size)), "accepted") << size;
}

}  // namespace
}  // namespace stoker::weights
