// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack_split.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/file_system.h"
#include "core/system/mutex.h"
#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"
#include "data/container/tar_reader.h"
#include "data/image/decode.h"
#include "data/shard/shard_scan.h"
#include "data/source.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

// Keys for all samples of a split, no two alike.

class PackKeys {
 public:
  explicit PackKeys(const Source& source);

  /// Key and extension of sample `index` whose file has this format; unknown: it is a sound.
  void name(int64_t index, ImageFormat format, std::string& key, std::string& extension) const;

 private:
  const Source& source_;
  std::unordered_set<int64_t> clashing_;          ///< plain names whose key an earlier sample has
  std::unordered_map<int64_t, uint64_t> copies_;  ///< samples whose name earlier ones have: how many
};

namespace {

using HashedSample = std::pair<uint64_t, int64_t>;

/// Calls `visit(index, rank)` for every sample whose hash earlier ones have, too; equal hashes are taken for
/// equal texts, which at worst gives a sample a longer key than it needs.
template <typename Visit>
void for_repeated(std::vector<HashedSample>& hashed, const Visit& visit) {
  std::sort(hashed.begin(), hashed.end());
  uint64_t rank = 0;
  for (size_t i = 1; i < hashed.size(); ++i) {
    rank = hashed[i].first == hashed[i - 1].first ? rank + 1 : 0;
    if (rank > 0) visit(hashed[i].second, rank);
  }
}

}  // namespace

PackKeys::PackKeys(const Source& source) : source_(source) {
  std::vector<HashedSample> hashed;
  hashed.reserve(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::string name = source.relative_name(i);
    if (is_plain_name(name)) hashed.emplace_back(core::hash64(plain_key(name)), i);
  }
  for_repeated(hashed, [&](int64_t index, uint64_t) { clashing_.insert(index); });
  hashed.clear();
  for (int64_t i = 0; i < source.size(); ++i) hashed.emplace_back(core::hash64(source.relative_name(i)), i);
  for_repeated(hashed, [&](int64_t index, uint64_t rank) { copies_.emplace(index, rank); });
}

void PackKeys::name(int64_t index, ImageFormat format, std::string& key, std::string& extension) const {
  const std::string name = source_.relative_name(index), own = name.substr(name.rfind('.') + 1);
  const bool is_sound = format == ImageFormat::unknown;
  if (clashing_.count(index) == 0 && is_plain_name(name) && (is_sound || extension_fits(name, format))) {
    key = plain_key(name);
    extension = own;
    return;
  }
  const auto copy = copies_.find(index);
  key = whole_key(name, copy == copies_.end() ? 0 : copy->second);
  extension = !is_sound ? extension_of(format) : has_sound_name(name) ? core::lower_case(own) : "wav";
}

// Work on consecutive numbers, done by threads and handed over in order.

/// One consumer thread. Results are reused: memory is bounded by 2 * threads + 2 of them.
template <typename Result>
class InOrder {
 public:
  using Work = std::function<void(int64_t number, Result& result)>;

  /// Works on first, first + 1, ... end - 1. `make_work` is called once per thread, on this one; without threads, or
  /// where the system gives none, the work is done inside next().
  InOrder(int64_t first, int64_t end, int64_t threads, const std::function<Work()>& make_work)
      : slots_(static_cast<size_t>(2 * threads + 2)),
        end_(end),
        wanted_(first),
        claimed_(first),
        freed_(first),
        is_done_(slots_.size()) {
    try {
      for (int64_t i = 0; i < threads && threads_.add([this, work = make_work()] { work_on(work); }); ++i) {
      }
      if (threads_.size() == 0) own_work_ = make_work();
    } catch (...) {
      quit();
      throw;
    }
  }
  ~InOrder() { quit(); }
  InOrder& operator=(InOrder&&) = delete;  // not copied, not moved

  /// The next result, valid until the next call; nullptr at the end. Rethrows what the work threw; throws
  /// core::StopRequested while it waits.
  Result* next() {
    core::throw_if_stopped();
    if (wanted_ == end_) return nullptr;
    Slot& slot = slots_[slot_of(wanted_)];
    if (own_work_) {
      own_work_(wanted_++, slot.result);
      return &slot.result;
    }
    const core::MutexLock lock(mutex_);
    freed_ = wanted_;
    freed_one_.notify_all();
    while (!is_done_[slot_of(wanted_)]) {
      done_one_.wait_for(mutex_, std::chrono::milliseconds(50));
      core::throw_if_stopped();
    }
    is_done_[slot_of(wanted_++)] = false;
    if (slot.error) std::rethrow_exception(slot.error);
    return &slot.result;
  }

 private:
  struct Slot {
    Result result;
    std::exception_ptr error;
  };

  /// Ends the threads.
  void quit() {
    {
      const core::MutexLock lock(mutex_);
      quitting_ = true;
    }
    freed_one_.notify_all();
    threads_.wait();
  }

  size_t slot_of(int64_t number) const { return static_cast<size_t>(number) % slots_.size(); }

  /// The next number, once it has a slot; false: there is none for this thread.
  bool claim(int64_t& number) {
    const core::MutexLock lock(mutex_);
    const auto slots = static_cast<int64_t>(slots_.size());
    while (!quitting_ && claimed_ != end_ && claimed_ >= freed_ + slots) freed_one_.wait(mutex_);
    if (quitting_ || claimed_ == end_) return false;
    number = claimed_++;
    return true;
  }

  void work_on(const Work& work) {
    int64_t number = 0;
    while (claim(number)) {
      Slot& slot = slots_[slot_of(number)];
      try {
        work(number, slot.result);
      } catch (...) {
        slot.error = std::current_exception();
      }
      const core::MutexLock lock(mutex_);
      is_done_[slot_of(number)] = true;
      done_one_.notify_one();
    }
  }

  std::vector<Slot> slots_;  ///< each of the thread that claimed its number, then of the consumer
  const int64_t end_;
  int64_t wanted_;  ///< next number for the consumer, who alone touches it
  Work own_work_;

  core::Mutex mutex_;
  core::Condition freed_one_, done_one_;
  int64_t claimed_ STOKER_GUARDED_BY(mutex_);            ///< next number for a thread
  int64_t freed_ STOKER_GUARDED_BY(mutex_);              ///< results below this are no longer looked at
  std::vector<bool> is_done_ STOKER_GUARDED_BY(mutex_);  ///< by slot
  bool quitting_ STOKER_GUARDED_BY(mutex_) = false;
  core::WorkerPool threads_;  ///< last: they use all of the above
};

namespace {

/// One sample on its way into a shard.
struct PackedSample {
  ShardMembers members;
  std::string problem;  ///< why it is a bad image; empty: it is none
};

class SplitPacker {
 public:
  SplitPacker(const SplitToPack& split, PackJob& job)
      : split_(split),
        source_(*split.source),
        settings_(job.settings),
        identity_(pack_identity(split, job.settings)),
        keys_(source_),
        job_(job),
        report_(job.report),
        before_(job.progress) {}

  PackedSplit run() {
    packed_.identity = identity_;
    for (int64_t number = 0; done_ < source_.size(); ++number) {
      const std::string path = settings_.directory + "/" + shard_file_name(split_.name, number);
      if (!keep_finished(path)) write_shard(path);
      ++packed_.shards;
    }
    if (packed_.images == 0) {
      throw core::Error(core::ErrorKind::data,
                        core::format("split '{}' has no image that can be packed", core::printable(split_.name)));
    }
    packed_.complete = true;
    return packed_;
  }

 private:
  void on_sample(uint64_t open_bytes) {
    job_.progress.images_done = before_.images_done + done_;
    job_.progress.bytes_written = before_.bytes_written + packed_.bytes + open_bytes;
    job_.on_progress(job_.progress);
  }

  /// Whether the next shard is there already, from an interrupted pack.
  bool keep_finished(const std::string& path) {
    const std::optional<ShardIndex> index = index_of_finished(path);
    const auto first = static_cast<uint64_t>(done_), left = static_cast<uint64_t>(source_.size() - done_);
    if (!index || index->pack_identity != identity_ || index->first_source != first || index->source_count > left ||
        index->source_count == 0 || digest_of(FileBytes(path)) != index->shard_digest) {
      return false;
    }
    samples_.reset();
    pending_ = nullptr;
    const auto images = static_cast<int64_t>(index->entries.size()),
               looked_at = static_cast<int64_t>(index->source_count);
    for (int64_t bad = images; bad < looked_at; ++bad) count_bad("in a shard that was finished before");
    done_ += looked_at;
    add_shard(images, index->shard_bytes);
    ++report_.kept_shards;
    on_sample(0);
    return true;
  }

  void write_shard(const std::string& path) {
    ShardWriter writer(path);
    const int64_t first = done_;
    while (PackedSample* sample = peek()) {
      if (sample->problem.empty()) {
        if (is_full(writer, *sample)) break;
        writer.add(sample->members);
      } else {
        on_bad(done_, sample->problem);
      }
      pending_ = nullptr;
      ++done_;
      on_sample(writer.bytes());
    }
    const auto count = static_cast<uint64_t>(done_ - first);
    add_shard(writer.images(), writer.finish(static_cast<uint64_t>(first), count, identity_));
  }

  /// The next sample, which stays the next until pending_ is cleared; nullptr at the end.
  PackedSample* peek() {
    if (!samples_) {
      samples_.emplace(done_, source_.size(), settings_.num_threads, [this] { return make_work(); });
    }
    if (!pending_) pending_ = samples_->next();
    return pending_;
  }

  struct Scratch {
    explicit Scratch(const PackRecipe& recipe) : packer(recipe) {}
    ImagePacker packer;
    std::vector<uint8_t> read, file;
    std::string key, extension;
  };

  /// The file that is packed: that of a sound as it is.
  std::string make_file(int64_t index, const SampleContent& content, Scratch& scratch, ImageFormat& format) const {
    if (source_.excerpts() == nullptr) return scratch.packer.pack(content, scratch.file, format);
    SampleContent whole;
    std::string problem = source_.excerpts()->read_whole(index, scratch.read, whole);
    if (problem.empty()) scratch.file.assign(whole.bytes, whole.bytes + whole.size);
    return problem;
  }

  InOrder<PackedSample>::Work make_work() const {
    return [this, scratch = std::make_shared<Scratch>(settings_.recipe)](int64_t index, PackedSample& sample) {
      SampleContent content;
      ImageFormat format = ImageFormat::unknown;
      sample.problem = source_.read(index, scratch->read, content);
      if (sample.problem.empty()) sample.problem = make_file(index, content, *scratch, format);
      if (sample.problem.empty() && scratch->file.size() > kMaxShardImageBytes) {
        sample.problem = "too many bytes for an image";
      }
      if (!sample.problem.empty()) return;
      keys_.name(index, format, scratch->key, scratch->extension);
      sample.members.label = static_cast<int32_t>(source_.label(index));
      sample.members.name = source_.relative_name(index);
      make_members(scratch->key, scratch->extension, scratch->file, sample.members);
    };
  }

  bool is_full(const ShardWriter& writer, const PackedSample& next) const {
    if (writer.images() == 0) return false;
    const bool by_count = settings_.shard_images > 0 && writer.images() >= settings_.shard_images;
    const bool by_bytes = settings_.shard_bytes > 0 &&
                          closed_shard_bytes(writer.bytes() + next.members.bytes.size()) > settings_.shard_bytes;
    return by_count || by_bytes;
  }

  void add_shard(int64_t images, uint64_t bytes) {
    packed_.images += images;
    packed_.bytes += bytes;
  }

  void on_bad(int64_t index, const std::string& reason) {
    const std::string text = bad_file_text(source_.name(index), reason);
    if (settings_.on_bad_image != config::OnBadImage::skip) {
      throw core::Error(core::ErrorKind::data, "bad image " + text,
                        "repair or remove the file, or skip such images: --on-bad-image skip");
    }
    count_bad(text);
    core::log_warning("left out a bad image ({} of at most {}): {}", report_.bad_images, settings_.max_bad, text);
  }

  void count_bad(const std::string& text) {
    ++packed_.bad_images;
    if (++report_.bad_images <= settings_.max_bad) return;
    throw core::Error(core::ErrorKind::data,
                      core::format("{}, more than the {} of --on-bad-image skip; the last is {}",
                                   core::counted(report_.bad_images, "bad image"), settings_.max_bad, text),
                      "repair or remove the files, or allow more: --on-bad-image skip,N");
  }

  const SplitToPack& split_;
  const Source& source_;
  const PackSettings& settings_;
  const std::string identity_;
  const PackKeys keys_;
  PackJob& job_;
  PackReport& report_;
  const PackProgress before_;
  PackedSplit packed_;
  int64_t done_ = 0;  ///< samples of the source that are dealt with
  std::optional<InOrder<PackedSample>> samples_;
  PackedSample* pending_ = nullptr;
};

}  // namespace

std::string pack_identity(const SplitToPack& split, const PackSettings& settings) {
  const PackRecipe& recipe = settings.recipe;
  const ValueRange& range = recipe.limits.range;
  return core::hash_hex(core::format("pack 1 split {} of {} shards {} {} side {} quality {} baseline {}{}", split.name,
                                     split.source->fingerprint(), settings.shard_images, settings.shard_bytes,
                                     recipe.max_side, recipe.quality, recipe.progressive_to_baseline,
                                     range.is_set() ? core::format(" range {} {}", range.low, range.high) : ""));
}

std::optional<ShardIndex> index_of_finished(const std::string& shard_path) {
  try {
    ShardIndex index = read_shard_index(index_path_of(shard_path));
    if (FileBytes(shard_path).size() == index.shard_bytes) return index;
  } catch (const core::Error&) {  // missing or damaged: it is written again
  }
  return std::nullopt;
}

PackedSplit pack_split(const SplitToPack& split, PackJob& job) { return SplitPacker(split, job).run(); }

namespace {

constexpr uint64_t kEndBytes = 2 * kTarBlock;
constexpr char kUnfinishedMark[] = ".unfinished-";

std::string temporary_name(const std::string& path) {
  const size_t base = path.rfind('/') + 1;
  return path.substr(0, base) + kUnfinishedMark + path.substr(base);
}

void append_member(const std::string& name, const void* content, uint64_t size, std::string& bytes) {
  bytes += tar_header_text(name, size);
  bytes.append(static_cast<const char*>(content), size);
  bytes.append(tar_padding(size), '\0');
}

}  // namespace

void make_members(const std::string& key, const std::string& extension, const std::vector<uint8_t>& image,
                  ShardMembers& members) {
  members.bytes.clear();
  const std::string header = tar_header_text(key + "." + extension, image.size());
  members.image_at = header.size();
  members.image_size = static_cast<uint32_t>(image.size());
  append_member(key + "." + extension, image.data(), image.size(), members.bytes);
  const std::string label = std::to_string(members.label);
  append_member(key + ".cls", label.data(), label.size(), members.bytes);
}

uint64_t closed_shard_bytes(uint64_t bytes) { return bytes + kEndBytes; }

ShardWriter::ShardWriter(std::string path)
    : path_(std::move(path)), temporary_path_(temporary_name(path_)), file_(temporary_path_) {}

void ShardWriter::add(const ShardMembers& members) {
  index_.add(at_ + members.image_at, members.image_size, members.label, members.name);
  file_.write(members.bytes.data(), members.bytes.size());
  hasher_.add(members.bytes);
  at_ += members.bytes.size();
}

uint64_t ShardWriter::finish(uint64_t first_source, uint64_t source_count, const std::string& pack_identity) {
  const std::string end(kEndBytes, '\0');
  file_.write(end.data(), end.size());
  hasher_.add(end);
  file_.finish();
  index_.shard_bytes = closed_shard_bytes(at_);
  index_.first_source = first_source;
  index_.source_count = source_count;
  index_.shard_digest = hasher_.hex();
  index_.pack_identity = pack_identity;
  std::remove(index_path_of(path_).c_str());  // of a shard that is replaced: it must not meet the new archive
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    throw core::errno_error(errno, "replace", core::printable(path_), core::ErrorKind::io);
  }
  core::write_file_atomically(index_path_of(path_), shard_index_text(index_), /*durable=*/true);
  return index_.shard_bytes;
}

void remove_unfinished_shards(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(directory, entries);  // a folder that cannot be listed fails where it is written
  for (const core::DirectoryEntry& entry : entries) {
    const std::string& name = entry.name;
    const bool unfinished = name.rfind(kUnfinishedMark, 0) == 0 || name.find(".index.tmp-") != std::string::npos ||
                            name.rfind("pack.json.tmp-", 0) == 0 || name.rfind("classes.txt.tmp-", 0) == 0;
    std::error_code ignored;
    if (unfinished) fs::remove(fs::path(directory) / name, ignored);
  }
}

}  // namespace stoker::data
