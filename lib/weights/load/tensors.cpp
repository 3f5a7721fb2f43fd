// SPDX-License-Identifier: Apache-2.0
#include "weights/load/tensors.h"

#include <ATen/ops/empty.h>

namespace stoker::weights {

at::ScalarType torch_type(NumberType type) {
  constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                       at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};
  return kTypes[static_cast<size_t>(type)];
}

torch::Tensor TensorReader::read(size_t place) {
  const StoredTensor& tensor = file_.tensors.at(place);
  torch::Tensor& storage = storages_[tensor.storage];
  if (!storage.defined()) {
    storage = at::empty({static_cast<int64_t>(file_.storages.at(tensor.storage).bytes)}, at::kByte);
    file_.read_storage(tensor.storage, storage.data_ptr());
  }
  return storage.view(torch_type(tensor.type))
      .as_strided(tensor.shape, tensor.strides, static_cast<int64_t>(tensor.offset));
}

}  // namespace stoker::weights
