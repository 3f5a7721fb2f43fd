// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack_split.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/pack/in_order.h"
#include "data/pack/pack_keys.h"
#include "data/pack/shard_writer.h"
#include "data/shard/shard_scan.h"

namespace stoker::data {
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

  InOrder<PackedSample>::Work make_work() const {
    struct Scratch {
      explicit Scratch(const PackRecipe& recipe) : packer(recipe) {}
      ImagePacker packer;
      std::vector<uint8_t> read, file;
      std::string key, extension;
    };
    return [this, scratch = std::make_shared<Scratch>(settings_.recipe)](int64_t index, PackedSample& sample) {
      SampleContent content;
      ImageFormat format = ImageFormat::unknown;
      sample.problem = source_.read(index, scratch->read, content);
      if (sample.problem.empty()) sample.problem = scratch->packer.pack(content, scratch->file, format);
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
    const std::string text = core::format("{}: {}", core::printable(source_.name(index)), reason);
    if (settings_.on_bad_image != config::OnBadImage::skip) {
      throw core::Error(core::ErrorKind::data, "bad image " + text,
                        "repair or remove the file, or go on without such images: --on-bad-image skip");
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
  return core::hash_hex(core::format("pack 1 split {} of {} shards {} {} side {} quality {} baseline {}", split.name,
                                     split.source->fingerprint(), settings.shard_images, settings.shard_bytes,
                                     recipe.max_side, recipe.quality, recipe.progressive_to_baseline));
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

}  // namespace stoker::data
