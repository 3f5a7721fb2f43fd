// SPDX-License-Identifier: Apache-2.0
// Refers to LibTorch's readers of pickles and TorchScript, as train must not: what scripts/check_loaders.sh has to
// find. Compiled, never linked; the declarations only make the names.
#include <string>
#include <vector>

namespace torch {
struct Anything;
Anything& pickle_load(const std::vector<char>& bytes);
namespace jit {
Anything& load(const std::string& path);
}
namespace serialize {
struct InputArchive {
  void load_from(const std::string& path);
};
}  // namespace serialize
}  // namespace torch

void* control(torch::serialize::InputArchive& archive, const std::string& path) {
  archive.load_from(path);
  return path.empty() ? static_cast<void*>(&torch::pickle_load({})) : static_cast<void*>(&torch::jit::load(path));
}
