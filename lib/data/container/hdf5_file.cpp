// SPDX-License-Identifier: Apache-2.0
#include "data/container/hdf5_file.h"

#include <hdf5.h>

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "data/container/hdf5_chunks.h"
#include "data/storage/stand_in.h"

namespace stoker::data {
namespace {

constexpr size_t kMaxLines = 40;
constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 30;  ///< limit on a chunk's memory, for each worker
constexpr int64_t kMaxLabelNumbers = int64_t{1} << 27;  ///< 1 GiB as they are read
constexpr int64_t kMaxColumns = 4096;                   ///< limit on columns of labels, as in CSV files

herr_t refuse_external_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) { return -1; }

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) {
    text.replace(at, word.size(), by);
  }
  return text;
}

/// Filters are known here by what undoing them takes; `fail` gets what is not.
template <typename Fail>
std::vector<ChunkFilter> filters_of(hid_t properties, Element element, const Fail& fail) {
  std::vector<ChunkFilter> filters;
  const int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    constexpr size_t kValues = 8, kNameBytes = 64;
    unsigned flags = 0, values[kValues] = {}, config = 0;
    size_t given = kValues;
    char name[kNameBytes] = {};
    const H5Z_filter_t filter =
        H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &given, values, kNameBytes, name, &config);
    const bool is_second_deflate = std::find(filters.begin(), filters.end(), ChunkFilter::deflate) != filters.end();
    if (filter == H5Z_FILTER_DEFLATE && !is_second_deflate) {
      filters.push_back(ChunkFilter::deflate);
    } else if (filter == H5Z_FILTER_SHUFFLE && given >= 1 && values[0] == static_cast<unsigned>(bytes_of(element))) {
      filters.push_back(ChunkFilter::shuffle);
    } else {
      constexpr H5Z_filter_t kLzf = 32000;
      const std::string what = name[0] != 0 ? core::printable(name) : core::format("number {}", filter);
      fail(core::format("its chunks went through the filter {}; deflate and shuffle are read", what),
           std::string(filter == kLzf ? "only h5py has it, in Python: f.create_dataset('NEW', data=f['DATASET'][:], "
                                        "compression='gzip'); where it is installed for all programs, "
                                      : "") +
               "write it again: h5repack -f DATASET:SHUF -f DATASET:GZIP=4 FILE NEWFILE, or unfiltered: h5repack "
               "-f "
               "DATASET:NONE FILE NEWFILE");
    }
  }
  return filters;
}

}  // namespace

struct Hdf5File::Impl {
  explicit Impl(const std::string& path) : bytes(std::make_shared<FileBytes>(path)) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // the library would print; per thread
    H5PLset_loading_state(0);                     // no code from elsewhere
    links = Hdf5Handle(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
    H5Pset_elink_cb(links.id(), refuse_external_link, nullptr);
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access.id(), false,
                        true);  // network storage often has no locks, and readers need none
#endif
    file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
    if (file.is_open()) return;
    std::string begin(static_cast<size_t>(std::min<uint64_t>(64, bytes->size())), '\0');
    bytes->read(0, begin.data(), begin.size());
    refuse_stand_in(bytes->name(), begin, "an HDF5 file");
    throw core::Error(
        core::ErrorKind::data,
        core::format("{} cannot be read as HDF5: {}", core::printable(path), hdf5_library_words()),
        core::ends_with(core::lower_case(path), ".hdf")
            ? "files of HDF4 end in .hdf, too: h4toh5 FILE FILE.h5"
            : "h5dump -H FILE shows whether it is whole; a program that still writes it must close it first");
  }

  /// A group or a data set; closed where there is none of that name in this file.
  Hdf5Handle object(const std::string& name) const {
    return Hdf5Handle(H5Oopen(file.id(), name.empty() ? "/" : name.c_str(), links.id()), H5Oclose);
  }

  Hdf5Handle data_set(const std::string& name) const {
    Hdf5Handle object_found = object(name);
    if (object_found.is_open() && H5Iget_type(object_found.id()) == H5I_DATASET) return object_found;
    fail(name, "there is none of that name in this file", "");
  }

  /// DATASET in `hint` stands for the name.
  [[noreturn]] void fail(const std::string& name, const std::string& cause, const std::string& hint) const {
    throw core::Error(core::ErrorKind::data, where(name) + ": " + cause,
                      replaced(hint, "DATASET", core::printable(name)));
  }
  std::string where(const std::string& name) const {
    return core::format("{}: data set {}", core::printable(bytes->name()), core::printable(name));
  }

  std::string line_of(const std::string& name) const;
  void find_chunks(hid_t data_set, NumberArray& array) const;
  void put_chunk(NumberArray& array, const std::vector<uint64_t>& begin, const ChunkPlace& place) const;

  std::shared_ptr<const FileBytes> bytes;
  Hdf5Handle links, file;
};

Hdf5File::Hdf5File(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
Hdf5File::~Hdf5File() = default;

const std::string& Hdf5File::path() const { return impl_->bytes->name(); }
std::shared_ptr<const FileBytes> Hdf5File::bytes() const { return impl_->bytes; }

bool Hdf5File::has_group(const std::string& name) const {
  const Hdf5Handle object = impl_->object(name);
  return object.is_open() && H5Iget_type(object.id()) == H5I_GROUP;
}

bool Hdf5File::has_data_set(const std::string& name) const {
  const Hdf5Handle object = impl_->object(name);
  return object.is_open() && H5Iget_type(object.id()) == H5I_DATASET;
}

std::string Hdf5File::Impl::line_of(const std::string& name) const {
  const Hdf5Handle found = object(name);
  const Hdf5Handle type(H5Dget_type(found.id()), H5Tclose);
  return core::format("{}  {} {}", core::printable(name), hdf5_type_text(type.id()), sides_text(hdf5_dims(found.id())));
}

std::vector<std::string> Hdf5File::data_set_lines() const {
  std::vector<std::string> names;
  H5Lvisit(
      impl_->file.id(), H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->push_back(name);
        return 0;
      },
      &names);
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    if (!has_data_set(name)) continue;
    if (lines.size() == kMaxLines) {
      lines.push_back("...");
      break;
    }
    lines.push_back(impl_->line_of(name));
  }
  return lines;
}

NumberArray Hdf5File::array(const std::string& name) const {
  const auto fail = [&](const std::string& cause, const std::string& hint = "") { impl_->fail(name, cause, hint); };
  const Hdf5Handle data_set = impl_->data_set(name);
  NumberArray array;
  array.name = name;
  array.dims = hdf5_dims(data_set.id());
  if (array.dims.empty()) fail("it is a single value, not a list of samples");
  if (std::find(array.dims.begin(), array.dims.end(), 0) != array.dims.end()) {
    fail(core::format("it is empty: {}", sides_text(array.dims)));
  }
  const Hdf5Handle type(H5Dget_type(data_set.id()), H5Tclose);
  if (!hdf5_element(type.id(), array.element)) {
    fail(core::format("its numbers are {}; uint8, float16 and float32 (little-endian) are read",
                      hdf5_type_text(type.id())),
         "convert it once, as in Python: f['DATASET_32'] = f['DATASET'][...].astype('<f4'), and name it with "
         "--hdf5");
  }
  hsize_t user_block = 0;
  const Hdf5Handle creation(H5Fget_create_plist(impl_->file.id()), H5Pclose);
  if (H5Pget_userblock(creation.id(), &user_block) < 0 || user_block != 0) {
    fail(core::format("the file begins with {} bytes of another program", user_block),
         "remove them: h5unjam -i FILE -o NEWFILE");
  }
  const Hdf5Handle properties(H5Dget_create_plist(data_set.id()), H5Pclose);
  if (H5Pget_external_count(properties.id()) != 0) {
    fail("its numbers lie in other files (external storage)", "put them into one file: h5repack FILE NEWFILE");
  }
  switch (H5Pget_layout(properties.id())) {
    case H5D_CONTIGUOUS: {
      const haddr_t offset = H5Dget_offset(data_set.id());
      if (offset == HADDR_UNDEF) fail("it was never written");
      array.offset = offset;
      return array;
    }
    case H5D_CHUNKED:
      array.filters = filters_of(properties.id(), array.element, fail);
      impl_->find_chunks(data_set.id(), array);
      return array;
    case H5D_VIRTUAL:
      fail("it is a virtual data set, whose numbers lie in other ones",
           "put them into one file: h5repack -l DATASET:CONTI FILE NEWFILE");
      break;
    default:
      fail("it is stored in a way that is not read here (compact)",
           "write it in one piece: h5repack -l DATASET:CONTI FILE NEWFILE");
  }
  return array;
}

void Hdf5File::Impl::find_chunks(hid_t data_set, NumberArray& array) const {
  const Hdf5Handle properties(H5Dget_create_plist(data_set), H5Pclose);
  hsize_t sides[kMaxRank] = {};
  const int rank = H5Pget_chunk(properties.id(), kMaxRank, sides);
  if (rank != static_cast<int>(array.dims.size())) fail(array.name, "its chunks have other dimensions", "");
  uint64_t chunks = 1, chunk_numbers = 1;
  for (size_t i = 0; i < array.dims.size(); ++i) {
    array.chunk.push_back(static_cast<int64_t>(std::max<hsize_t>(1, sides[i])));
    const bool too_many = __builtin_mul_overflow(chunks, static_cast<uint64_t>(array.grid(i)), &chunks);
    const auto element = static_cast<uint64_t>(bytes_of(array.element));
    if (__builtin_mul_overflow(chunk_numbers, static_cast<uint64_t>(array.chunk[i]), &chunk_numbers) ||
        chunk_numbers > kMaxChunkBytes / element) {
      fail(array.name, core::format("a chunk of it takes more than {} MiB of memory", kMaxChunkBytes >> 20),
           "write it with smaller chunks: h5repack -l DATASET:CHUNK=... FILE NEWFILE");
    }
    if (too_many || chunks > bytes->size())
      fail(array.name, "it has more chunks than the file has bytes",
           "the file is incomplete: its writer did not finish");
  }
  array.places.resize(chunks);
  const ChunkedDataSet searched{file.id(), data_set, *bytes, where(array.name), array.dims.size(), chunks};
  list_chunks(searched,
              [&](const std::vector<uint64_t>& begin, const ChunkPlace& place) { put_chunk(array, begin, place); });
}

void Hdf5File::Impl::put_chunk(NumberArray& array, const std::vector<uint64_t>& begin, const ChunkPlace& place) const {
  uint64_t at = 0;
  for (size_t i = 0; i < array.dims.size(); ++i) {
    const auto side = static_cast<uint64_t>(array.chunk[i]);
    if (begin[i] % side != 0 || begin[i] >= static_cast<uint64_t>(array.dims[i])) {
      fail(array.name, core::format("a chunk begins at {}, where none can", begin[i]),
           "get the file again, or write it again");
    }
    at = at * static_cast<uint64_t>(array.grid(i)) + begin[i] / side;
  }
  array.places[at] = place;
}

LabelArray Hdf5File::labels(const std::string& name, int64_t samples) const {
  const auto fail = [&](const std::string& cause, const std::string& hint = "") { impl_->fail(name, cause, hint); };
  const Hdf5Handle data_set = impl_->data_set(name);
  LabelArray labels;
  labels.name = name;
  labels.dims = hdf5_dims(data_set.id());
  while (labels.dims.size() > 1 && labels.dims.back() == 1) labels.dims.pop_back();
  const Hdf5Handle type(H5Dget_type(data_set.id()), H5Tclose);
  labels.type = hdf5_type_text(type.id());
  if (labels.dims.empty() || labels.dims.size() > 2 || labels.dims.back() < 1) {
    fail(core::format("labels are [samples] or [samples, columns], not {}", sides_text(hdf5_dims(data_set.id()))));
  }
  if (labels.dims[0] != samples) fail(core::format("{} labels for {} samples", labels.dims[0], samples));
  if (labels.columns() > kMaxColumns) {
    fail(core::format("{} columns; there may be {}", labels.columns(), kMaxColumns));
  }
  const H5T_class_t kind = H5Tget_class(type.id());
  labels.is_whole = kind == H5T_INTEGER || kind == H5T_ENUM;
  if (!labels.is_whole && kind != H5T_FLOAT) {
    fail(core::format("labels are numbers, not {}", labels.type), "write the number of each class, from 0 on");
  }
  if (H5Dget_storage_size(data_set.id()) == 0) fail("it was never written");
  if (samples > kMaxLabelNumbers / labels.columns()) {
    fail(core::format("it has more than {} numbers", kMaxLabelNumbers), "split the samples among several files");
  }
  labels.values.resize(static_cast<size_t>(samples * labels.columns()));
  if (H5Dread(data_set.id(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.values.data()) < 0) {
    fail("it cannot be read: " + hdf5_library_words(),
         "h5dump -H -p -d DATASET FILE shows its filters; one that is missing here is undone where it is installed: "
         "h5repack -f NONE FILE NEWFILE");
  }
  return labels;
}

}  // namespace stoker::data
