// SPDX-License-Identifier: Apache-2.0
// The inputs of the resolution of options: facts about machine, data, network and checkpoint, and what was measured. A
// fact that is not known is absent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/system/machine.h"

namespace stoker::config {

/// Means or deviations of a run for a network of another number of channels: that of one channel for each, that of all
/// where they are equal. Empty: other channels have no equal.
inline std::vector<double> for_channels(const std::vector<double>& values, size_t channels) {
  if (values.size() == channels || values.empty()) return values;
  const bool are_equal = std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
  return are_equal ? std::vector<double>(channels, values[0]) : std::vector<double>();
}

/// Facts about the data, known after the scan.
struct DataFacts {
  int64_t num_classes = 0;    ///< or targets, where the task learns numbers
  int64_t channels = 0;       ///< most common; of images 1 or 3
  int64_t median_height = 0;  ///< pixels; of a deterministic sample of at most 100 images
  int64_t median_width = 0;
  int64_t train_images = 0;
  bool has_videos = false;                 ///< samples are clips, or frames of videos
  std::vector<int64_t> class_images = {};  ///< images of the training split, per class; empty where numbers are learned
  bool has_fixed_size = false;             ///< samples have a fixed size: neither cropped, nor resized, nor mirrored
  /// Per channel, of samples that are floats; empty for bytes.
  std::vector<double> input_mean = {}, input_deviation = {};
  int64_t input_samples = 0;  ///< that these were measured on; 0: those of the run that the weights come from
  /// For images with more than 8 bits: how many were looked at, what 0.1 and 99.9 % of their numbers lie below, and
  /// whether that is little of the range of their kind.
  int64_t wide_images = 0;
  double range_low = 0, range_high = 0;
  bool has_narrow_range = false;
  std::vector<double> target_mean = {},
                      target_deviation = {};  ///< per target, of the training split; empty for classes
  /// For data that is only evaluated or predicted, what training takes from its training split is not known: class
  /// weights, means and scales.
  bool of_training = true;
  bool has_float_samples = false;  ///< numbers, not pixels of 8 bits
};

/// Facts about the network: what it is usually trained with.
struct ModelFacts {
  std::string name;
  double drop_rate = 0;
  double drop_path_rate = 0;
};

/// The choices of the first start that a resumed run keeps.
struct CheckpointFacts {
  std::optional<int64_t> threads;  ///< the bits of a CPU depend on it
  std::optional<int64_t> replicas;
  std::optional<int64_t> batch_size, accumulation_steps;  ///< both or neither
  std::optional<bool> drop_last;
  // Choices that may differ with other programs or other data.
  std::optional<std::string> model = {};
  std::optional<double> hflip = {}, lr = {};
  std::optional<TrainCrop> train_crop = {};
  std::optional<OptimizerKind> opt = {};
  std::optional<ScheduleKind> sched = {};
  std::optional<AmpDtype> amp_dtype = {};
  std::optional<bool> amp = {}, channels_last = {}, tf32 = {};
};

/// Where the value of an option that nobody gave comes from.
enum class ChoiceSource {
  rule,           ///< a rule about facts
  measured,       ///< a measurement for this run
  checkpoint,     ///< the run that continues
  environment,    ///< requested there
  configuration,  ///< it stands in for what a file or a flag sets and this machine does not support
};

/// A value that was measured or chosen for this run, and why.
template <typename T>
struct Measured {
  T value{};
  std::string reason;
  ChoiceSource source = ChoiceSource::measured;
};

struct Facts {
  std::string run_name = {};  ///< what the command line calls the run; empty: the data set's name
  /// Whether these options were given: what stands in their place by default may give way to what suits data and
  /// optimizer.
  bool names_model = true, names_lr_base = true, names_momentum = true, names_nesterov = true, names_betas = true,
       names_eps = true;
  /// The number of epochs was written over a file or preset with a warm-up, which may become shorter.
  bool warmup_may_give_way = false;
  /// amp with float16 comes from a file or Lightning's --precision, and no option sets the device: on a CPU it may
  /// give way.
  bool half_may_give_way = false;
  core::MachineFacts machine = {};
  /// false: files are read and written, and nothing is computed. Options of devices have no effect then, and
  /// workers have every CPU.
  bool has_network = true;
  bool shards_replicas = true;  ///< several devices share replicas; else batches, of which there may be any number
  int64_t ranks = 1;            ///< processes that a starter has started to train together; 1: only --devices decides
  std::optional<CheckpointFacts> checkpoint = {};  ///< absent: the run starts from scratch, or that is not known yet
  std::optional<DataFacts> data = {};
  std::optional<ModelFacts> model = {};
  std::optional<bool> trains_on_one_image = {};  ///< whether the network can: batch norm cannot over maps of one value
  std::optional<Measured<int64_t>> batch_size = {};  ///< images per device
  std::optional<Measured<bool>> amp = {};            ///< whether the network trains faster in reduced precision
  std::optional<Measured<bool>> channels_last = {};  ///< the faster layout; absent: the usual one is
  std::optional<Measured<int64_t>> threads = {};     ///< with which the network trains fastest; absent: all CPUs
  std::optional<Measured<int64_t>> num_workers = {};
  std::optional<Measured<int64_t>> cache_budget = {};  ///< bytes
  std::optional<Measured<CacheTier>> cache = {};
};

/// Among how many processes replicas are distributed.
inline int64_t ranks_of(const Devices& devices, const Facts& facts) {
  return facts.shards_replicas ? std::max(devices.count, facts.ranks) : 1;
}

/// Epochs of warm-up of a run whose own would leave nothing of it.
inline double short_warmup(int64_t epochs) { return 0.2 * static_cast<double>(epochs); }

/// The values of ImageNet, for work without data.
DataFacts usual_data(const Options& given);
/// A batch-size for work that does not measure which fits: 64, or the next number below it of which `replicas` batches
/// divide total-batch-size.
Measured<int64_t> usual_batch(const Options& given, int64_t replicas);

}  // namespace stoker::config
