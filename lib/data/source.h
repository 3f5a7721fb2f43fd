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
// To write one: a source that reads samples derives from LeafSource (leaf_source.h), which fills in what few sources
// have; a source in front of another one derives from ForwardingSource (forwarding_source.h), which forwards all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/region_of_interest.h"
#include "data/sample_shape.h"

namespace stoker::data {

/// The content of one image: encoded bytes of a file, or pixels that need no decoding.
struct SampleContent {
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
  // Set when `bytes` are pixels in HWC order; 0 when they are an encoded file.
  int height = 0, width = 0, channels = 0;
  Element element = Element::uint8;  ///< of pixels; others than uint8 only where fixed_shape() has them
  int64_t decode_nanoseconds = 0;    ///< that the source spent on decoding within this read()
  bool is_pixels() const { return height > 0; }
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
  /// What a frame is called below name(index), such as "frame_0001.jpg". Never empty.
  virtual std::string frame_name(int64_t index, int64_t frame) const = 0;
  /// As Source::read(), of one frame. Source::read() gives frame 0.
  virtual std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                                 SampleContent& content) const = 0;
  /// As StoredSamples::stored_bytes(), of one frame.
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
  /// What the source fixes of its samples' shape. `frames` above 0: clips of that many frames. `height` above 0: all
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

  const std::vector<std::string>& class_names() const { return class_names_; }
  int64_t num_classes() const { return static_cast<int64_t>(class_names_.size()); }
  const std::vector<std::string>& target_names() const { return target_names_; }
  /// Numbers to learn per sample; 0 where the class is all there is.
  int64_t num_targets() const { return static_cast<int64_t>(target_names_.size()); }
  /// What is learned, by name: the targets where there are some, else the classes.
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
/// What people call its samples: images, clips of videos, or samples, where these are no pictures.
struct ItemWord {
  const char* one;      ///< "an image"
  const char* several;  ///< "images"
};
ItemWord item_word(const Source& source);
/// Whether samples come as pixels, so that there is nothing to decode: judged by the first.
bool holds_pixels(const Source& source);

}  // namespace stoker::data
