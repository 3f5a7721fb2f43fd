// SPDX-License-Identifier: Apache-2.0
// Where samples come from: an ordered, labelled, fingerprinted list of images. Knows nothing of batches,
// augmentation or devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/face_box.h"
#include "data/sample_shape.h"

namespace stoker::data {

/// The content of one image: encoded bytes of a file, or pixels that need no decoding.
/// Pointers live as long as the source (pixels) or the caller's buffer (encoded, or pixels that were read into it).
struct SampleContent {
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
  // Set when `bytes` are pixels in HWC order; 0 when they are an encoded file.
  int height = 0, width = 0, channels = 0;
  Element element = Element::uint8;  ///< of pixels; others than uint8 only where fixed_shape() says so
  int64_t decode_nanoseconds = 0;    ///< that the source spent on decoding within this read()
  bool is_pixels() const { return height > 0; }
};

/// Immutable after construction; every method is safe from any thread.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t index) const = 0;  ///< [0, num_classes); -1 where there are no labels
  /// The part of image `index` that crops are taken from.
  virtual FaceBox face(int64_t /*index*/) const { return {}; }
  virtual std::string name(int64_t index) const = 0;  ///< path or "file#17": for messages and predictions
  /// The name without what depends on where the data lies: hash splits and fingerprints are made of it.
  virtual std::string relative_name(int64_t index) const = 0;
  /// Writes the num_targets() numbers that are to be learned of sample `index`, in the order of target_names().
  virtual void targets(int64_t /*index*/, float* /*out*/) const {}
  /// Reads sample `index`. Returns "" or the cause in words (missing, changed since the scan, unreadable).
  /// Throws core::Error{io} when the storage fails (EIO, ESTALE, ETIMEDOUT) three times in a row.
  virtual std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const = 0;
  /// As read(), of which the first `bytes` are enough; may give more.
  virtual std::string read_head(int64_t index, int64_t /*bytes*/, std::vector<uint8_t>& buffer,
                                SampleContent& content) const {
    return read(index, buffer, content);
  }
  /// What the source fixes of its samples' shape. `frames` above 0: they are clips of so many. `height` above 0: all
  /// are pixels of this size, channels and element, which are taken as they are, neither cropped nor resized; else
  /// images of any size, which become what the run wants.
  virtual SampleShape fixed_shape() const { return {}; }
  /// How many images sample `index` can be taken from, at least 1; read() gives the first.
  virtual int64_t frame_count(int64_t /*index*/) const { return 1; }
  /// What a frame is called below name(index); empty where the sample is one image.
  virtual std::string frame_name(int64_t /*index*/, int64_t /*frame*/) const { return ""; }
  /// As read(), of the frame in [0, frame_count(index)).
  virtual std::string read_frame(int64_t index, int64_t /*frame*/, std::vector<uint8_t>& buffer,
                                 SampleContent& content) const {
    return read(index, buffer, content);
  }
  /// As stored_bytes(), of one frame.
  virtual int64_t frame_bytes(int64_t index, int64_t /*frame*/) const { return stored_bytes(index); }
  /// Bytes of the encoded sample, known without reading it; -1 where it is not.
  virtual int64_t stored_bytes(int64_t /*index*/) const { return -1; }
  /// Memory that a cache of samples takes by now.
  virtual int64_t cached_bytes() const { return 0; }

  /// Where the runs of samples end that lie one after another on the storage (shards); the last end is size().
  virtual std::vector<int64_t> run_ends() const { return {size()}; }

  /// Bytes of memory that the list of samples takes, without pixels: names, sizes, labels, places. 0: not counted.
  virtual int64_t list_bytes() const { return 0; }

  const std::vector<std::string>& class_names() const { return class_names_; }
  int64_t num_classes() const { return static_cast<int64_t>(class_names_.size()); }
  const std::vector<std::string>& target_names() const { return target_names_; }
  /// Numbers to learn per sample; 0 where the class is all there is.
  int64_t num_targets() const { return static_cast<int64_t>(target_names_.size()); }
  /// What is learned, by name: the targets where there are some, else the classes.
  const std::vector<std::string>& learned_names() const { return target_names_.empty() ? class_names_ : target_names_; }
  /// Digest over names, sizes, labels and targets in order: two sources with equal fingerprints give equal samples.
  const std::string& fingerprint() const { return fingerprint_; }

 protected:
  std::vector<std::string> class_names_;
  std::vector<std::string> target_names_;
  std::string fingerprint_;
};

struct Datasets {
  std::shared_ptr<const Source> train;
  std::shared_ptr<const Source> val;
  std::vector<std::string> notes;  ///< for the banner: skipped entries, which split was chosen and why
};

/// Opens and scans the training and validation splits: IDX (plain or .gz), class-per-folder, clips, or CSV manifest
/// (`path,label`, or `path` and a column per target as the task wants it). Sorted, symlink-loop-safe, labels checked.
/// Throws core::Error (no_input with the expected tree, data with file:line); throws core::StopRequested when a stop is
/// asked for during the scan.
Datasets open_datasets(const config::DataOptions& options);
/// One split by name, as `train eval --split` wants it; labels are those of the training split's classes.
std::shared_ptr<const Source> open_split(const config::DataOptions& options, const std::string& split);
/// Splits with their names and the classes of the training split, nothing held out, as `train pack` wants them:
/// those named, or the training split and every usual validation split that exists.
std::vector<std::pair<std::string, std::shared_ptr<const Source>>> open_whole_splits(const config::DataOptions& options,
                                                                                     std::vector<std::string> names,
                                                                                     std::vector<std::string>& notes);
/// Loose images of a folder (recursively) or one file, without labels, for prediction.
std::shared_ptr<const Source> open_loose_images(const std::string& path, bool follow_symlinks);

/// The same where samples are clips: each folder with images is a video, whose frames are chosen as `options` say.
std::shared_ptr<const Source> open_loose_videos(const std::string& path, const config::DataOptions& options);

/// Most common channel count (1 or 3) and median size of up to 100 evenly spaced samples, unreadable ones
/// left out. Throws core::Error{data} when none can be read.
struct SizeProbe {
  int64_t channels = 0, median_height = 0, median_width = 0;
};
SizeProbe probe_sizes(const Source& source, double max_image_megapixels);

/// Whether samples are taken from videos, one frame or several: told from the first.
bool holds_videos(const Source& source);

/// Whether samples come as pixels, so that there is nothing to decode: told from the first.
bool holds_pixels(const Source& source);

}  // namespace stoker::data
