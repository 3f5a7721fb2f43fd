// SPDX-License-Identifier: Apache-2.0
// Numbers of HDF5 files, read by offsets: exact for every storage, and safe where places lie.
#include "data/container/sample_array.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <numeric>

#include "core/format.h"
#include "data/container/hdf5_chunks.h"
#include "data/container/hdf5_file.h"
#include "made_hdf5.h"

namespace stoker::data {
namespace {

struct Storage {
  const char* name;
  Hdf5Recipe recipe;
};

Hdf5Recipe chunks_of(std::vector<int64_t> chunk, bool shuffle = false, bool deflate = false) {
  Hdf5Recipe recipe;
  recipe.chunk = std::move(chunk);
  recipe.shuffle = shuffle;
  recipe.deflate = deflate;
  return recipe;
}

/// For samples [11, 7, 9]: whole samples to a chunk, one, several, and parts of samples that reach beyond
/// them.
std::vector<Storage> storages() {
  return {{"one piece", {}},
          {"one sample per chunk", chunks_of({1, 7, 9})},
          {"four samples per chunk", chunks_of({4, 7, 9})},
          {"parts of samples", chunks_of({3, 5, 4})},
          {"deflated", chunks_of({4, 7, 9}, false, true)},
          {"shuffled and deflated", chunks_of({4, 7, 9}, true, true)},
          {"one deflated sample per chunk", chunks_of({1, 7, 9}, true, true)},
          {"deflated parts of samples", chunks_of({3, 5, 4}, true, true)},
          {"shuffled parts of samples", chunks_of({5, 7, 2}, true, false)}};
}

SampleArray array_of(const std::string& path, const std::string& name) {
  const Hdf5File file(path);
  return SampleArray(file.bytes(), file.array(name));
}

Bytes all_samples(const SampleArray& array) {
  ArrayScratch scratch;
  Bytes all(static_cast<size_t>(array.samples() * array.sample_bytes()), 0xEE);
  for (int64_t i = array.samples(); i-- > 0;) {
    EXPECT_EQ(array.read(i, scratch, all.data() + i * array.sample_bytes()), "");
  }
  return all;
}

TEST(SampleArrayTest, EveryElementInEveryStorageReadsBackExactly) {
  const TempFolder folder;
  const std::pair<const char*, int> kElements[] = {{"uint8", 1}, {"float16", 2}, {"float32", 4}};
  for (const bool latest : {false, true}) {
    for (const Storage& storage : storages()) {
      for (const auto& [element, bytes] : kElements) {
        const Bytes numbers = made_numbers(11 * 7 * 9, bytes);
        { MadeHdf5(folder / "a.h5", latest).add("x", element, {11, 7, 9}, numbers, storage.recipe); }
        const SampleArray array = array_of(folder / "a.h5", "x");
        EXPECT_EQ(all_samples(array), numbers) << storage.name << ", " << element << ", latest " << latest;
        EXPECT_EQ(array.sample_bytes(), 63 * bytes);
      }
    }
  }
}

TEST(SampleArrayTest, FourDimensionsInChunksOfPartsReadBackExactly) {
  const TempFolder folder;
  const Bytes numbers = made_numbers(10 * 3 * 6 * 5, 4);
  for (const bool deflate : {false, true}) {
    { MadeHdf5(folder / "a.h5").add("x", "float32", {10, 3, 6, 5}, numbers, chunks_of({4, 2, 4, 3}, true, deflate)); }
    EXPECT_EQ(all_samples(array_of(folder / "a.h5", "x")), numbers);
  }
}

TEST(SampleArrayTest, RunsEndWhereChunksEnd) {
  const TempFolder folder;
  const Bytes numbers = made_numbers(10 * 600 * 500, 4);  // 1.2 MB each: a chunk is a run
  { MadeHdf5(folder / "a.h5").add("x", "float32", {10, 600, 500}, numbers, chunks_of({4, 600, 500})); }
  EXPECT_EQ(array_of(folder / "a.h5", "x").run_ends(), std::vector<int64_t>({4, 8, 10}));
  { MadeHdf5(folder / "b.h5").add("x", "float32", {600, 16, 16}, made_numbers(600 * 256, 4)); }
  EXPECT_EQ(array_of(folder / "b.h5", "x").run_ends(), std::vector<int64_t>({600})) << "less than a megabyte";
}

TEST(SampleArrayTest, ADamagedChunkIsABadSampleAndNoOther) {
  const TempFolder folder;
  const Bytes numbers = made_numbers(8 * 40 * 40, 4);
  { MadeHdf5(folder / "a.h5").add("x", "float32", {8, 40, 40}, numbers, chunks_of({2, 40, 40}, true, true)); }
  NumberArray places;
  {
    const Hdf5File file(folder / "a.h5");
    places = file.array("x");
  }
  std::fstream file(folder / "a.h5", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(places.places[1].offset + 40));
  file.write("damage", 6);
  file.close();
  const SampleArray array = array_of(folder / "a.h5", "x");
  ArrayScratch scratch;
  Bytes sample(static_cast<size_t>(array.sample_bytes()));
  for (const int64_t bad : {2, 3, 2}) {
    EXPECT_EQ(array.read(bad, scratch, sample.data()), "the deflate stream of the chunk is damaged");
  }
  EXPECT_EQ(array.read(1, scratch, sample.data()), "");
  EXPECT_EQ(array.read(4, scratch, sample.data()), "");
}

/// A file of 1,000 bytes and the place of an array in it.
class PlacesTest : public ::testing::Test {
 protected:
  std::string refusal(NumberArray array) {
    array.name = "x";
    const auto file = std::make_shared<FileBytes>(folder_.write("f", Bytes(1000)));
    return error_of([&] { SampleArray(file, array); }).what();
  }
  std::string prefix() const { return folder_ / "f: data set x: "; }
  TempFolder folder_;
};

TEST_F(PlacesTest, OnePieceMustLieInTheFile) {
  NumberArray array;
  array.dims = {10, 10, 10};
  array.element = Element::uint8;
  EXPECT_NO_THROW(SampleArray(std::make_shared<FileBytes>(folder_.write("f", Bytes(1000))), array));
  array.offset = 1;
  EXPECT_EQ(refusal(array),
            prefix() + "10 samples of 100 bytes from byte 1 on do not lie inside the file of 1000 bytes");
  array.offset = ~uint64_t{0} - 5;
  EXPECT_NE(refusal(array).find("do not lie inside"), std::string::npos);
  array.offset = 0;
  array.dims = {int64_t{1} << 62, 2, 2};
  EXPECT_NE(refusal(array).find("do not lie inside"), std::string::npos);
  array.dims = {1, int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(refusal(array), prefix() + "a sample has more than 1.1 GB");
  array.dims = {1, 0, 4};
  EXPECT_EQ(refusal(array), prefix() + "its dimensions cannot be read");
  array.dims = {4};
  EXPECT_EQ(refusal(array), folder_ / "f: data set x has 1 dimension [4]; samples have 2 or 3 behind their number");
}

TEST_F(PlacesTest, EveryChunkMustLieInTheFileWholeAndPossible) {
  NumberArray array;
  array.dims = {4, 10, 10};
  array.chunk = {2, 10, 10};
  array.places = {{0, 200, 0}, {800, 200, 0}};
  EXPECT_NO_THROW(SampleArray(std::make_shared<FileBytes>(folder_.write("f", Bytes(1000))), array));
  array.places[1].offset = 801;
  EXPECT_EQ(refusal(array),
            prefix() + "the chunk of sample 2, 200 bytes from byte 801 on, does not lie inside the file of 1000 bytes");
  array.places[1] = {~uint64_t{0} - 100, 200, 0};
  EXPECT_NE(refusal(array).find("does not lie inside"), std::string::npos);
  array.places[1] = {0, 0, 0};
  EXPECT_EQ(refusal(array), prefix() + "samples 2 to 3 were never written");
  array.places[1] = {0, 199, 0};
  EXPECT_EQ(refusal(array), prefix() + "the chunk of sample 2 has 199 bytes, which cannot be a chunk of 200");
  array.places.resize(1);
  EXPECT_EQ(refusal(array), prefix() + "the list of its chunks is not whole");
  array.chunk = {2, int64_t{1} << 20, int64_t{1} << 20};
  EXPECT_EQ(refusal(array), prefix() + "a chunk has more than 1.1 GB");
}

TEST_F(PlacesTest, AFewDeflatedBytesCannotBeAGigabyte) {
  NumberArray array;
  array.dims = {4, 10'000, 10'000};
  array.chunk = {4, 10'000, 10'000};
  array.filters = {ChunkFilter::deflate};
  array.places = {{0, 1000, 0}};
  EXPECT_EQ(refusal(array), prefix() + "the chunk of sample 0 has 1000 bytes, which cannot be a chunk of 400000000");
}

TEST(ChunkCacheTest, OthersAreLetGoBeforeAChunkIsDecoded) {
  ChunkCache cache(100, 1);
  const auto filled = [](Bytes& bytes) {
    bytes.resize(60);
    return std::string();
  };
  ChunkCache::Content content;
  EXPECT_EQ(cache.get(1, 60, filled, content), "");
  const std::weak_ptr<const Bytes> first = content;
  content.reset();
  EXPECT_FALSE(first.expired()) << "kept while the budget allows";
  const auto second = [&](Bytes& bytes) {
    EXPECT_TRUE(first.expired());
    return filled(bytes);
  };
  EXPECT_EQ(cache.get(2, 60, second, content), "");
}

TEST(ChunkTreeTest, FindsEveryChunkWhereTheLibraryFindsIt) {
  const TempFolder folder;
  const int64_t samples = 700;  // more than one node of the tree
  { MadeHdf5(folder / "a.h5").add("x", "uint8", {samples, 4, 6}, made_numbers(samples * 24, 1), chunks_of({1, 4, 3})); }
  const FileBytes file(folder / "a.h5");
  std::vector<int> seen(static_cast<size_t>(2 * samples));
  const bool known = visit_chunk_tree(file, object_header_of(folder / "a.h5", "x"), 3, 2 * samples,
                                      [&](const std::vector<uint64_t>& begin, const ChunkPlace& place) {
                                        ++seen.at(begin[0] * 2 + begin[2] / 3);
                                        EXPECT_EQ(place.bytes, 12u);
                                      });
  EXPECT_TRUE(known);
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

/// Chunks in the order of where they begin.
using Listed = std::map<std::vector<uint64_t>, std::vector<uint64_t>>;

/// The chunks that one way lists; `known`: whether it supports the data set.
template <typename Way>
Listed chunks_listed(const std::string& path, const Way& way, bool& known, size_t rank = 3) {
  const FileBytes bytes(path);
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const Hdf5Handle data_set(H5Dopen2(file.id(), "x", H5P_DEFAULT), H5Dclose);
  Listed listed;
  known = way(ChunkedDataSet{file.id(), data_set.id(), bytes, path + ": data set x", rank, 10'000},
              [&](const std::vector<uint64_t>& begin, const ChunkPlace& place) {
                EXPECT_EQ(listed.count(begin), 0u);
                listed[begin] = {place.offset, place.bytes, place.skipped_filters};
              });
  return listed;
}

bool one_by_one(const ChunkedDataSet& searched, const ChunkFound& found) {
  list_chunks_one_by_one(searched, found);
  return true;
}

TEST(ChunkListTest, EveryWayListsTheSameChunks) {
  const TempFolder folder;
  const std::string path = folder / "a.h5";
  int walked = 0;
  for (const bool latest : {false, true}) {
    for (const Storage& storage : storages()) {
      if (storage.recipe.chunk.empty()) continue;
      SCOPED_TRACE(testing::Message() << storage.name << ", latest " << latest);
      Hdf5Recipe recipe = storage.recipe;
      recipe.written = 200;  // later chunks are missing
      { MadeHdf5(path, latest).add("x", "float32", {300, 7, 9}, made_numbers(300 * 7 * 9, 4), recipe); }
      bool known = false;
      const Listed expected = chunks_listed(path, one_by_one, known);
      EXPECT_GE(expected.size(), 40u);
      const Listed by_tree = chunks_listed(path, list_chunks_by_tree, known);
      if (known) {
        EXPECT_EQ(by_tree, expected);
      }
      walked += known ? 1 : 0;
      const Listed by_library = chunks_listed(path, list_chunks_by_library, known);
      EXPECT_EQ(known, H5_VERSION_GE(1, 14, 3));
      if (known) {
        EXPECT_EQ(by_library, expected);
      }
    }
  }
  EXPECT_EQ(walked, 8) << "all but those of the latest kind";
}

TEST(ChunkListTest, WhatThrowsForAChunkIsThrownOn) {
  const TempFolder folder;
  const std::string path = folder / "a.h5";
  { MadeHdf5(path).add("x", "uint8", {80, 4, 6}, made_numbers(80 * 24, 1), chunks_of({1, 4, 6})); }
  const FileBytes bytes(path);
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const Hdf5Handle data_set(H5Dopen2(file.id(), "x", H5P_DEFAULT), H5Dclose);
  int chunks = 0;
  EXPECT_THROW(list_chunks(ChunkedDataSet{file.id(), data_set.id(), bytes, "x", 3, 80},
                           [&](const std::vector<uint64_t>&, const ChunkPlace&) {
                             if (++chunks == 5) throw core::Error(core::ErrorKind::data, "five");
                           }),
               core::Error);
  EXPECT_EQ(chunks, 5);
  EXPECT_THROW(list_chunks(ChunkedDataSet{file.id(), data_set.id(), bytes, "x", 3, 79},
                           [](const std::vector<uint64_t>&, const ChunkPlace&) {}),
               core::Error);
}

TEST(ChunkTreeTest, DamageIsAnErrorAndNeverTheEndOfTheProcess) {
  const TempFolder folder;
  { MadeHdf5(folder / "a.h5").add("x", "uint8", {80, 4, 6}, made_numbers(80 * 24, 1), chunks_of({1, 4, 6})); }
  const uint64_t header = object_header_of(folder / "a.h5", "x");
  Bytes bytes(FileBytes(folder / "a.h5").size());
  FileBytes(folder / "a.h5").read(0, bytes.data(), bytes.size());
  int errors = 0, others = 0;
  const auto walk = [&](const Bytes& content) {
    try {
      int chunks = 0;
      const bool known = visit_chunk_tree(MemoryBytes("a", content.data(), content.size()), header, 3, 80,
                                          [&](const std::vector<uint64_t>&, const ChunkPlace&) { ++chunks; });
      EXPECT_LE(chunks, 80);
      others += known && chunks == 80 ? 0 : 1;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::data);
      ++errors;
    }
  };
  walk(bytes);
  EXPECT_EQ(errors + others, 0);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0x00, 0xFF, bytes[at] ^ 1}) {
      Bytes damaged = bytes;
      damaged[at] = static_cast<uint8_t>(value);
      walk(damaged);
    }
  }
  EXPECT_GT(errors, 100);
  for (size_t size = 0; size < bytes.size(); size += 7)
    walk(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
}

}  // namespace
}  // namespace stoker::data
