// SPDX-License-Identifier: Apache-2.0
#include "tests/weights/made_pickle.h"

#include "tests/weights/made_zip.h"

namespace stoker::fixtures {
namespace {

const char* storage_name(weights::NumberType type) {
  constexpr const char* kNames[] = {"DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage", "LongStorage",
                                    "IntStorage",    "ShortStorage", "CharStorage", "ByteStorage",     "BoolStorage"};
  return kNames[static_cast<size_t>(type)];
}

std::vector<MadeTensor> with_keys(std::vector<MadeTensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].key.empty()) tensors[i].key = std::to_string(i);
  }
  return tensors;
}

}  // namespace

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

MadePickle& MadePickle::op(const std::string& raw) {
  bytes += raw;
  return *this;
}

MadePickle& MadePickle::text(const std::string& value) { return op("X" + little_endian(value.size(), 4) + value); }

MadePickle& MadePickle::integer(int64_t value) {
  if (value >= 0 && value < 256) return op("K" + little_endian(static_cast<uint64_t>(value), 1));
  return op("\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8));
}

MadePickle& MadePickle::global(const std::string& module, const std::string& name) {
  return op("c" + module + "\n" + name + "\n");
}

MadePickle& MadePickle::tuple(const std::vector<int64_t>& numbers) {
  op("(");
  for (const int64_t number : numbers) integer(number);
  return op("t");
}

MadePickle& MadePickle::tensor(const MadeTensor& tensor, bool legacy) {
  if (tensor.is_sparse) {
    MadeTensor part = tensor;
    part.is_sparse = false;
    global("torch._utils", "_rebuild_sparse_tensor").op("(").global("torch.serialization", "_get_layout");
    op("(").text("torch.sparse_coo").op("tR(").tensor(part, legacy).tensor(part, legacy);
    return tuple(tensor.shape).op("ttR");
  }
  std::vector<int64_t> strides = tensor.strides;
  if (strides.empty()) {
    strides.resize(tensor.shape.size());
    int64_t stride = 1;
    for (size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) strides[i] = stride;
  }
  const uint64_t count = tensor.storage.size() / weights::bytes_of(tensor.type);
  const bool is_plain = tensor.subclass.empty();
  if (!is_plain) global("torch._tensor", "_rebuild_from_type_v2").op("(");
  global("torch._utils", "_rebuild_tensor_v2");
  if (!is_plain) global("__main__", tensor.subclass);
  op("((").text("storage").global("torch", storage_name(tensor.type));
  text(tensor.key).text("cpu").integer(static_cast<int64_t>(count));
  return op(legacy ? "NtQ" : "tQ")
      .integer(tensor.offset)
      .tuple(tensor.shape)
      .tuple(strides)
      .op("\x89")
      .global("collections", "OrderedDict")
      .op(is_plain ? ")RtR" : ")RtNtR");
}

std::string state_dict_pickle(std::vector<MadeTensor> tensors, bool legacy) {
  MadePickle pickle;
  pickle.global("collections", "OrderedDict").op(")Rq").op(std::string(1, '\0')).op("(");
  for (const MadeTensor& tensor : with_keys(std::move(tensors))) pickle.text(tensor.name).tensor(tensor, legacy);
  pickle.op("u}").text("_metadata").global("collections", "OrderedDict").op(")Rsb");
  return pickle.done();
}

std::string torch_zip_file(const std::vector<MadeTensor>& tensors) {
  return torch_zip_file(state_dict_pickle(tensors), tensors);
}

std::string torch_zip_file(const std::string& pickle, const std::vector<MadeTensor>& storages) {
  std::vector<MadeMember> members = {{"weights/data.pkl", pickle}};
  for (const MadeTensor& tensor : with_keys(storages))
    members.push_back({"weights/data/" + tensor.key, tensor.storage});
  members.push_back({"weights/version", "3\n"});
  return made_zip(members);
}

std::string torch_legacy_file(const std::vector<MadeTensor>& tensors) {
  return torch_legacy_file(state_dict_pickle(tensors, /*legacy=*/true), tensors);
}

std::string torch_legacy_file(const std::string& pickle, const std::vector<MadeTensor>& storages) {
  std::string file("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  file += MadePickle().integer(1001).done();
  file += MadePickle().op("}(").text("protocol_version").integer(1001).text("little_endian").op("\x88u").done();
  file += pickle;
  MadePickle keys;
  keys.op("](");
  for (const MadeTensor& storage : with_keys(storages)) keys.text(storage.key);
  file += keys.op("e").done();
  for (const MadeTensor& storage : storages) {
    file += little_endian(storage.storage.size() / weights::bytes_of(storage.type), 8) + storage.storage;
  }
  return file;
}

}  // namespace stoker::fixtures
