// SPDX-License-Identifier: Apache-2.0
// Where samples come from: an ordered, labelled, fingerprinted list of images or videos. This is the contract between
// what reads a data set (files, archives, HDF5) and all that uses samples (caches, the loader, probes).
//
// Threads.   A source never changes after its constructor. Every method may be called from any thread at the same
//            time as any other; a source that holds something variable inside (a cache, an open file) guards it itself.
//            read() waits for the storage and may take long: nothing may hold a lock while it calls read().
// Lifetime.  Sources are shared: `std::shared_ptr<const Source>`. A source in front of another one keeps it alive. A
//            facet (frames(), stored()) lives as long as its source and is never deleted through the facet.
//            SampleContent points into the source (pixels in memory) or into the buffer that the caller gave to read():
//            the bytes are valid until the source ends or the buffer is used again, whichever comes first.
// Order.     Sample indices run from 0 to size() - 1 and always mean the same sample. An index outside of the range is
//            an error of the caller and is not checked.
// Errors.    There are three kinds, and each has its own way:
//            - A bad sample (missing, cut short, changed since the scan) is a returned text; "" means that all is well.
//              The loader counts bad samples and decides what they cost. `content` is then undefined.
//            - A failing storage (EIO, ESTALE, ETIMEDOUT, three times in a row) throws core::Error{io}; where memory
//              runs out, std::bad_alloc or core::Error{out_of_memory} is thrown. Both end the run: no other sample
//              would fare better.
//            - A data set that is wrong as a whole (no images, labels out of range) throws core::Error from the
//              function that opens it, before there is a source. The other methods do not throw.
// Equality.  Two sources with equal fingerprints give equal samples in the same order. The fingerprint does not
//            depend on where the data lies, nor on how it is packed, cached or copied.
//
// To write one: a source that reads samples derives from LeafSource (below), which fills in what few sources
// have; a source in front of another one derives from ForwardingSource (below), which forwards all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/hash.h"

namespace stoker::data {

// The content of one row of a batch: how many numbers of which kind. Without LibTorch.

/// The type of one number of a sample.
enum class Element : uint8_t { uint8, float16, float32 };

constexpr int64_t bytes_of(Element element) {
  return element == Element::uint8 ? 1 : element == Element::float16 ? 2 : 4;
}

constexpr const char* element_name(Element element) {
  return element == Element::uint8 ? "uint8" : element == Element::float16 ? "float16" : "float32";
}

/// An image [height, width, channels] or a clip of such images [frames, height, width, channels], without
/// gaps. With two views, each frame in high and in low quality: [2, frames, height, width, channels].
struct SampleShape {
  int64_t frames = 0;             ///< frames of a clip; 0: a single image
  int64_t height = 0, width = 0;  ///< pixels
  int64_t channels = 0;
  Element element = Element::uint8;
  int64_t views = 1;  ///< 1 or 2

  /// Images in a row: the frames of a clip, else 1; of each view.
  int64_t images() const { return std::max<int64_t>(1, frames) * views; }
  int64_t image_bytes() const { return height * width * channels * bytes_of(element); }
  int64_t bytes() const { return images() * image_bytes(); }
  bool is_possible() const { return frames >= 0 && height > 0 && width > 0 && channels > 0; }
  /// Whether rows can have this shape where a source fixes `fixed`: all of it, or without a height the
  /// frames.
  bool agrees_with(const SampleShape& fixed) const {
    if (fixed.height > 0) return *this == fixed;
    return frames == fixed.frames && views == fixed.views && element == Element::uint8;
  }

  bool operator==(const SampleShape& other) const {
    return frames == other.frames && height == other.height && width == other.width && channels == other.channels &&
           element == other.element && views == other.views;
  }
  bool operator!=(const SampleShape& other) const { return !(*this == other); }
};

/// An image of bytes.
constexpr SampleShape image_shape(int64_t height, int64_t width, int64_t channels) {
  return {0, height, width, channels, Element::uint8, 1};
}
constexpr SampleShape square_shape(int64_t side, int64_t channels) { return image_shape(side, side, channels); }

// The part of an image that crops are taken from, as annotations give it.

/// Finite, in pixels of the image as shown, upright. May reach outside of the image. Width 0: the whole image.
struct RegionOfInterest {
  double left = 0, top = 0, width = 0, height = 0;  ///< finite
};

inline constexpr char kImagesRead[] = "images are JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000 files";

/// The content of one image: encoded bytes of a file, or pixels that need no decoding.
struct SampleContent {
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
  // Set when `bytes` are pixels in HWC order; 0 when they are an encoded file.
  int height = 0, width = 0, channels = 0;
  Element element = Element::uint8;  ///< type of pixels; others than uint8 only where fixed_shape() has them
  int64_t decode_nanoseconds = 0;    ///< that the source spent on decoding within this read()
  bool is_rest = false;              ///< pixels of what a damaged file still holds, beside the cause that is returned
  bool is_pixels() const { return height > 0; }
  /// One image of `shape` in HWC order.
  void set_pixels(const uint8_t* pixels, const SampleShape& shape) {
    bytes = pixels;
    size = static_cast<uint64_t>(shape.image_bytes());
    height = static_cast<int>(shape.height);
    width = static_cast<int>(shape.width);
    channels = static_cast<int>(shape.channels);
    element = shape.element;
  }
};

/// Memory that a source takes, in bytes.
struct SourceMemory {
  int64_t list_bytes = 0;    ///< names, sizes, labels, places: all but pixels; 0: not counted
  int64_t cached_bytes = 0;  ///< samples that a cache holds by now
};

/// Facet of a source whose samples are videos: each is taken from one or more images. `index` is that of the sample,
/// `frame` is in [0, frame_count(index)).
class FrameSource {
 public:
  /// At least 1. With two views (fixed_shape()) of both: the frames in low quality behind those in high quality, in the
  /// same order.
  virtual int64_t frame_count(int64_t index) const = 0;
  /// The name of a frame below name(index), such as "frame_0001.jpg". Never empty.
  virtual std::string frame_name(int64_t index, int64_t frame) const = 0;
  /// As Source::read(), of one frame. Source::read() gives frame 0.
  virtual std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                                 SampleContent& content) const = 0;
  /// As StoredSamples::stored_bytes(), of one frame; -1 as well where frames are parts of a video file.
  virtual int64_t frame_bytes(int64_t index, int64_t frame) const = 0;

 protected:
  ~FrameSource() = default;
};

/// Facet of a source that describes how its samples lie on the storage.
class StoredSamples {
 public:
  /// Bytes of the encoded sample, known without reading it; -1 where it is not.
  virtual int64_t stored_bytes(int64_t index) const = 0;
  /// As Source::read(), of which the first `bytes` are enough; may give more.
  virtual std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                                SampleContent& content) const = 0;
  /// Where the runs of samples end that lie one after another on the storage (shards, chunks); the last end is size().
  virtual std::vector<int64_t> run_ends() const = 0;

 protected:
  ~StoredSamples() = default;
};

/// Facet of a source whose samples are excerpts of something longer, such as a sound.
class ExcerptSource {
 public:
  /// As Source::read(), of the excerpt at `position` in [0, 1] among all: 0 is the first. Source::read() gives the one
  /// in the middle.
  virtual std::string read_excerpt(int64_t index, double position, std::vector<uint8_t>& buffer,
                                   SampleContent& content) const = 0;
  /// As Source::read(), of the file that it is an excerpt of.
  virtual std::string read_whole(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const = 0;

 protected:
  ~ExcerptSource() = default;
};

/// See the contract above. All methods are pure, so that a source in front of another one cannot forget one.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t index) const = 0;  ///< [0, num_classes()); -1 where there are no labels
  /// Writes the num_targets() numbers that are to be learned of sample `index`, in the order of target_names().
  virtual void targets(int64_t index, float* out) const = 0;
  virtual std::string name(int64_t index) const = 0;  ///< path or "file#17": for messages and predictions
  /// The name without what depends on where the data lies: hash splits and fingerprints are made of it.
  virtual std::string relative_name(int64_t index) const = 0;
  /// The part of image `index` that crops are taken from.
  virtual RegionOfInterest region(int64_t index) const = 0;
  /// The fixed part of the samples' shape. `frames` above 0: clips of that many frames. `height` above 0: all
  /// are pixels of this size, channels and element, which are taken as they are, neither cropped nor resized; else
  /// images of any size, which become what the run wants.
  virtual SampleShape fixed_shape() const = 0;
  /// Reads sample `index` into `content`, whose bytes lie in the source or in `buffer`, which grows as needed. Returns
  /// "" or why the sample is bad, in words. Throws core::Error{io} when the storage fails.
  virtual std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const = 0;
  virtual SourceMemory memory() const = 0;

  /// Null where samples are single images.
  virtual const FrameSource* frames() const = 0;
  /// Null where nothing is known about the storage: samples are in memory.
  virtual const StoredSamples* stored() const = 0;
  /// Null where samples are whole.
  virtual const ExcerptSource* excerpts() const = 0;

  const std::vector<std::string>& class_names() const { return class_names_; }
  int64_t num_classes() const { return static_cast<int64_t>(class_names_.size()); }
  const std::vector<std::string>& target_names() const { return target_names_; }
  /// Numbers to learn per sample; 0 where the class is all there is.
  int64_t num_targets() const { return static_cast<int64_t>(target_names_.size()); }
  /// The names of the outputs: the targets where there are some, else the classes.
  const std::vector<std::string>& learned_names() const { return target_names_.empty() ? class_names_ : target_names_; }
  /// Digest over names, sizes, labels and targets in order, as hexadecimal digits.
  const std::string& fingerprint() const { return fingerprint_; }

 protected:
  // Set by constructors, constant afterwards.
  std::vector<std::string> class_names_;
  std::vector<std::string> target_names_;
  std::string fingerprint_;
};

// Questions to any source, with the answer of those that lack the facet.

/// StoredSamples::stored_bytes(); -1 where nothing is known about the storage.
int64_t stored_bytes(const Source& source, int64_t index);
/// StoredSamples::read_head(); the whole sample where nothing is known about the storage.
std::string read_head(const Source& source, int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                      SampleContent& content);
/// StoredSamples::run_ends(); a single run where nothing is known about the storage.
std::vector<int64_t> run_ends(const Source& source);
/// Whether samples are taken from videos, one frame or several.
bool holds_videos(const Source& source);
/// Whether frames are parts of video files, which a decoder goes through.
bool decodes_videos(const Source& source);
/// The noun for its samples: images, clips of videos, or samples, where these are not pictures.
struct SampleNoun {
  const char* one;      ///< "an image"
  const char* several;  ///< "images"
};
SampleNoun sample_noun(const Source& source);
/// Whether samples come as pixels, so that there is nothing to decode: judged by the first. False for videos.
bool holds_pixels(const Source& source);

// The base of sources that read samples themselves, and of lists of the frames of another source, whose samples are not
// those of that source. Never the base of a source in front of another one that has the same samples: what this base
// answers would hide the other's answer (ForwardingSource is for those).

/// Answers as most sources do: single images of any size, whole, with a class each, about whose storage nothing is
/// known.
class LeafSource : public Source {
 public:
  void targets(int64_t /*index*/, float* /*out*/) const override {}
  RegionOfInterest region(int64_t /*index*/) const override { return {}; }
  SampleShape fixed_shape() const override { return {}; }
  SourceMemory memory() const override { return {}; }
  const FrameSource* frames() const override { return nullptr; }
  const StoredSamples* stored() const override { return nullptr; }
  const ExcerptSource* excerpts() const override { return nullptr; }
};

// The fingerprint of a list of image files: a digest over classes, names, sizes and labels in order. Loose
// files and the shards that hold the same files have the same one.

class ListFingerprint {
 public:
  explicit ListFingerprint(const std::vector<std::string>& class_names) {
    for (const std::string& name : class_names) add_text(name);
  }
  /// With its length, so that no two lists read the same.
  void add_text(std::string_view text) {
    hasher_.add(core::format("{}:", text.size()));
    hasher_.add(text);
  }
  void add_sample(std::string_view relative_name, int64_t size_bytes, int64_t label) {
    add_text(relative_name);
    hasher_.add(core::format("{} {}\n", size_bytes, label));
  }
  /// The targets instead of a label: `values` [count], samples by targets.
  void add_targets(const std::vector<std::string>& names, const float* values, int64_t count) {
    for (const std::string& name : names) add_text(name);
    hasher_.add(values, static_cast<uint64_t>(count) * sizeof(float));
  }
  std::string hex() const { return hasher_.hex(); }

 private:
  core::Hasher hasher_;
};

// The base of sources that stand in front of another one: a part of it, a cache, frames from elsewhere.

/// Forwards every method, those of the facets as well, to the source behind it; it has the facets that this one has.
/// A class that derives from it overrides what it changes and nothing else. What it changes of the samples must show in
/// fingerprint_, which is that of the source behind until the constructor of the derived class sets another.
class ForwardingSource : public Source, protected FrameSource, protected StoredSamples, protected ExcerptSource {
 public:
  int64_t size() const override;
  int64_t label(int64_t index) const override;
  void targets(int64_t index, float* out) const override;
  std::string name(int64_t index) const override;
  std::string relative_name(int64_t index) const override;
  RegionOfInterest region(int64_t index) const override;
  SampleShape fixed_shape() const override;
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override;
  SourceMemory memory() const override;
  const FrameSource* frames() const override;
  const StoredSamples* stored() const override;
  const ExcerptSource* excerpts() const override;

 protected:
  explicit ForwardingSource(std::shared_ptr<const Source> behind);

  const Source& behind() const { return *behind_; }
  /// The index that sample `index` has in the source behind. A class that changes it changes size() and run_ends() too.
  virtual int64_t index_behind(int64_t index) const { return index; }

  // Functions of the facets; called only where the source behind has them.
  int64_t frame_count(int64_t index) const override;
  std::string frame_name(int64_t index, int64_t frame) const override;
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override;
  int64_t frame_bytes(int64_t index, int64_t frame) const override;
  int64_t stored_bytes(int64_t index) const override;
  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override;
  std::vector<int64_t> run_ends() const override;
  std::string read_excerpt(int64_t index, double position, std::vector<uint8_t>& buffer,
                           SampleContent& content) const override;
  std::string read_whole(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override;

 private:
  const std::shared_ptr<const Source> behind_;
};

}  // namespace stoker::data
