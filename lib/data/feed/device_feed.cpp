// SPDX-License-Identifier: Apache-2.0
#include "data/feed/device_feed.h"

#include <deque>

#include "data/feed/feed_path.h"
#include "data/feed/normalise.h"

namespace stoker::data {
namespace {

/// Float tensors without another reference are used again: fresh ones cost a page fault per 4 KiB.
class TensorPool {
 public:
  torch::Tensor take(const std::vector<int64_t>& shape, torch::MemoryFormat format) {
    for (const torch::Tensor& tensor : tensors_) {
      if (tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.sizes() == torch::IntArrayRef(shape)) {
        return tensor;
      }
    }
    if (tensors_.size() == kCapacity) tensors_.pop_front();
    tensors_.push_back(torch::empty(shape, torch::TensorOptions().dtype(torch::kFloat32).memory_format(format)));
    return tensors_.back();
  }

 private:
  static constexpr size_t kCapacity = 3;  // one that the consumer holds, and two on the way
  std::deque<torch::Tensor> tensors_;
};

/// The network runs on the CPU: normalise into a float tensor, give the buffer back at once.
class CpuFeed : public FeedPath {
 public:
  CpuFeed(Loader& loader, const FeedSettings& settings)
      : loader_(loader),
        settings_(settings),
        table_(make_normal_table(settings.mean, settings.std)),
        line_(make_normal_line(settings.mean, settings.std)) {}

  void drop() override {}

  bool next(Batch& batch, bool may_stop) override {
    HostBatch host;
    if (!loader_.next(host, may_stop)) return false;
    batch = Batch();  // the caller's tensors become free for the pool
    batch.images = normalised(settings_.resident ? settings_.resident->images_of(host.images) : host.images);
    if (settings_.on_copy) settings_.on_copy(host);
    batch.labels = host.labels.clone();
    batch.targets = host.targets.clone();
    batch.samples = std::move(host.samples);
    batch.planned_images = host.planned_images;
    loader_.release(host);
    return true;
  }

 private:
  torch::Tensor normalised(const torch::Tensor& pixels) {  // see single_images()
    const torch::Tensor frames = single_images(pixels);
    const int64_t images = frames.size(0), height = frames.size(1), width = frames.size(2), channels = frames.size(3);
    const torch::Tensor out = pool_.take({images, channels, height, width}, settings_.memory_format());
    if (frames.scalar_type() == torch::kUInt8) {
      normalise(frames.data_ptr<uint8_t>(), images, height * width, channels, table_, settings_.channels_last,
                out.data_ptr<float>());
    } else {
      const torch::Tensor floats = frames.to(torch::kFloat32);
      normalise(floats.data_ptr<float>(), images, height * width, channels, line_, settings_.channels_last,
                out.data_ptr<float>());
    }
    return as_clips(out, pixels);
  }

  Loader& loader_;
  const FeedSettings settings_;
  const NormalTable table_;
  const NormalLine line_;
  TensorPool pool_;
};

}  // namespace

DeviceFeed::DeviceFeed(std::shared_ptr<Loader> loader, FeedSettings settings)
    : loader_(std::move(loader)),
      path_(settings.device.is_cpu() ? std::make_unique<CpuFeed>(*loader_, settings)
                                     : make_copy_ahead_feed(*loader_, settings)) {}
DeviceFeed::~DeviceFeed() = default;

void DeviceFeed::begin_epoch(int64_t epoch, int64_t first_batch) {
  path_->drop();
  loader_->begin_epoch(epoch, first_batch);
}

bool DeviceFeed::next(Batch& batch, bool may_stop) { return path_->next(batch, may_stop); }

}  // namespace stoker::data
