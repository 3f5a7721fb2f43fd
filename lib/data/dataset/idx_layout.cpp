// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>-images-idx3-ubyte[.gz] and <split>-labels-idx1-ubyte[.gz].
#include "data/dataset/idx_source.h"
#include "data/layout.h"

namespace stoker::data {
namespace {

class IdxLayout : public Layout {
 public:
  explicit IdxLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override {
    return !find_idx_file(options_.data_dir, split, "images-idx3").empty();
  }

  std::vector<std::string> class_names(const std::string&) const override {
    constexpr int64_t kUsual = 10;  // of MNIST and its kin; the files do not say
    return idx_class_names(options_.data_dir, options_.num_classes.is_auto() ? kUsual : options_.num_classes.value());
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>&) const override {
    return open_idx_split(options_.data_dir, split, class_names);
  }

 private:
  const config::DataOptions options_;
};

}  // namespace

std::unique_ptr<Layout> make_idx_layout(const config::DataOptions& options) {
  return std::make_unique<IdxLayout>(options);
}

}  // namespace stoker::data
