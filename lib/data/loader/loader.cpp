// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader.h"

#include <torch/cuda.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/system/stop_signal.h"
#include "data/loader/loader_impl.h"

namespace stoker::data {

namespace {

// Streams of RngPurpose::shuffle; stream 0 is that of core::shuffled_indices().
constexpr uint64_t kRunStream = 1, kWindowStream = 2;

template <typename Iterator>
void shuffle(Iterator first, Iterator last, core::Rng& rng) {
  for (auto left = static_cast<uint64_t>(last - first); left > 1; --left) {
    std::swap(first[static_cast<std::ptrdiff_t>(left - 1)], first[static_cast<std::ptrdiff_t>(rng.below(left))]);
  }
}

}  // namespace

std::vector<uint32_t> shuffled_order(const std::vector<int64_t>& run_ends, int64_t window, uint64_t seed,
                                     uint64_t epoch) {
  const int64_t samples = run_ends.back();
  if (window == 0) return core::shuffled_indices(static_cast<uint32_t>(samples), seed, epoch);
  std::vector<size_t> runs(run_ends.size());
  std::iota(runs.begin(), runs.end(), size_t{0});
  core::Rng run_rng(seed, core::RngPurpose::shuffle, epoch, kRunStream);
  shuffle(runs.begin(), runs.end(), run_rng);
  std::vector<uint32_t> order;
  order.reserve(static_cast<size_t>(samples));
  for (const size_t run : runs) {
    for (int64_t i = run == 0 ? 0 : run_ends[run - 1]; i < run_ends[run]; ++i) {
      order.push_back(static_cast<uint32_t>(i));
    }
  }
  core::Rng window_rng(seed, core::RngPurpose::shuffle, epoch, kWindowStream);
  for (int64_t at = 0; at < samples; at += window) {
    shuffle(order.begin() + at, order.begin() + std::min(at + window, samples), window_rng);
  }
  return order;
}

namespace {

/// Fisher-Yates.
void shuffle_round(std::vector<uint32_t>& values, core::Rng& rng) {
  for (size_t left = values.size(); left > 1; --left) std::swap(values[left - 1], values[rng.below(left)]);
}

}  // namespace

std::vector<std::vector<uint32_t>> samples_by_class(const Source& source) {
  std::vector<std::vector<uint32_t>> classes(static_cast<size_t>(source.num_classes()));
  for (int64_t i = 0; i < source.size(); ++i) {
    classes[static_cast<size_t>(source.label(i))].push_back(static_cast<uint32_t>(i));
  }
  std::vector<std::vector<uint32_t>> present;
  for (std::vector<uint32_t>& samples : classes) {
    if (!samples.empty()) present.push_back(std::move(samples));
  }
  return present;
}

BalancedOrder class_balanced_order(const std::vector<std::vector<uint32_t>>& classes, uint64_t seed, uint64_t epoch) {
  size_t size = 0;
  for (const std::vector<uint32_t>& samples : classes) size += samples.size();
  // Which classes get one more than the others moves on from epoch to epoch.
  const size_t share = size / classes.size(), extra = size % classes.size(), first_extra = epoch % classes.size();

  BalancedOrder grouped;
  for (size_t k = 0; k < classes.size(); ++k) {
    const bool gets_extra = (k + classes.size() - first_extra) % classes.size() < extra;
    core::Rng rng(seed, core::RngPurpose::balance, epoch, k);
    std::vector<uint32_t> round = classes[k];
    for (size_t i = 0; i < share + (gets_extra ? 1 : 0); ++i) {
      if (i % round.size() == 0) shuffle_round(round, rng);
      grouped.samples.push_back(round[i % round.size()]);
      grouped.rounds.push_back(static_cast<uint32_t>(i / round.size()));
    }
  }
  BalancedOrder mixed;
  for (const uint32_t at : core::shuffled_indices(static_cast<uint32_t>(size), seed, epoch)) {
    mixed.samples.push_back(grouped.samples[at]);
    mixed.rounds.push_back(grouped.rounds[at]);
  }
  return mixed;
}

Loader::Impl::Impl(std::shared_ptr<const Source> source_given, TransformPlan plan_given, LoaderSettings settings_given)
    : source(std::move(source_given)), plan(plan_given), settings(settings_given), samples(source->size()) {
  check_settings();
  if (settings.class_balanced) classes = samples_by_class(*source);
  buffers = std::vector<BatchBuffer>(static_cast<size_t>(ring_slots(settings.num_workers, settings.prefetch_factor)));
  {
    const core::MutexLock lock(mutex);
    filled.assign(buffers.size(), false);
  }
  records = std::vector<StageRecord>(static_cast<size_t>(std::max<int64_t>(1, settings.num_workers)));
  if (settings.num_workers == 0) {
    own_reader.emplace(*source, plan, settings.limits, settings.seed, settings.stored);
  } else {
    for (BatchBuffer& buffer : buffers) allocate(buffer);
    start_workers();
  }
}

void Loader::Impl::check_settings() const {
  using core::ErrorKind;
  if (settings.batch_size < 1 || settings.prefetch_factor < 1 || settings.num_workers < 0 ||
      !plan.shape.is_possible() || !plan.shape.agrees_with(source->fixed_shape()) ||
      static_cast<int64_t>(plan.target_rule.flip_signs.size()) > source->num_targets()) {
    throw core::Error(ErrorKind::bug, "the loader was given settings out of range");
  }
  if (samples == 0) throw core::Error(ErrorKind::data, "the data has 0 images", "look at --data-dir and the splits");
  if (samples > std::numeric_limits<uint32_t>::max()) {
    throw core::Error(ErrorKind::data, core::format("{} images; at most 4,294,967,295 can be shuffled", samples));
  }
  if (batches_per_epoch() == 0) {
    throw core::Error(ErrorKind::data,
                      core::format("{} images are fewer than one batch of {}, and the last short batch is dropped: "
                                   "an epoch would be empty",
                                   samples, settings.batch_size),
                      "use a smaller --batch-size or --no-drop-last");
  }
}

int64_t Loader::Impl::batches_per_epoch() const {
  return settings.drop_last ? samples / settings.batch_size : (samples - 1) / settings.batch_size + 1;
}

int64_t Loader::Impl::images_in_batch(int64_t batch) const {
  return std::min(settings.batch_size, samples - batch * settings.batch_size);
}

void Loader::Impl::allocate(BatchBuffer& buffer) const {
  buffer.allocate(std::min(settings.batch_size, samples), settings.stored ? recipe_shape() : plan.shape,
                  source->num_targets(), settings.pin_memory && torch::cuda::is_available());
}

/// Makes the buffer of a batch ready for writing.
void Loader::Impl::prepare(int64_t batch_index) {
  if (batch_index >= epoch.batches) return;
  BatchBuffer& buffer = buffer_of(batch_index);
  if (!buffer.images.defined()) allocate(buffer);
  set_filled(batch_index, false);
  buffer.row_errors.clear();
  buffer.repairs.clear();
  buffer.rows_left.store(images_in_batch_at(batch_index));
}

Loader::Impl::~Impl() {
  {
    const core::MutexLock lock(mutex);
    cancel_epoch();
    quitting = true;
  }
  epoch_begun.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void Loader::Impl::begin_epoch(int64_t number, int64_t first_batch) {
  if (first_batch < 0 || first_batch > own_batches()) {
    throw core::Error(core::ErrorKind::bug,
                      core::format("an epoch of {} batches has no batch {}", own_batches(), first_batch));
  }
  BalancedOrder order;
  if (settings.class_balanced) {
    order = class_balanced_order(classes, settings.seed, static_cast<uint64_t>(number));
  } else if (settings.shuffle) {
    order.samples =
        shuffled_order(run_ends(*source), settings.shuffle_buffer, settings.seed, static_cast<uint64_t>(number));
  }
  {
    const core::MutexLock lock(mutex);
    cancel_epoch();
    epoch.epoch = number;
    epoch.first_batch = first_batch;
    epoch.batches = own_batches() - first_batch;
    epoch.order = std::move(order.samples);
    epoch.rounds = std::move(order.rounds);
    epoch.known_bad.clear();
    for (const auto& entry : bad) epoch.known_bad.push_back(entry.first);
    batches_handed_over = 0;
    last_awaited_batch = -1;
    batches_released = 0;
    next_row_index = 0;
    cancelled = false;
    ++generation;
    if (settings.num_workers > 0) {
      for (int64_t batch_index = 0; batch_index < static_cast<int64_t>(buffers.size()); ++batch_index)
        prepare(batch_index);
    }
  }
  epoch_begun.notify_all();
}

bool Loader::Impl::next(HostBatch& batch, bool may_stop) {
  const int64_t batch_index = batches_handed_over;
  if (batch_index >= epoch.batches) return false;
  if (batch_index - batches_released.load() >= may_hold()) {
    throw core::Error(core::ErrorKind::bug, "more batches are held at once than the loader allows");
  }
  const auto start = LoaderClock::now();
  if (settings.num_workers == 0) {
    fill_batch_here(batch_index, may_stop);
  } else {
    wait_until_ready(batch_index, may_stop);
  }
  consumer_wait_ns += nanoseconds_since(start);
  resolve_row_errors(batch_index);
  BatchBuffer& buffer = buffer_of(batch_index);
  const int64_t images = buffer.close_gaps(images_in_batch_at(batch_index));
  batch.images = buffer.images.narrow(0, 0, images);
  batch.labels = buffer.labels.narrow(0, 0, images);
  batch.targets = buffer.targets.narrow(0, 0, images);
  batch.samples.assign(buffer.samples.begin(), buffer.samples.begin() + images);
  batch.planned_images = images_in_batch_at(batch_index);
  {
    const core::MutexLock lock(mutex);
    batch.buffer = static_cast<int64_t>(generation << 32) | (batch_index & 0xFFFFFFFF);
  }
  images_out += images;
  bad_out += batch.planned_images - images;
  ++batches_handed_over;
  return true;
}

/// Without workers: reads the whole batch on the calling thread. An interrupted batch is read from its first row
/// again by the next call.
void Loader::Impl::fill_batch_here(int64_t batch_index, bool may_stop) {
  {
    const core::MutexLock lock(mutex);
    prepare(batch_index);
  }
  for (int64_t row = 0; row < images_in_batch_at(batch_index); ++row) {
    if (may_stop) core::throw_if_stopped();
    fill_row(*own_reader, records[0], batch_index, row);
  }
  finish_row(batch_index);
}

void Loader::Impl::wait_until_ready(int64_t batch_index, bool may_stop) {
  constexpr std::chrono::milliseconds kStopPoll(50);
  const core::MutexLock lock(mutex);
  if (batch_index != last_awaited_batch) {  // not after an interruption
    last_awaited_batch = batch_index;
    ++requested;
    ready_when_requested += ready_batches();
    empty_when_requested += is_filled(batch_index) ? 0 : 1;
  }
  while (!is_filled(batch_index)) {
    batch_ready.wait_for(mutex, kStopPoll);
    if (may_stop && !is_filled(batch_index)) core::throw_if_stopped();
  }
}

/// Decides about the rows without image in the order of the stream, so that the outcome is the same for any
/// number of workers. Leaves `row_errors` sorted by row.
void Loader::Impl::resolve_row_errors(int64_t batch_index) {
  const core::MutexLock lock(mutex);
  BatchBuffer& buffer = buffer_of(batch_index);
  buffer.sort_row_errors();
  for (const RowError& row_error : buffer.row_errors) {
    if (row_error.error) throw core::Error(*row_error.error);
    record_bad(buffer.samples[static_cast<size_t>(row_error.row)], row_error.reason);
  }
  record_repairs(buffer);
}

/// Each once, in the order of the stream.
void Loader::Impl::record_repairs(const BatchBuffer& buffer) {
  for (const RowRepair& repair : buffer.repairs) {
    const int64_t sample = buffer.samples[static_cast<size_t>(repair.row)];
    if (!repaired.insert(sample).second) continue;
    core::log_warning("repaired a damaged image ({} so far): {}: {}", repaired.size(),
                      core::printable(source->name(sample)), repair.reason);
  }
}

void Loader::Impl::record_bad(int64_t sample, const std::string& reason) {
  const auto known = bad.find(sample);
  const BadSample entry = known != bad.end() ? known->second : BadSample{sample, source->name(sample), reason};
  const std::string text = bad_file_text(entry.name, entry.reason);
  const bool skips_the_rest =
      settings.on_bad_image == config::OnBadImage::repair && settings.max_bad == config::kUnlimitedBad;  // predict
  if (settings.on_bad_image != config::OnBadImage::skip && !skips_the_rest) {
    const bool has_changed = entry.reason.find("changed since the scan") != std::string::npos;
    throw core::Error(
        core::ErrorKind::data, "bad image " + text,
        has_changed ? "the file was touched or written during the run: run the same command again" : kBadImageHint);
  }
  if (known == bad.end()) add_bad(entry);
}

void Loader::Impl::add_bad(const BadSample& entry) {
  const std::string text = bad_file_text(entry.name, entry.reason);
  if (static_cast<int64_t>(bad.size()) >= settings.max_bad) {
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}, more than the {} of --on-bad-image skip; the last is {}",
                     core::counted(static_cast<int64_t>(bad.size()) + 1, "bad image"), settings.max_bad, text),
        "repair or remove the files, or allow more: --on-bad-image skip,N");
  }
  bad.emplace(entry.sample, entry);
  if (settings.max_bad == config::kUnlimitedBad) return core::log_warning("bad image {}", text);
  core::log_warning("skipped a bad image ({} of at most {}): {}", bad.size(), settings.max_bad, text);
}

void Loader::Impl::release(const HostBatch& batch) {
  const auto of_generation = static_cast<uint64_t>(batch.buffer) >> 32;
  {
    const core::MutexLock lock(mutex);
    if (batch.buffer < 0 || of_generation != (generation & 0x7FFFFFFF)) return;  // of an epoch that is over
  }
  const int64_t batch_index = batches_released.load();
  if ((batch_index & 0xFFFFFFFF) != (batch.buffer & 0xFFFFFFFF) || batch_index >= batches_handed_over) {
    throw core::Error(core::ErrorKind::bug, "batches must be released once each and in order");
  }
  {
    const core::MutexLock lock(mutex);
    set_filled(batch_index, false);
    if (settings.num_workers > 0) prepare(batch_index + static_cast<int64_t>(buffers.size()));
    batches_released.store(batch_index + 1, std::memory_order_release);
  }
  buffer_freed.notify_all();
}

Loader::Loader(std::shared_ptr<const Source> source, TransformPlan plan, LoaderSettings settings)
    : impl_(std::make_unique<Impl>(std::move(source), plan, settings)) {}
Loader::~Loader() = default;

int64_t Loader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
int64_t Loader::images_per_epoch() const {
  const int64_t last = impl_->batches_per_epoch() - 1;
  return last * impl_->settings.batch_size + impl_->images_in_batch(last);
}
int64_t Loader::images_in_batch(int64_t batch) const { return impl_->images_in_batch(batch); }
void Loader::begin_epoch(int64_t epoch, int64_t first_batch) { impl_->begin_epoch(epoch, first_batch); }
bool Loader::next(HostBatch& batch, bool may_stop) { return impl_->next(batch, may_stop); }
bool Loader::is_ready() const { return impl_->is_ready(); }
void Loader::release(const HostBatch& batch) { impl_->release(batch); }
std::vector<BadSample> Loader::bad_samples() const {
  std::vector<BadSample> list;
  const core::MutexLock lock(impl_->mutex);
  for (const auto& entry : impl_->bad) list.push_back(entry.second);
  return list;
}

void Loader::restore_bad_samples(const std::vector<BadSample>& known) {
  const core::MutexLock lock(impl_->mutex);
  impl_->bad.clear();
  for (const BadSample& entry : known) impl_->bad.emplace(entry.sample, entry);
}

void Loader::add_bad_samples(const std::vector<BadSample>& of_others) {
  const core::MutexLock lock(impl_->mutex);
  for (const BadSample& entry : of_others) {
    if (impl_->bad.count(entry.sample) == 0) impl_->add_bad(entry);
  }
}

int64_t Loader::bad_count() const {
  const core::MutexLock lock(impl_->mutex);
  return static_cast<int64_t>(impl_->bad.size());
}

}  // namespace stoker::data
