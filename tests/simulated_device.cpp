// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_device.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stoker::fixtures {
namespace {

constexpr size_t kAlignment = 64;  // bytes

}  // namespace

SimulatedDevice& SimulatedDevice::instance() {
  static SimulatedDevice device;
  return device;
}

void SimulatedDevice::begin(uint64_t seed, DeviceFault fault) {
  finish();
  failure_.clear();
  rng_ = core::Rng(seed, core::RngPurpose::init, 1, 0);
  fault_ = fault;
  pace_ = rng_.below(5);
}

void SimulatedDevice::finish() {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stream = 0; stream < streams_.size(); ++stream) {
      while (do_one(static_cast<StreamId>(stream))) moved = true;
    }
  }
}

void SimulatedDevice::forget() {
  for (auto& stream : streams_) stream.clear();
  std::fill(has_passed_.begin(), has_passed_.end(), true);
}

void SimulatedDevice::run_pending() {
  for (uint64_t pieces = rng_.below(pace_ + 1); pieces > 0; --pieces) {
    do_one(static_cast<StreamId>(rng_.below(streams_.size())));
  }
}

/// False where there is nothing to do or what comes next has to wait.
bool SimulatedDevice::do_one(StreamId stream) {
  std::deque<Piece>& pieces = streams_[static_cast<size_t>(stream)];
  if (pieces.empty() || !has_passed_[static_cast<size_t>(pieces.front().waits_for)]) return false;
  const Piece piece = std::move(pieces.front());
  pieces.pop_front();
  if (!piece.run) return true;
  try {
    piece.run();
  } catch (const std::exception& error) {  // whoever requested it has continued
    if (failure_.empty()) failure_ = error.what();
  }
  return true;
}

SimulatedDevice::StreamId SimulatedDevice::stream_from_pool() { return 1; }

void SimulatedDevice::work(std::function<void()> done_later) {
  const StreamId stream = fault_ == DeviceFault::copies_on_wrong_stream ? 0 : current;
  streams_[static_cast<size_t>(stream)].push_back({std::move(done_later), 0});
  run_pending();
}

void SimulatedDevice::record(int64_t& event, StreamId stream) {
  event = static_cast<int64_t>(has_passed_.size());
  has_passed_.push_back(false);
  if (fault_ == DeviceFault::event_on_wrong_stream) stream = 0;
  streams_[static_cast<size_t>(stream)].push_back(
      {[this, event] { has_passed_[static_cast<size_t>(event)] = true; }, 0});
  run_pending();
}

void SimulatedDevice::wait(StreamId stream, int64_t event) {
  if (fault_ == DeviceFault::no_wait || (fault_ == DeviceFault::wait_forgotten && sometimes())) return;
  streams_[static_cast<size_t>(stream)].push_back({{}, event});
}

bool SimulatedDevice::passed(int64_t event) {
  if (fault_ == DeviceFault::done_too_early || (fault_ == DeviceFault::done_early_sometimes && sometimes()))
    return true;
  run_pending();
  return has_passed_[static_cast<size_t>(event)];
}

void SimulatedDevice::synchronise(StreamId stream) {
  if (fault_ != DeviceFault::no_synchronisation) drain(stream);
}

void SimulatedDevice::finish_work() { drain(current); }

void SimulatedDevice::wait_to_read() {
  ++reads_;
  if (fault_ != DeviceFault::reads_too_early) drain(current);
}

/// Other streams do what it waits for, and perhaps more.
void SimulatedDevice::drain(StreamId stream) {
  while (!streams_[static_cast<size_t>(stream)].empty()) {
    if (!do_one(stream)) do_one(static_cast<StreamId>(rng_.below(streams_.size())));
  }
}

void SimulatedDevice::use_on(const torch::Tensor& tensor, StreamId stream) {
  if (fault_ == DeviceFault::no_record_stream) return;
  if (fault_ == DeviceFault::labels_not_recorded && tensor.scalar_type() == torch::kInt64) return;
  if (fault_ == DeviceFault::recorded_for_copying) stream = 1;
  const auto block = blocks_.find(tensor.storage().data_ptr().get_context());
  if (block != blocks_.end()) block->second.used_on.push_back(stream);
}

/// Memory of the stream's own that is free goes out again at once: what the stream does is in order.
c10::DataPtr SimulatedDevice::allocate(size_t bytes) {
  void* chosen = nullptr;
  for (auto& [memory, block] : blocks_) {
    if (!block.is_free || block.bytes != bytes || block.stream != current) continue;
    const auto is_over = [this](int64_t event) { return has_passed_[static_cast<size_t>(event)]; };
    if (!std::all_of(block.free_once.begin(), block.free_once.end(), is_over)) continue;
    chosen = memory;
    break;
  }
  if (!chosen) {
    // Aligned as tensors of the CPU are: sums depend on it. What is read before it was written is NaN, or -1.
    chosen = std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
    std::memset(chosen, 0xff, bytes);
    blocks_[chosen] = {Memory(static_cast<char*>(chosen)), bytes, current, {}, {}, false};
  }
  Block& block = blocks_[chosen];
  block.is_free = false;
  block.used_on.clear();
  block.free_once.clear();
  return {chosen, chosen, [](void* memory) { SimulatedDevice::instance().give_back(memory); }, device()};
}

void SimulatedDevice::give_back(void* memory) {
  Block& block = blocks_[memory];
  block.is_free = true;
  for (const StreamId stream : block.used_on) {
    if (stream == block.stream) continue;
    int64_t event = 0;
    const DeviceFault fault = fault_;
    fault_ = DeviceFault::none;  // the allocator's own events are in order
    record(event, stream);
    fault_ = fault;
    block.free_once.push_back(event);
  }
}

namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

c10::Stream stream_of(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, SimulatedDevice::device(), id); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return SimulatedDevice::device(); }
  c10::Device getDevice() const override { return SimulatedDevice::device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return stream_of(SimulatedDevice::instance().current); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return stream_of(SimulatedDevice::instance().stream_from_pool());
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::StreamId before = SimulatedDevice::instance().current;
    SimulatedDevice::instance().current = stream.id();
    return stream_of(before);
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new int64_t(0);
    SimulatedDevice::instance().record(*static_cast<int64_t*>(*event), stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    SimulatedDevice::instance().wait(stream.id(), *static_cast<int64_t*>(event));
  }
  bool queryEvent(void* event) const override {
    return SimulatedDevice::instance().passed(*static_cast<int64_t*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<int64_t*>(event); }
  bool queryStream(const c10::Stream&) const override { return false; }
  void synchronizeStream(const c10::Stream& stream) const override {
    SimulatedDevice::instance().synchronise(stream.id());
  }
};
const c10::impl::DeviceGuardImplRegistrar registrar(kType, new Guard());

}  // namespace
}  // namespace stoker::fixtures
