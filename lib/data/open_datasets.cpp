// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/format.h"
#include "data/idx_source.h"
#include "data/source.h"
#include "data/subset_source.h"

namespace stoker::data {

Datasets open_datasets(const config::DataOptions& options) {
  Datasets datasets;
  const std::vector<std::string> names =
      idx_class_names(options.data_dir, options.num_classes.is_auto() ? 10 : options.num_classes.value());
  datasets.train = open_idx_split(options.data_dir, options.train_split, names);
  if (options.val_split.is_auto() && options.val_fraction > 0) {
    std::tie(datasets.train, datasets.val) = hold_out(datasets.train, options.val_fraction);
  } else {
    datasets.val = open_idx_split(options.data_dir, options.val_split.is_auto() ? "t10k" : options.val_split.value(), names);
  }
  return datasets;
}

std::shared_ptr<const Source> open_split(const config::DataOptions& options, const std::string& split) {
  return open_idx_split(options.data_dir, split,
                        idx_class_names(options.data_dir, options.num_classes.is_auto() ? 10 : options.num_classes.value()));
}

std::shared_ptr<const Source> open_loose_images(const std::string&, bool) { return nullptr; }

SizeProbe probe_sizes(const Source& source, double) {
  std::vector<uint8_t> buffer;
  SampleContent content;
  source.read(0, buffer, content);
  return {content.channels, content.height, content.width};
}

}  // namespace stoker::data
