// SPDX-License-Identifier: Apache-2.0
// Pickles for tests, opcode by opcode, and those that torch.save() writes of a state dict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/file/weight_file.h"

namespace stoker::fixtures {

/// Appends opcodes; what they mean stands in Python's pickletools.
class MadePickle {
 public:
  std::string bytes = std::string("\x80\x02", 2);

  MadePickle& op(const std::string& raw);  ///< as it is
  MadePickle& text(const std::string& value);
  MadePickle& integer(int64_t value);
  MadePickle& global(const std::string& module, const std::string& name);
  MadePickle& tuple(const std::vector<int64_t>& numbers);
  /// The value of a state dict for one tensor; see MadeTensor.
  MadePickle& tensor(const struct MadeTensor& tensor, bool legacy = false);
  /// A value that another pickle makes.
  MadePickle& value_of(const std::string& pickle) { return op(pickle.substr(2, pickle.size() - 3)); }
  std::string done() const { return bytes + "."; }
};

struct MadeTensor {
  std::string name;
  weights::NumberType type = weights::NumberType::f32;
  std::vector<int64_t> shape, strides;  ///< no strides: contiguous
  std::string storage;                  ///< bytes
  std::string key = "";                 ///< key of the storage; empty: by position
  int64_t offset = 0;
  std::string subclass = "";  ///< a tensor of this class of __main__; empty: a plain one
  bool is_sparse = false;     ///< out of the call that builds sparse ones; its parts are stand-ins
};

/// An OrderedDict of the tensors, as torch.save() writes it, with its `_metadata`.
std::string state_dict_pickle(std::vector<MadeTensor> tensors, bool legacy = false);

/// Whole files of both layouts.
std::string torch_zip_file(const std::vector<MadeTensor>& tensors);
/// The newer layout around any pickle.
std::string torch_zip_file(const std::string& pickle, const std::vector<MadeTensor>& storages);
std::string torch_legacy_file(const std::vector<MadeTensor>& tensors);
/// The older layout around any pickle.
std::string torch_legacy_file(const std::string& pickle, const std::vector<MadeTensor>& storages);

std::string little_endian(uint64_t value, int bytes);

}  // namespace stoker::fixtures
