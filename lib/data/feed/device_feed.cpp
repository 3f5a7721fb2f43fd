// SPDX-License-Identifier: Apache-2.0
#include "data/feed/device_feed.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <deque>
#include <optional>

#include "core/error.h"
#include "core/log.h"
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

// Streams and events go through LibTorch's device-neutral interface: no headers of a device's toolkit are
// needed.

namespace {

/// Copies the next batch on a stream of its own while the current one is computed with.
class CopyAheadFeed : public FeedPath {
 public:
  CopyAheadFeed(Loader& loader, const FeedSettings& settings)
      : loader_(loader),
        settings_(settings),
        device_(settings.device.type()),
        copy_stream_(device_.getStreamFromGlobalPool(settings.device, /*isHighPriority=*/true)) {
    const auto channels = static_cast<int64_t>(settings.mean.size());
    NormalLine line = make_normal_line(settings.mean, settings.std);
    const auto on_device = [&](const std::vector<float>& values) {
      return torch::tensor(values).view({1, channels, 1, 1}).to(settings.device);
    };
    float_scale_ = on_device(line.scale);
    offset_ = on_device(line.offset);
    for (size_t c = 0; c < settings.mean.size(); ++c) line.scale[c] = static_cast<float>(1 / (255 * settings.std[c]));
    byte_scale_ = on_device(line.scale);
  }
  ~CopyAheadFeed() override {
    try {
      finish_copies();
    } catch (const std::exception& error) {  // the device is lost; its memory goes with the process
      core::log_debug("while closing the device feed: {}", error.what());
    }
  }

  void drop() override { finish_copies(); }

  bool next(Batch& batch, bool may_stop) override {
    if (!ahead_ && !start_copy(may_stop)) return false;
    Copy current = std::move(*ahead_);
    ahead_.reset();
    const c10::Stream compute_stream = device_.getStream(settings_.device);
    current.done.block(compute_stream);
    for (const torch::Tensor& tensor : {current.pixels, current.labels, current.targets})
      tensor.record_stream(compute_stream);
    batch.images = normalised(settings_.resident ? settings_.resident->images_of(current.pixels) : current.pixels);
    batch.labels = current.labels;
    batch.targets = current.targets;
    batch.samples = current.host.samples;
    batch.planned_images = current.host.planned_images;
    copying_.push_back(std::move(current));
    copy_ahead();
    return true;
  }

 private:
  struct Copy {
    HostBatch host;                         ///< holds the buffer until the copy is done
    torch::Tensor pixels, labels, targets;  ///< as in `host`, on the device; recipes instead of pixels
    c10::Event done;
  };

  /// Queues the copy of the next batch; false when there is none.
  bool start_copy(bool may_stop) {
    // Every loader lets two batches be held: this one and the one before.
    if (copying_.size() > 1) device_.synchronizeStream(copy_stream_);
    release_copied();
    HostBatch host;
    if (!loader_.next(host, may_stop)) return false;
    const c10::StreamGuard guard(copy_stream_);
    Copy copy{std::move(host), {}, {}, {}, c10::Event(settings_.device.type())};
    copy.pixels = copy.host.images.to(settings_.device, /*non_blocking=*/true);
    copy.labels = copy.host.labels.to(settings_.device, /*non_blocking=*/true);
    copy.targets = copy.host.targets.to(settings_.device, /*non_blocking=*/true);
    copy.done.record(copy_stream_);
    ahead_.emplace(std::move(copy));
    return true;
  }

  /// Never waits for the loader: the batch in hand is more urgent. Errors of the next batch are thrown
  /// when it is requested.
  void copy_ahead() {
    release_copied();
    try {
      if (loader_.is_ready()) start_copy(/*may_stop=*/false);
    } catch (const core::Error&) {
    }
  }

  /// Gives buffers back whose copies are done.
  void release_copied() {
    while (!copying_.empty() && copying_.front().done.query()) {
      loader_.release(copying_.front().host);
      copying_.pop_front();
    }
  }

  /// Afterwards no buffer is read by the device.
  void finish_copies() {
    device_.synchronizeStream(copy_stream_);
    release_copied();
    if (ahead_) loader_.release(ahead_->host);
    ahead_.reset();
  }

  torch::Tensor normalised(const torch::Tensor& pixels) const {
    const torch::Tensor planes = single_images(pixels).permute({0, 3, 1, 2});  // [images, C, H, W]
    require_per_channel(settings_.mean, settings_.std, planes.size(1));
    const torch::Tensor floats = planes.to(torch::kFloat32);  // float32: the copy itself, which is not shared
    const torch::Tensor& scale = planes.scalar_type() == torch::kUInt8 ? byte_scale_ : float_scale_;
    const torch::Tensor images = floats.mul_(scale).add_(offset_).contiguous(settings_.memory_format());
    // A single channel lies either way; with the strides that it has here it is taken for channels-last.
    const bool is_ambiguous = images.size(1) == 1 && !settings_.channels_last;
    return as_clips(is_ambiguous ? images.select(1, 0).unsqueeze(1) : images, pixels);
  }

  Loader& loader_;
  const FeedSettings settings_;
  const c10::impl::VirtualGuardImpl device_;
  const c10::Stream copy_stream_;
  torch::Tensor byte_scale_, float_scale_, offset_;  ///< float32 [1, C, 1, 1]
  std::optional<Copy> ahead_;
  std::deque<Copy> copying_;  ///< handed out; buffers not yet given back
};

}  // namespace

std::unique_ptr<FeedPath> make_copy_ahead_feed(Loader& loader, const FeedSettings& settings) {
  return std::make_unique<CopyAheadFeed>(loader, settings);
}

}  // namespace stoker::data
