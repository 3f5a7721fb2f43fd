// SPDX-License-Identifier: Apache-2.0
// Data sets that are arrays in files, as they are published or as Python and NumPy write them: CIFAR, IDX, .npy.
#include <gtest/gtest.h>

#include "tests/data/dataset/read_data_set.h"

namespace stoker::data {
namespace {

/// Records of CIFAR: labels before planes.
std::string records(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) {
    text += label;
    for (int plane = 0; plane < 3; ++plane) text += std::string(1024, static_cast<char>(plane + 1));
  }
  return text;
}

std::string byte(int value) { return std::string(1, static_cast<char>(value)); }

/// A string of Python 2 in a pickle.
std::string py2_text(const std::string& text) { return "U" + byte(static_cast<int>(text.size())) + text; }
std::string word(uint32_t value) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += byte(static_cast<int>(value >> (8 * i) & 0xFF));
  return text;
}

/// A batch as cPickle of Python 2 wrote it: {"data": uint8[n, 3072], <key>: [labels]}.
std::string python_batch(const std::string& key, const std::vector<int>& labels) {
  const std::string pixels = [&] {
    std::string all;
    for (size_t i = 0; i < labels.size(); ++i) all += records({""});
    return all;
  }();
  std::string list = "](";
  for (const int label : labels) list += "K" + byte(label);
  return "\x80\x02}(" + py2_text("data") + "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK" + byte(0) +
         "\x85" + py2_text("b") + "\x87R(K\x01K" + byte(static_cast<int>(labels.size())) + "M" + byte(0) + byte(12) +
         "\x86" + "cnumpy\ndtype\n" + py2_text("u1") + "K" + byte(0) + "K\x01\x87R(K\x03" + py2_text("|") +
         "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK" + byte(0) + "tb\x89T" + word(static_cast<uint32_t>(pixels.size())) +
         pixels + "tb" + py2_text(key) + list + "eu.";
}

std::string python_names(const std::string& key, const Names& names) {
  std::string list = "](";
  for (const std::string& name : names) list += py2_text(name);
  return "\x80\x02}" + py2_text(key) + list + "es.";
}

std::string npy(const std::string& type, const std::string& shape, const std::string& bytes,
                const char* by_columns = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + by_columns + ", 'shape': (" + shape + "), }";
  header += std::string(64 - (header.size() + 11) % 64, ' ') + "\n";
  return "\x93NUMPY\x01" + byte(0) + byte(static_cast<int>(header.size() & 0xFF)) +
         byte(static_cast<int>(header.size() >> 8)) + header + bytes;
}

void write_mnist(const TempFolder& folder, const std::string& before, const std::string& dash, const std::string& split,
                 uint8_t label = 1) {
  folder.write(before + split + "-images" + dash + "idx3-ubyte", idx_images(2, 1, 1, {1, 2}));
  folder.write(before + split + "-labels" + dash + "idx1-ubyte", idx_labels(2, {0, label}));
}

TEST(ArrayDataTest, ArraysAreReadAsTheirArchivesUnpack) {
  const auto cifar_bin = [](const std::string& folder, bool hundred) {
    return [=](const TempFolder& at) {
      const std::string coarse = hundred ? byte(9) : "";
      at.write(folder + (hundred ? "train.bin" : "data_batch_1.bin"), records({coarse + byte(1), coarse + byte(0)}));
      at.write(folder + (hundred ? "test.bin" : "test_batch.bin"), records({coarse + byte(1)}));
      at.write(folder + (hundred ? "fine_label_names.txt" : "batches.meta.txt"), "apple\nbee\n\n");
    };
  };
  const auto cifar_py = [](const std::string& folder, bool hundred) {
    return [=](const TempFolder& at) {
      const std::string key = hundred ? "fine_labels" : "labels";
      at.write(folder + (hundred ? "train" : "data_batch_1"), python_batch(key, {1, 0}));
      at.write(folder + (hundred ? "test" : "test_batch"), python_batch(key, {1}));
      at.write(folder + (hundred ? "meta" : "batches.meta"),
               python_names(hundred ? "fine_label_names" : "label_names", {"apple", "bee"}));
    };
  };
  expect_all({
      {"Cifar10Binary", cifar_bin("", false), "bee apple / bee of apple|bee"},
      {"Cifar10BinaryUnpacked", cifar_bin("cifar-10-batches-bin/", false), "bee apple / bee of apple|bee"},
      {"Cifar100Binary", cifar_bin("cifar-100-binary/", true), "bee apple / bee of apple|bee"},
      {"Cifar10Python", cifar_py("cifar-10-batches-py/", false), "bee apple / bee of apple|bee"},
      {"Cifar100Python", cifar_py("", true), "bee apple / bee of apple|bee"},
      {"CifarCutShort", [](const TempFolder& at) { at.write("data_batch_1.bin", records({byte(1)}).substr(1)); },
       "data_batch_1.bin: 3072 bytes are not whole records of 3073"},
      {"CifarPickleDamaged", [](const TempFolder& at) { at.write("data_batch_1", "\x80\x02}"); },
       "it is cut short # unpack the archive again"},
      {"MnistOfWindows",
       [](const TempFolder& at) {
         write_mnist(at, "", ".", "train");
         write_mnist(at, "", ".", "t10k");
       },
       "0 1 / 0 1 of 0|1|2|3|4|5|6|7|8|9"},
      {"MnistInOtherLetters",
       [](const TempFolder& at) {
         for (const char* const split : {"Train", "t10k"}) {
           at.write(std::string(split) + "_images.idx3_ubyte.bin", idx_images(1, 1, 1, {1}));
           at.write(std::string(split) + "_labels.idx1_ubyte.bin", idx_labels(1, {3}));
         }
       },
       "3 / 3 of 0|1"},
      {"MnistInFoldersOfItsFiles",
       [](const TempFolder& at) {
         for (const char* const split : {"train", "t10k"}) {
           const std::string name = split;
           at.write(name + "-images-idx3-ubyte/" + name + "-images.idx3-ubyte", idx_images(1, 1, 1, {1}));
           at.write(name + "-labels-idx1-ubyte/" + name + "-labels.idx1-ubyte", idx_labels(1, {3}));
         }
       },
       "3 / 3 of 0|1"},
      {"MnistRaw",
       [](const TempFolder& at) {
         write_mnist(at, "MNIST/raw/", "-", "train");
         write_mnist(at, "MNIST/raw/", "-", "t10k");
       },
       "0 1 / 0 1 of 0|1"},
      {"EmnistLetters",
       [](const TempFolder& at) {
         write_mnist(at, "gzip/emnist-letters-", "-", "train", 26);
         write_mnist(at, "gzip/emnist-letters-", "-", "test", 26);
       },
       "0 26 / 0 26 of 0|1"},
      {"SeveralOfEmnist",
       [](const TempFolder& at) {
         write_mnist(at, "emnist-letters-", "-", "train");
         write_mnist(at, "emnist-digits-", "-", "train");
       },
       "choose one: --train-split emnist-digits-train --val-split emnist-digits-test"},
      {"NumpyArrays",
       [](const TempFolder& at) {
         at.write("x_train.npy", npy("|u1", "2, 1, 2, 3", std::string(12, 'x')));
         at.write("y_train.npy", npy("<i8", "2,", byte(1) + std::string(15, '\0')));
         at.write("X_test.npy", npy("|u1", "1, 3, 1, 2", std::string(6, 'x')));
         at.write("test_labels.npy", npy("<f4", "1, 1", std::string("\0\0\x80\x3f", 4)));
       },
       "1 0 / 1 of 0|1"},
      {"NumpyFloats",
       [](const TempFolder& at) {
         at.write("x_train.npy", npy("<f4", "1, 1, 1", std::string(4, '\0')));
         at.write("y_train.npy", npy("|u1", "1,", byte(1)));
       },
       "x_train.npy: images of float32 [1, 1, 1], values 0 to 0 # images are uint8 [N, H, W] or [N, H, W, 3]; cp -n "},
      {"NumpyOneHot",
       [](const TempFolder& at) {
         for (const char* const split : {"train", "val"}) {
           at.write(std::string("images_") + split + ".npy", npy("|u1", "2, 1, 1", "ab"));
           at.write(std::string("labels_") + split + ".npy", npy("|u1", "2, 3", std::string("\0\0\1\1\0\0", 6)));
         }
       },
       "2 0 / 2 0 of 0|1|2"},
  });
}

/// A pickle as Python 3 writes it: how a text of bytes stands in it depends on the protocol.
class Python3 {
 public:
  explicit Python3(int protocol, bool has_bytes = true) : protocol_(protocol), has_bytes_(has_bytes) {}

  /// b"word", or "word" where keys are text.
  std::string key(const std::string& word) const { return has_bytes_ ? bytes(word) : text(word); }
  std::string text(const std::string& word) const {
    return protocol_ < 4 ? "X" + data::word(static_cast<uint32_t>(word.size())) + word
                         : "\x8c" + byte(static_cast<int>(word.size())) + word;
  }
  std::string bytes(const std::string& content) const {
    if (protocol_ > 2) return "B" + data::word(static_cast<uint32_t>(content.size())) + content;
    std::string utf8;
    for (const char each : content) {
      const auto value = static_cast<uint8_t>(each);
      utf8 += value < 0x80 ? byte(value) : byte(0xC0 | value >> 6) + byte(0x80 | (value & 0x3F));
    }
    return "c_codecs\nencode\nX" + data::word(static_cast<uint32_t>(utf8.size())) + utf8 + text("latin1") + "\x86R";
  }
  std::string global(const std::string& module, const std::string& name) const {
    return protocol_ < 4 ? "c" + module + "\n" + name + "\n" : text(module) + text(name) + "\x93";
  }
  std::string type(const std::string& code, const std::string& order) const {
    return global("numpy", "dtype") + text(code) + "\x89\x88\x87R(K\x03" + text(order) + "NNNJ\xff\xff\xff\xffJ" +
           "\xff\xff\xff\xffK" + byte(0) + "tb";
  }
  /// A shape of one or two sides below 65536.
  std::string shape(const std::vector<int>& sides) const {
    std::string all;
    for (const int side : sides) all += "M" + byte(side & 0xFF) + byte(side >> 8);
    return all + (sides.size() == 1 ? "\x85" : "\x86");
  }
  std::string array(const std::string& code, const std::string& order, const std::vector<int>& sides,
                    const std::string& content, bool by_columns = false) const {
    if (protocol_ == 5) {
      return global("numpy._core.numeric", "_frombuffer") + "(\x96" +
             data::word(static_cast<uint32_t>(content.size())) + data::word(0) + content + type(code, order) +
             shape(sides) + text(by_columns ? "F" : "C") + "tR";
    }
    return global("numpy.core.multiarray", "_reconstruct") + global("numpy", "ndarray") + "K" + byte(0) + "\x85" +
           bytes("b") + "\x87R(K\x01" + shape(sides) + type(code, order) + (by_columns ? "\x88" : "\x89") +
           bytes(content) + "tb";
  }
  std::string list(const std::vector<std::string>& values) const {
    std::string all = "](";
    for (const std::string& value : values) all += value;
    return all + "e";
  }
  std::string number(int value) const { return "K" + byte(value); }
  std::string scalar(int value) const {
    return global("numpy.core.multiarray", "scalar") + type("i2", "<") + bytes(byte(value) + byte(0)) + "\x86R";
  }
  std::string file(const std::string& items) const { return "\x80" + byte(protocol_) + "}(" + items + "u."; }

 private:
  const int protocol_;
  const bool has_bytes_;
};

/// CIFAR's planes of two images, the second one with a value that is two bytes of UTF-8.
std::string two_images() { return records({""}) + std::string(3072, '\xe9'); }

TEST(ArrayDataTest, PicklesOfPython3AreReadInEachProtocolWithKeysOfTextOrBytes) {
  using Write = std::function<std::string(const Python3&)>;
  const std::pair<const char*, Write> data[] = {
      {"array",
       [](const Python3& python) {
         return python.array("u1", "|", {2, 3072}, two_images());
       }},
      {"bytes", [](const Python3& python) { return python.bytes(two_images()); }},
      {"columns", [](const Python3& python) {
         std::string columns;
         for (size_t i = 0; i < 3072; ++i) columns += std::string(1, two_images()[i]) + '\xe9';
         return python.array("u1", "|", {2, 3072}, columns, /*by_columns=*/true);
       }}};
  const std::pair<const char*, Write> labels[] = {
      {"list",
       [](const Python3& python) {
         return python.list({python.number(1), python.number(0)});
       }},
      {"scalars",
       [](const Python3& python) {
         return python.list({python.scalar(1), python.scalar(0)});
       }},
      {"array", [](const Python3& python) { return python.array("i2", ">", {2}, std::string("\0\1\0\0", 4)); }}};
  for (int protocol = 2; protocol <= 5; ++protocol) {
    for (const bool has_bytes : {true, false}) {
      const Python3 python(protocol, has_bytes);
      for (const auto& [data_name, write_data] : data) {
        for (const auto& [labels_name, write_labels] : labels) {
          const TempFolder folder;
          for (const char* const name : {"data_batch_1", "test_batch"}) {
            folder.write(name,
                         python.file(python.key("filenames") + python.list({python.key("x.png")}) + python.key("data") +
                                     write_data(python) + python.key("labels") + write_labels(python)));
          }
          folder.write("batches.meta",
                       python.file(python.key("label_names") + python.list({python.key("apple"), python.key("bee")})));
          config::DataOptions options;
          options.data_dir = folder.path();
          const std::string which =
              core::format("protocol {}, bytes {}, {} and {}", protocol, has_bytes, data_name, labels_name);
          ASSERT_EQ(read_as(folder, options), "bee apple / bee apple of apple|bee") << which;
          const Datasets read = open_datasets(options);
          std::vector<uint8_t> buffer;
          SampleContent first, second;
          ASSERT_EQ(read.train->read(0, buffer, first) + read.train->read(1, buffer, second), "") << which;
          EXPECT_EQ(std::vector<uint8_t>(first.bytes, first.bytes + 4), (std::vector<uint8_t>{1, 2, 3, 1})) << which;
          EXPECT_EQ(std::vector<uint8_t>(second.bytes, second.bytes + 2), (std::vector<uint8_t>{0xe9, 0xe9})) << which;
        }
      }
    }
  }
}

TEST(ArrayDataTest, PicklesWithOtherContentAreRefusedWithWhatTheyHold) {
  const Python3 python(4);
  const auto batch = [&](const std::string& data, const std::string& labels) {
    return [=](const TempFolder& at) {
      at.write("data_batch_1", python.file(python.key("data") + data + python.key("labels") + labels));
    };
  };
  const std::string labels = python.list({python.number(1), python.number(0)});
  expect_all({
      {"Floats", batch(python.array("f4", "<", {1, 3072}, std::string(4 * 3072, '\0')), labels),
       "its 'data' is float32 [1, 3072] # it is a dictionary of 'data', uint8 [N, 3072] from 0 to 255, and 'labels'"},
      {"FewerLabels", batch(python.bytes(two_images()), python.list({python.number(1)})),
       "it has 1 labels for 2 images"},
      {"PartOfAnImage", batch(python.bytes("abc"), labels),
       "its 'data' has 3 bytes, which are not whole images of 3072"},
      {"LabelsOfText", batch(python.bytes(two_images()), python.list({python.text("a"), python.text("b")})),
       "entry 0 of 'labels' is no whole number"},
      {"AFunctionThatIsNotKnown", batch(python.global("os", "system") + python.text("true") + "\x85R", labels),
       "its 'data' is no array of NumPy and no bytes"},
      {"AnotherEncoding", batch("c_codecs\nencode\n" + python.text("abc") + python.text("rot13") + "\x86R", labels),
       "its 'data' is no array of NumPy and no bytes"},
      {"Protocol0", [](const TempFolder& at) { at.write("data_batch_1", "(dp0\nVdata\np1\n."); },
       "unpack the archive again: cifar-10-binary.tar.gz"},
  });
}

TEST(ArrayDataTest, ArraysOfOtherTypesAndShapesAreReadOrNamedWithTheLineOfPythonThatMendsThem) {
  const auto arrays = [](const std::string& images, const std::string& labels) {
    return [=](const TempFolder& at) {
      for (const char* const split : {"train", "val"}) {
        at.write(core::format("x_{}.npy", split), images);
        at.write(core::format("y_{}.npy", split), labels);
      }
    };
  };
  const std::string two = npy("|u1", "2,", std::string("\0\1", 2)), gray = npy("|u1", "2, 1, 1", "ab");
  const auto of = [&](const std::string& type, const std::string& shape, const std::string& bytes) {
    return arrays(npy(type, shape, bytes), two);
  };
  const auto labels = [&](const std::string& type, const std::string& shape, const std::string& bytes) {
    return arrays(gray, npy(type, shape, bytes));
  };
  constexpr char kRead[] = "0 1 / 0 1 of 0|1";
  expect_all({
      {"Bools", of("|b1", "2, 1, 1", std::string("\0\1", 2)), kRead},
      {"Rgba", of("|u1", "2, 2, 1, 4", "abcdefghabcdefgh"), kRead},
      {"RgbaFirst", of("|u1", "2, 4, 2, 2", std::string(32, 'a')), kRead},
      {"Int64", of("<i8", "1, 1, 1", byte(200) + std::string(7, '\0')),
       "x_train.npy: images of int64 [1, 1, 1], values 200 to 200 # images are uint8 [N, H, W] or [N, H, W, 3]; "
       "cp -n DIR/x_train.npy DIR/x_train.npy.orig; python3 -c "
       "\"import numpy as np; x = np.load('DIR/x_train.npy'); np.save('DIR/x_train.npy', x.astype('uint8'))\""},
      {"Uint16", of("<u2", "1, 1, 1", byte(255) + byte(255)), "images of uint16 [1, 1, 1], values 65535 to 65535 # "},
      {"Uint16InBytes", of("<u2", "1, 1, 1", byte(255) + byte(255)),
       "np.save('DIR/x_train.npy', (x // 256).astype('uint8'))"},
      {"Uint16Of12Bits", of("<u2", "2, 1, 1", byte(0) + byte(0) + byte(255) + byte(15)),
       "np.interp(x, (0, 4095), (0, 255)).round().astype('uint8')"},
      {"FloatsFromMinus1", of("<f4", "1, 1, 1", std::string("\0\0\x80\xbf", 4)), "np.interp(x, (-1, 1), (0, 255))"},
      {"HalfFloats", of("<f2", "1, 1, 1", "ab"), "images of float16 [1, 1, 1] # "},
      {"Objects", of("|O", "2,", "ab"),
       "images of object [2] # images are uint8 [N, H, W] or [N, H, W, 3]: write images"},
      {"Flat", of("|u1", "2, 48", std::string(96, 'a')), "x = x.reshape(-1, 3, 4, 4); np.save('DIR/x_train.npy', x)"},
      {"OfMatlab", of("|u1", "2, 2, 3, 5", std::string(60, 'a')), "x = x.transpose(3, 0, 1, 2); np.save("},
      {"SixBands", of("|u1", "1, 7, 7, 6", std::string(294, 'a')), "x = x[..., :3]; np.save("},
      {"LabelsOfBools", labels("|b1", "2,", std::string("\0\1", 2)), kRead},
      {"LabelsOfUint64", labels("<u8", "2,", std::string("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16)), kRead},
      {"BigEndianLabels", labels(">i2", "2,", std::string("\0\0\0\1", 4)), kRead},
      {"NamesAsLabels", labels("<U1", "2,", std::string("a\0\0\0b\0\0\0", 8)),
       "y_train.npy: its labels are no numbers, of text [2] # labels are whole numbers from 0, one per image; cp -n "},
      {"Scores", labels("<f4", "2, 2", std::string("\0\0\0?\0\0\0?\0\0\0?\0\0\0?", 16)), "x.argmax(axis=1)"},
  });
  const auto first_pixels = [&](const std::string& images) {
    const TempFolder folder;
    arrays(images, two)(folder);
    config::DataOptions options;
    options.data_dir = folder.path();
    const Datasets read = open_datasets(options);
    std::vector<uint8_t> buffer;
    SampleContent content;
    EXPECT_EQ(read.train->read(1, buffer, content), "");
    return std::vector<int>(content.bytes, content.bytes + content.size);
  };
  using Pixels = std::vector<int>;
  EXPECT_EQ(first_pixels(npy("|b1", "2, 1, 2", std::string("\0\0\0\1", 4))), (Pixels{0, 255}));
  EXPECT_EQ(first_pixels(npy("|u1", "2, 2, 1, 4",
                             std::string(8, 'a') + byte(10) + byte(20) + byte(255) + byte(51) + "abc" + byte(0))),
            (Pixels{2, 4, 51, 0, 0, 0}));
  EXPECT_EQ(first_pixels(npy("|u1", "2, 1, 2, 3", "ajbkcldmengo", "True")), (Pixels{'j', 'l', 'n', 'k', 'm', 'o'}))
      << "columns first";
}

}  // namespace
}  // namespace stoker::data
