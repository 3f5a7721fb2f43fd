// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the corpus: small good files of every kind that the readers know. What fuzzing adds to
// them lies beside them. Usage: fuzz_write_seeds tests/fuzz/corpus
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "data/shard/shard_index.h"
#include "tests/data/made_data.h"
#include "tests/data/made_tiff.h"
#include "tests/weights/made_pickle.h"
#include "tests/weights/made_zip.h"

namespace {

using namespace stoker::data;

void write(const std::string& folder, const std::string& name, const Bytes& content) {
  std::filesystem::create_directories(folder);
  std::ofstream file(folder + "/" + name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) std::fprintf(stderr, "cannot write %s/%s\n", folder.c_str(), name.c_str());
}

void write_jpegs(const std::string& folder) {
  constexpr int kWidth = 35, kHeight = 21;
  const auto add = [&](const std::string& name, const JpegRecipe& recipe) {
    write(folder, name, jpeg_of(pattern_pixels(kWidth, kHeight, recipe.channels), kWidth, kHeight, recipe));
  };
  constexpr int kQuality = 40;
  add("gray", {1, false, false, kQuality});
  add("gray_progressive", {1, true, false, kQuality});
  add("444", {3, false, false, kQuality, 1, 1});
  add("422", {3, false, false, kQuality, 2, 1});
  add("440", {3, false, false, kQuality, 1, 2});
  add("420", {3, false, false, kQuality, 2, 2});
  add("411", {3, false, false, kQuality, 4, 1});
  add("420_restarts", {3, false, false, kQuality, 2, 2, 1});
  add("420_progressive", {3, true, false, kQuality, 2, 2});
  add("cmyk", {4, false, false, kQuality});
  add("cmyk_adobe", {4, false, true, kQuality});
  for (const int orientation : {2, 3, 6}) {
    write(folder, "exif_" + std::to_string(orientation),
          jpeg_with_exif(jpeg_of(pattern_pixels(kWidth, kHeight, 1), kWidth, kHeight, {1, false, false, kQuality}),
                         orientation));
  }
  write(folder, "one_pixel", jpeg_of(pattern_pixels(1, 1, 3), 1, 1, {3, false, false, kQuality}));
}

void write_other_images(const std::string& folder) {
  const Bytes gray = pattern_pixels(7, 5, 1), rgb = pattern_pixels(7, 5, 3), rgba = pattern_pixels(7, 5, 4);
  write(folder, "gray_png", png_of(gray, 7, 5, 1));
  write(folder, "rgb_png", png_of(rgb, 7, 5, 3));
  write(folder, "rgba_png", png_of(rgba, 7, 5, 4));
  write(folder, "deep_png", png16_of({0, 257, 128, 129, 65535, 32896}, 2, 1, 3));
  write(folder, "palette_png", palette_png(2, 1, {10, 20, 30, 200, 150, 100}, {0, 0x40}));
  write(folder, "exif_png", png_with_chunk(png_of(rgb, 7, 5, 3), "eXIf", exif_with_orientation(6)));
  write(folder, "gray_bmp", bmp_of(flat_pixels(7, 5, {9}), 7, 5, 1));
  write(folder, "rgb_bmp", bmp_of(rgb, 7, 5, 3));
  write(folder, "alpha_bmp", bmp32_of(2, 1, {1, 2, 3, 4, 5, 6, 7, 8}, true));
  write(folder, "opaque_bmp", bmp32_of(2, 1, {1, 2, 3, 4, 5, 6, 7, 8}, false));
  const Bytes rgb_webp = webp_of(rgb, 7, 5, 3), rgba_webp = webp_of(rgba, 7, 5, 4);
  write(folder, "rgb_webp", rgb_webp);
  write(folder, "rgba_webp", rgba_webp);
  write(folder, "animated_webp", animated_webp(9, 9, {{2, 2, 7, 5, rgba_webp}}));
}

void write_bands(const std::string& folder) {
  TiffRecipe recipe;
  write(folder, "strips", band_tiff(recipe));
  recipe.bits = 16, recipe.planar = recipe.deflated = true;
  write(folder, "deflated_planes", band_tiff(recipe));
  recipe.planar = false, recipe.tile = 16, recipe.big_endian = true;
  write(folder, "tiles", band_tiff(recipe));
}

void write_idx(const std::string& folder) {
  // The images file, its length in two bytes in front, then the labels file.
  const auto pair = [&](const std::string& name, const Bytes& images, const Bytes& labels) {
    Bytes both = {static_cast<uint8_t>(images.size()), static_cast<uint8_t>(images.size() >> 8)};
    both.insert(both.end(), images.begin(), images.end());
    both.insert(both.end(), labels.begin(), labels.end());
    write(folder, name, both);
  };
  const Bytes images = idx_images(3, 2, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Bytes labels = idx_labels(3, {0, 1, 2});
  pair("plain", images, labels);
  pair("gzipped", gzipped(images), gzipped(labels));
  pair("mixed", images, gzipped(labels));
}

void write_shard_indexes(const std::string& folder) {
  ShardIndex index;
  const auto add = [&](const std::string& name) {
    const std::string text = shard_index_text(index);
    write(folder, name, Bytes(text.begin(), text.end()));
  };
  index.shard_bytes = 10240;
  add("empty");
  index.add(512, 300, 0, "cat/001.jpg");
  index.add(1536, 513, 999'999, "dog/a.b.jpg");
  index.add(4096, 0, -1, "x");
  index.first_source = 7;
  index.source_count = 4;
  add("foreign");
  index.shard_digest = index.pack_identity = "0123456789abcdef0123456789abcdef";
  add("ours");
}

/// Little-endian numbers one after the other.
class Packed {
 public:
  Packed& number(uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  Packed& text(const std::string& words) {
    bytes.insert(bytes.end(), words.begin(), words.end());
    return *this;
  }
  Bytes bytes;
};

/// A node of a B-tree of chunks of one dimension (and the element's): level and what its entries point to.
void add_node(Packed& file, int level, const std::vector<uint64_t>& addresses) {
  file.text("TREE").number(1, 1).number(static_cast<uint64_t>(level), 1).number(addresses.size(), 2);
  file.number(~uint64_t{0}, 8).number(~uint64_t{0}, 8);
  for (size_t i = 0; i < addresses.size(); ++i) {
    file.number(12, 4).number(0, 4).number(4 * i, 8).number(0, 8).number(addresses[i], 8);
  }
}

/// HDF5's object header, layout message and B-tree at places that the seeds choose; see hdf5_chunks.h.
void write_chunk_trees(const std::string& folder) {
  constexpr uint64_t kTree = 16 + 8 + 24;  // behind the header and its message
  const auto head = [](uint64_t root) {
    Packed file;
    file.number(0, 1).number(0, 2);  // one dimension, the header's address
    file.number(1, 1).number(0, 1).number(1, 2).number(1, 4).number(32, 4).number(0, 4);
    file.number(8, 2).number(24, 2).number(0, 4);  // the layout message
    file.number(3, 1).number(2, 1).number(2, 1).number(root, 8).number(4, 4).number(1, 4).number(0, 5);
    return file;
  };
  Packed leaf = head(kTree);
  add_node(leaf, 0, {1000, 1012, 1024});
  write(folder, "leaf", leaf.bytes);
  Packed one_too_many = head(kTree);
  add_node(one_too_many, 0, {1000, 1012, 1024, 1036, 1048});
  write(folder, "one_too_many", one_too_many.bytes);
  Packed two_levels = head(kTree);
  const uint64_t first_leaf = kTree + 24 + 2 * 32;
  add_node(two_levels, 1, {first_leaf, first_leaf + 24 + 32});
  add_node(two_levels, 0, {1000});
  add_node(two_levels, 0, {1012});
  write(folder, "two_levels", two_levels.bytes);
  write(folder, "never_written", head(~uint64_t{0}).bytes);
  Packed continued;
  continued.number(0, 1).number(0, 2).number(1, 1).number(0, 1).number(2, 2).number(1, 4).number(24, 4).number(0, 4);
  continued.number(0x10, 2).number(16, 2).number(0, 4).number(40, 8).number(32, 8);  // the message lies elsewhere
  Packed whole = continued;
  const Packed plain = head(72);
  whole.bytes.insert(whole.bytes.end(), plain.bytes.begin() + 3 + 16, plain.bytes.end());
  add_node(whole, 0, {1000});
  write(folder, "continued", whole.bytes);
}

void write_chunks(const std::string& folder) {
  const auto add = [&](const std::string& name, uint8_t filters, int element, size_t chunk_bytes, const Bytes& stored) {
    Bytes input = {filters, 0, static_cast<uint8_t>(element), static_cast<uint8_t>(chunk_bytes - 1), 0};
    input.insert(input.end(), stored.begin(), stored.end());
    write(folder, name, input);
  };
  const Bytes plain = pattern_pixels(4, 4, 3);
  Bytes deflated(200);
  auto written = static_cast<uLongf>(deflated.size());
  ::compress(deflated.data(), &written, plain.data(), static_cast<uLong>(plain.size()));
  deflated.resize(written);
  add("plain", 0, 0, plain.size(), plain);
  add("shuffled", 2, 1, plain.size(), plain);
  add("deflated", 1, 0, plain.size(), deflated);
  add("shuffled_and_deflated", 2 | 1 << 2, 2, plain.size(), deflated);
}

void write_poses(const std::string& folder) {
  const std::string camera =
      "517.679 0 320\n0 517.679 240.5\n0 0 1\n\n0 0 0 0\n\n0.999947 0.00432361 0.00929419\n-0.00446314 0.999877 "
      "0.0150443\n-0.009228 -0.015085 0.999844\n\n-24.0198 5.8896 -13.2308\n\n640 480\n";
  const auto add = [&](const std::string& name, const std::string& pose, const std::string& camera_text) {
    Packed both;
    write(folder, name, both.text(pose).number(0, 1).text(camera_text).bytes);
  };
  add("straight", "1 0 0\n0 1 0\n0 0 1\n\n10.5 20 900\n", camera);
  add("turned", "0.8 0 0.6\n0 1 0\n-0.6 0 0.8\n\n-100 5e1 1e3\n", "");
  add("far", "1 0 0\n0 1 0\n0 0 1\n\n1e308 1e308 1e308\n", camera);
}

void write_runs(const std::string& folder) {
  const std::string events =
      R"({"event":"start","time":"2026-11-21T05:41:36Z","updates":0,"updates_per_epoch":2})"
      "\n"
      R"({"event":"report","updates":1,"elapsed_seconds":2.5,"train_loss":0.5,"resources":{"cpu_percent":50},)"
      R"("diagnosis":{"verdict":"data-bound","evidence":["a"],"advice":"-j 2","gain_percent":10}})"
      "\n"
      R"({"event":"epoch","updates":2,"times":{"updates":2,"update":{"mean_seconds":1,"p95_seconds":1,"max_seconds":1},)"
      R"("parts":{"wait":{"mean_seconds":1}},"device":{"copy":{"mean_seconds":1}},"sample":{"read":{"mean_seconds":1}}}})"
      "\n"
      R"({"event":"checkpoint","seconds":0.5})"
      "\n"
      R"({"event":"resume","updates":1})"
      "\n"
      R"({"event":"finish","reason":"epochs-done"})"
      "\n";
  const std::string end(1, '\x1E');
  const std::string files = end + "epoch,train_loss,updates\n0,0.5,2\n1,,4\n" + end +
                            "data:\n  data-dir: \"a b\"  # flag\n  mean: [0.5, 0.5]\nseed: 1\n" + end +
                            "true\\predicted,\"a,b\",c\n\"a,b\",3,1\nc,0,4\n" + end +
                            R"({"samples":[{"name":"n","truth":"t","predicted":"p","jpeg":"/9j/4AA="}]})" + end +
                            R"({"predicted":{"host":{"bytes":4,"lines":[{"name":"n","bytes":4}]},"device":)"
                            R"({"name":"cuda:0","bytes":4,"lines":[]}},"observed":{"host_bytes":5}})";
  Packed run, no_reports;
  write(folder, "run", run.text(events + files).bytes);
  write(folder, "begun", no_reports.text(events.substr(0, events.find('\n') + 1) + end + "epoch\n").bytes);
}

/// State dicts of two tensors, and what may stand around them.
void write_weights(const std::string& pickles, const std::string& files) {
  using namespace stoker::fixtures;
  const auto add = [](const std::string& folder, const std::string& name, const std::string& bytes) {
    write(folder, name, Bytes(bytes.begin(), bytes.end()));
  };
  const MadeTensor weight{"fc.weight", stoker::weights::NumberType::f32, {1, 2}, {}, "abcdefgh"};
  const MadeTensor count{"bn1.num_batches_tracked", stoker::weights::NumberType::i64, {}, {}, "12345678"};
  const std::string pickle = state_dict_pickle({weight, count});
  add(pickles, "state_dict", pickle);
  add(pickles, "older_state_dict", state_dict_pickle({weight, count}, /*legacy=*/true));
  MadePickle wrapped;
  wrapped.op("}").text("epoch").integer(3).op("s").text("state_dict").op("}").text("a").tensor(weight).op("ss");
  add(pickles, "wrapped", wrapped.text("lr").op("G" + std::string(8, '\0') + "s").done());
  const std::string named_again("\x80\x04}\x94\x8c\x01x\x8c\x05torch\x8c\x04Size\x93(K\x02t\x85Rs.");
  add(pickles, "protocol_4", named_again);
  add(files, "zip", torch_zip_file({weight, count}));
  add(files, "older", torch_legacy_file({weight, count}));
  MadeMember deflated{"w/data/0", std::string(8, 'a'), /*deflated=*/true}, large{"w/data/1", "12345678"};
  large.zip64 = true;
  large.checksum = false;
  add(files, "deflated",
      made_zip({{"w/data.pkl", pickle}, deflated, large, {"w/byteorder", "little"}}, /*zip64_end=*/true));
  const std::string header = R"({"fc.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  add(files, "safetensors", little_endian(header.size(), 8) + header + "abcdefgh");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_write_seeds FOLDER\n");
    return 64;
  }
  const std::string corpus = argv[1];
  write_jpegs(corpus + "/jpeg_gate");
  write_other_images(corpus + "/image_gate");
  write_bands(corpus + "/bands");
  write_idx(corpus + "/idx");
  write_shard_indexes(corpus + "/shard_index");
  write_chunk_trees(corpus + "/chunk_tree");
  write_chunks(corpus + "/chunk_codec");
  write_poses(corpus + "/head_pose");
  write_runs(corpus + "/run_record");
  write_weights(corpus + "/pickle", corpus + "/weight_file");
  return 0;
}
