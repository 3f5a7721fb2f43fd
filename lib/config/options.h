// SPDX-License-Identifier: Apache-2.0
// Every setting of a run with its default, one struct per group. Names, units, ranges, help and aliases stand in
// table/declare_*.cpp. There are two types: Options as they were given, in which a value may be automatic, and
// ResolvedOptions, in which every value is plain: a group takes Auto or Plain for `Pick`. config/resolution.h leads
// from one to the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"

namespace stoker::config {

// Types of option values besides numbers and text: automatic, an interval, one of a few words.

/// The words of an option, which stand for the enumerators of T in their order.
template <typename T>
std::vector<std::pair<std::string, T>> words_in_order(const char* words) {
  std::vector<std::pair<std::string, T>> meanings;
  for (const std::string& word : core::split_words(words, ' ')) meanings.emplace_back(word, T(meanings.size()));
  return meanings;
}

/// A value that was given, or that resolve() has to choose. value() of one that was not given throws std::logic_error.
template <typename T>
class Auto {
 public:
  Auto() = default;
  Auto(T value) : value_(std::move(value)), chosen_(true) {}  // NOLINT: reads as the value it holds

  bool is_auto() const { return !chosen_; }
  const T& value() const {
    if (!chosen_) throw std::logic_error("an automatic option was read before resolve()");
    return value_;
  }

 private:
  T value_{};
  bool chosen_ = false;
};

/// A value of ResolvedOptions: plain.
template <typename T>
using Plain = T;

/// An interval in one of three units; what `--save-every 1e`, `2000u` or `10m` mean.
struct Interval {
  enum class Unit { never, epochs, updates, seconds };
  Unit unit = Unit::never;
  double amount = 0;  ///< > 0 unless never; whole for updates, and for epochs from 1 on

  static Interval epochs(double n) { return {Unit::epochs, n}; }
  static Interval updates(double n) { return {Unit::updates, n}; }
  static Interval seconds(double s) { return {Unit::seconds, s}; }
};

/// Pixels of the images that the network sees.
struct ImageSize {
  int64_t height = 0, width = 0;

  bool is_square() const { return height == width; }
  int64_t short_side() const { return std::min(height, width); }
  int64_t long_side() const { return std::max(height, width); }
  bool operator==(const ImageSize& other) const { return height == other.height && width == other.width; }
};
/// As --img-size takes it: "224", or "96,320" where height and width differ.
inline std::string image_size_text(const ImageSize& size) {
  return std::to_string(size.height) + (size.is_square() ? "" : "," + std::to_string(size.width));
}

/// Pitches of the bands, and whether a band's weights are divided by its width.
enum class MelScale { htk, slaney };
enum class MelNorm { none, slaney };

/// Excerpts of sounds as log-mel spectrograms: the names and formulas of torchaudio's MelSpectrogram.
struct SoundOptions {
  int64_t sample_rate = 16'000;     ///< Hz
  int64_t n_fft = 400;              ///< samples of a window
  std::optional<int64_t> hop = {};  ///< samples from one window to the next; nothing: half of n_fft
  int64_t mels = 128;
  MelScale mel_scale = MelScale::htk;
  MelNorm mel_norm = MelNorm::none;
  double seconds = 1;  ///< duration of an excerpt

  int64_t hop_length() const { return hop.value_or(n_fft / 2); }
  int64_t samples() const { return std::max<int64_t>(1, std::llround(seconds * static_cast<double>(sample_rate))); }
  int64_t frames() const { return 1 + (samples() - n_fft % 2) / hop_length(); }
};

/// The value of --init-from for the usual weights of the network that is trained.
inline constexpr const char* kDefaultWeights = "default";

// Enumerators stand in the order of the words in table/declare_*.cpp.
enum class DatasetType { automatic, idx, cifar, numpy, folder, csv, biwi, w300lp, shards, clips, hdf5 };
/// Which frames of a video make a clip: spread over all of it, or a stride apart from a place drawn at random.
enum class FrameSampling { uniform, stride };
/// The separator of the fields of a CSV file; automatic: derived from its first line.
enum class CsvDelimiter { automatic, comma, semicolon, tab };
/// Stands for --input-range percentile: 0.1 and 99.9 % of the numbers lie below; measured at the start.
inline const std::vector<double> kPercentiles = {0, 0};
enum class OnBadImage { fail, skip, repair };
/// The value of --val-split without validation data.
inline constexpr const char* kNoValidation = "none";
/// Values of --group besides columns and patterns.
inline constexpr const char* kNoGroups = "none";
inline constexpr const char* kNearDuplicates = "near-duplicates";
/// With skip: as good as any number of bad images.
inline constexpr int64_t kUnlimitedBad = 1'000'000'000;
enum class TrainCrop { none, center, random_resized, padded, letterbox };
enum class EvalCrop { none, center, letterbox };
enum class Interpolation { bilinear, bicubic, lanczos };
/// The random operations of an image beside those of rand_augment.
enum class AugmentPolicy { none, ta_wide, aug_mix, three_augment };
enum class AugmentInterpolation { nearest, bilinear };
enum class OptimizerKind { sgd, adam, adamw, rmsprop, nadam, lion, lamb, muon };
enum class ScheduleKind { constant, step, multistep, cosine, one_cycle, polynomial, cosine_restarts, wsd, plateau };
enum class AmpDtype { float16, bfloat16 };
enum class ProveBackend { automatic, full, off };
enum class ClipMode { norm, value };
/// Where samples are kept once they have been used: nowhere, decoded, or as they are stored.
enum class CacheTier { none, ram, compressed };
/// How batches reach the device: made by workers and copied, or made on the device of pixels that stay there.
enum class FeedKind { loader, resident };
/// Whether the host launches each operation of an update, or a graph of all of them.
enum class Graphs { on, off };
enum class TaskKind { multiclass, binary, multilabel, regression, head_pose };
enum class LossKind { l1, l2, smooth_l1, huber, cross_entropy, bce, focal, asymmetric };
/// The loss that training minimises, with the numbers of its kind in the order of its words: `focal,2`.
struct Loss {
  LossKind kind = LossKind::smooth_l1;
  std::vector<double> numbers = {};
};
enum class PoseHead { direct, binned };
/// Metrics that can decide which checkpoint is best; each task has some of them (see config/task_facts.h).
enum class EvalMetric {
  loss,
  top1,
  top5,
  accuracy,
  exact_match,
  precision,
  recall,
  f1,
  f1_micro,
  f1_weighted,
  balanced_accuracy,
  mcc,
  kappa,
  roc_auc,
  pr_auc,
  mae,
  rmse,
  r2
};
/// Views of an image whose outputs are averaged wherever a network is evaluated or predicts.
enum class TestTimeAugmentation { none, hflip, ten_crop, scales };
/// Crops of an image that the loader cuts out for it.
constexpr int64_t crops_of(TestTimeAugmentation tta) {
  return tta == TestTimeAugmentation::ten_crop ? 10 : tta == TestTimeAugmentation::scales ? 3 : 1;
}
/// In which order processes add gradients: of replicas, or of the transport.
enum class Exchange { exact, fast };

/// Whether another number of processes gives other bits.
constexpr bool bits_depend_on_ranks(Exchange exchange) {
  switch (exchange) {
    case Exchange::exact: return false;
    case Exchange::fast: return true;
  }
  return true;
}

template <template <typename> class Pick>
struct DataOptionsOf {
  DatasetType dataset = DatasetType::automatic;  ///< automatic: derived from what data_dir holds
  TaskKind task = TaskKind::multiclass;          ///< the kind of label
  std::string data_dir = "/usr/share/datasets/fashion-mnist";
  std::string train_split = "train";  ///< folder, IDX stem or CSV file name without .csv
  /// Nothing: the first of val, validation, test, t10k that exists. kNoValidation: none.
  std::optional<std::string> val_split;
  std::string val_subjects;  ///< biwi: folders to validate on, with commas; empty: every third
  double face_margin = 0.2;  ///< 300wlp, biwi: added to each side of the face's box, share of its size
  int64_t clip_frames = 8;   ///< clips: frames of a video that the network sees
  FrameSampling frame_sampling = FrameSampling::uniform;
  int64_t frame_stride = 1;       ///< clips, with stride: from each frame to the next
  std::string boxes;              ///< video files: CSV with the part of each frame that is seen; empty: all of it
  std::string hdf5_input;         ///< hdf5: data set of the inputs; empty: found by its usual names
  std::string hdf5_label;         ///< hdf5: data set with labels; empty: found by its usual names
  std::string csv_path = "path";  ///< csv: column with the path of the image
  std::string csv_label;          ///< csv: column with the label, or columns to learn; empty: label, or all others
  CsvDelimiter csv_delimiter = CsvDelimiter::automatic;
  SoundOptions sound;                ///< sounds alone
  std::string stage_dir;             ///< copies of files are read from here; empty: none are made
  double val_fraction = 0;           ///< > 0: held out from train_split by a hash of the path
  bool stratify = false;             ///< val_fraction holds for each class by itself
  std::string group = kNoGroups;     ///< val_fraction keeps these on one side: a column, a pattern or kNearDuplicates
  double fraction = 1;               ///< share of each class that is trained on, or above 1 a number of samples
  Pick<ImageSize> img_size{};        ///< that the network sees
  Pick<int64_t> in_chans{};          ///< channels: 1 or 3 for images, any number for samples that are taken as they are
  Pick<int64_t> num_classes{};       ///< auto: from the data
  Pick<std::vector<double>> mean{};  ///< per channel, of pixels in [0, 1]
  Pick<std::vector<double>> std{};
  /// For images with more than 8 bits: the numbers that become black and white; empty: the whole range; kPercentiles:
  /// to be measured, as auto does where the numbers fill little of it.
  Pick<std::vector<double>> input_range{};
  OnBadImage on_bad_image = OnBadImage::fail;
  int64_t max_bad = 10;  ///< with skip: more bad images than this stop the run
  double max_image_megapixels = 64;
  bool follow_symlinks = true;
};
using DataOptions = DataOptionsOf<Auto>;
using ResolvedDataOptions = DataOptionsOf<Plain>;

/// How what the task learns is weighed and judged.
template <template <typename> class Pick>
struct TaskOptionsOf {
  /// multiclass: factor of each class's loss; empty: none; auto: from the counts of the training split
  Pick<std::vector<double>> class_weights = std::vector<double>{};
  /// binary, multilabel: factor of the positive term, 1 value or one per label; empty: none; auto: from the counts
  Pick<std::vector<double>> pos_weight = std::vector<double>{};
  /// binary, multilabel: probability from which "positive" is predicted, 1 value or one per label
  std::vector<double> threshold{0.5};
  double temperature = 1;  ///< classes and labels: outputs are divided by it before they become probabilities
  Pick<Loss> loss{};       ///< auto: cross-entropy, bce or smooth-l1, by the task
  /// regression, head pose: the network learns (target - mean) / scale; one value or one per target; empty for classes
  Pick<std::vector<double>> target_mean{}, target_scale{};
  PoseHead pose_head = PoseHead::direct;
  int64_t pose_bins = 66;       ///< per angle
  double pose_range = 99;       ///< degrees; bins cover [-range, range]
  double pose_loss_weight = 1;  ///< weight of the regression term beside the bins' cross entropy
};
using TaskOptions = TaskOptionsOf<Auto>;
using ResolvedTaskOptions = TaskOptionsOf<Plain>;

template <template <typename> class Pick>
struct AugmentOptionsOf {
  Pick<TrainCrop> train_crop{};  ///< auto: padded under 64 px, else random-resized
  double scale_min = 0.08;       ///< random-resized: share of the source's area
  double scale_max = 1.0;
  double ratio_min = 0.75;  ///< random-resized: aspect ratio, width / height
  double ratio_max = 4.0 / 3.0;
  Pick<int64_t> crop_padding{};      ///< pixels of zero border for the padded crop
  Pick<double> hflip{};              ///< probability; auto: 0.5, or 0 where samples have a fixed size
  double vflip = 0;                  ///< probability
  double rotate90 = 0;               ///< probability
  double rotation = 0;               ///< degrees either way; 0: off
  std::vector<double> rand_augment;  ///< operations per image and level; empty: off
  AugmentPolicy policy = AugmentPolicy::none;
  double affine_shift = 0, affine_scale_min = 1, affine_scale_max = 1, affine_shear = 0;  ///< degrees; others: shares
  double perspective = 0, perspective_distortion = 0.5;                                   ///< probability, share
  std::vector<double> color_jitter;      ///< empty: off; 1 or 3 numbers without hue, 4 with it
  double grayscale = 0;                  ///< probability
  double gaussian_blur = 0;              ///< probability
  int64_t gaussian_blur_kernel = 23;     ///< pixels, odd
  double gaussian_blur_sigma_min = 0.1;  ///< pixels
  double gaussian_blur_sigma_max = 2;
  double color_jitter_prob = 1;    ///< that an image is varied so
  double gaussian_noise_prob = 1;  ///< likewise
  double gaussian_noise = 0;       ///< deviation as a share of the full range; 0: off
  double random_erasing = 0;       ///< probability
  int64_t freq_masks = 0;          ///< spectrograms: bands that are blanked; 0: off
  int64_t freq_mask_param = 8;     ///< bins; widest band
  int64_t time_masks = 0;          ///< spectrograms: segments of time that are blanked; 0: off
  int64_t time_mask_param = 8;     ///< frames; longest segment
  AugmentInterpolation augment_interpolation = AugmentInterpolation::bilinear;
  double mixup_alpha = 0;          ///< parameter of Beta(alpha, alpha); 0: no mixup
  double cutmix_alpha = 0;         ///< parameter of Beta(alpha, alpha); 0: no CutMix
  double mixup_prob = 1;           ///< that a batch is mixed, with either
  double mixup_switch_prob = 0.5;  ///< probability of CutMix where both are on
  EvalCrop eval_crop = EvalCrop::center;
  Pick<double> crop_pct{};  ///< share of the resized short side that the centre crop keeps
  Interpolation interpolation = Interpolation::bilinear;  ///< filter of every resize, in training and evaluation
};
using AugmentOptions = AugmentOptionsOf<Auto>;

template <template <typename> class Pick>
bool is_affine(const AugmentOptionsOf<Pick>& o) {
  return o.affine_shift > 0 || o.affine_scale_min != 1 || o.affine_scale_max != 1 || o.affine_shear > 0;
}
using ResolvedAugmentOptions = AugmentOptionsOf<Plain>;

template <template <typename> class Pick>
struct LoaderOptionsOf {
  Pick<int64_t> batch_size = 64;  ///< images per device; auto: the most that fit, by measurement
  Pick<int64_t> val_batch_size{};
  Pick<int64_t> num_workers{};  ///< threads; 0 decodes on the training thread
  int64_t prefetch_factor = 4;  ///< batches decoded ahead
  bool pin_memory = true;       ///< when the device is CUDA
  /// None: resident where the device is CUDA and the data fit.
  std::optional<FeedKind> feed = FeedKind::loader;
  Pick<CacheTier> cache{};       ///< auto: the fastest that holds all samples within cache_budget
  Pick<int64_t> cache_budget{};  ///< bytes; auto: half of what is free
  Pick<bool> drop_last{};        ///< auto: when the last batch is too small to train on, see config/resolution.h
  bool class_balanced = false;   ///< training sees every class equally often
  int64_t shuffle_buffer = 0;    ///< images that are shuffled among neighbours on the storage; 0: all
};
using LoaderOptions = LoaderOptionsOf<Auto>;
using ResolvedLoaderOptions = LoaderOptionsOf<Plain>;

template <template <typename> class Pick>
struct ModelOptionsOf {
  std::string model = "small_cnn";
  std::string init_from;            ///< starting weights: their name, a file, a folder, a run; empty: none
  bool fresh_head = false;          ///< the classifier starts at random, whatever init_from has
  double init_norm_eps = 0;         ///< epsilon of the batch norms that init_from was trained with; 0: the library's
  bool same_padding = false;        ///< the network pads as TensorFlow does
  bool zero_init_residual = false;  ///< last batch norm of each residual block starts at 0
  Pick<double> drop_rate{};         ///< dropout before the classifier; auto: what the network is usually trained with
  Pick<double> drop_path_rate{};    ///< stochastic depth of the last residual branch; auto: as above
  std::string backbone = "efficientnet_b0";  ///< two_stream_convlstm: what sees single frames
  int64_t lstm_channels = 64;                ///< two_stream_convlstm
  std::string freeze;      ///< comma-separated globs over names of parameters and modules; empty: none
  Interval freeze_for;     ///< epochs or updates, after which what is frozen learns; never: it does not
  int64_t lora = 0;        ///< rank of what linear layers learn beside weights that are frozen; 0: weights learn
  std::string teacher;     ///< a run, a checkpoint or FILE.ts whose outputs are learned, too; empty: none
  double bn_momentum = 0;  ///< share of the newest batch in batch norm's running statistics; 0: the network's own
  bool sync_bn = false;    ///< batch norms see the batches of all processes
  int64_t precise_bn = 0;  ///< images by which running statistics are measured after the last update; 0: they are not
  bool grad_checkpointing = false;
  int64_t width = 32;  ///< small_cnn, tiny_cnn, resnet9: channels of the first stage
};
using ModelOptions = ModelOptionsOf<Auto>;
using ResolvedModelOptions = ModelOptionsOf<Plain>;

template <template <typename> class Pick>
struct OptimOptionsOf {
  Pick<OptimizerKind> opt{};  ///< auto: adamw where real numbers are learned, else sgd
  Pick<double> lr{};          ///< peak learning rate; auto: lr_base scaled by the total batch
  double lr_base = 0.1;       ///< per 256 images
  double momentum = 0.9;
  bool nesterov = true;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 5e-4;
  bool decay_norm_and_bias = false;  ///< every parameter decays; false: as in timm
  double layer_decay = 1;            ///< factor of the learning rate from each layer to the one before it
  double backbone_lr = 1;            ///< factor of the learning rate of all but the classifier
  double clip_grad = 0;              ///< 0: off
  ClipMode clip_mode = ClipMode::norm;
  bool model_ema = false;
  double model_ema_decay = 0.9998;
  bool model_ema_warmup = true;  ///< decay_t = min(decay, (1 + t) / (10 + t))
};
using OptimOptions = OptimOptionsOf<Auto>;
using ResolvedOptimOptions = OptimOptionsOf<Plain>;

template <template <typename> class Pick>
struct ScheduleOptionsOf {
  Pick<ScheduleKind> sched{};  ///< auto: one-cycle for small images, else cosine
  double warmup_epochs = 0;
  double warmup_lr = 0;  ///< where warm-up starts
  double min_lr = 0;
  std::vector<double> decay_milestones;  ///< epochs; multistep
  double decay_epochs = 30;              ///< step: epochs between decays
  double decay_rate = 0.1;
  double poly_power = 1.0;
  double cycle_epochs = 10;                 ///< cosine_restarts: the first cycle
  double cycle_mult = 1;                    ///< each cycle is as much longer than the one before it
  double cycle_decay = 1;                   ///< and begins at this share of its rate
  Pick<double> cooldown{};                  ///< wsd: epochs at the end; auto: a fifth
  int64_t plateau_patience = 10;            ///< evaluations without improvement before the rate falls
  double plateau_threshold = 1e-4;          ///< share of the best by which one is better
  int64_t plateau_rest = 0;                 ///< evaluations after a fall that do not count
  double one_cycle_pct_start = 0.3;         ///< share of updates until the peak
  double one_cycle_div_factor = 25;         ///< start = peak / this
  double one_cycle_final_div_factor = 1e4;  ///< end = start / this
  bool one_cycle_momentum = true;           ///< SGD's momentum, or Adam's beta1, moves against the learning rate
  double one_cycle_base_momentum = 0.85;    ///< at the peak of the learning rate
  double one_cycle_max_momentum = 0.95;     ///< at the first and the last update
};
using ScheduleOptions = ScheduleOptionsOf<Auto>;
using ResolvedScheduleOptions = ScheduleOptionsOf<Plain>;

template <template <typename> class Pick>
struct TrainOptionsOf {
  int64_t epochs = 10;                 ///< absolute, also on resume
  int64_t max_updates = 0;             ///< 0: no limit; optimizer updates of the whole run
  double max_time_seconds = 0;         ///< 0: no limit; of this process
  Pick<int64_t> accumulation_steps{};  ///< batches per update and replica; auto: as total_batch_size makes it, or 1
  Pick<int64_t> replicas{};            ///< copies of the network in the arithmetic of an update, whoever computes them
  int64_t total_batch_size = 0;        ///< images per update; 0: batch_size x accumulation_steps x replicas
  bool auto_micro_batch = false;       ///< out of memory: compute each batch in twice as many micro-batches
  double label_smoothing = 0;
  double distill_share = 0.9, distill_temperature = 4;  ///< with a teacher: its share of the loss, divisor of outputs
  int64_t patience = 0;            ///< epochs, or evaluations inside them, without improvement; 0: off
  double min_delta = 0;            ///< least change of the metric that counts as improvement
  Pick<EvalMetric> eval_metric{};  ///< auto: the task's first
  TestTimeAugmentation tta = TestTimeAugmentation::none;
  Interval val_every = Interval::epochs(1);
  uint64_t seed = 42;
  bool deterministic = false;
};
using TrainOptions = TrainOptionsOf<Auto>;
using ResolvedTrainOptions = TrainOptionsOf<Plain>;

template <template <typename> class Pick>
struct PrecisionOptionsOf {
  Pick<bool> amp{};            ///< auto: on where training is faster with it
  Pick<AmpDtype> amp_dtype{};  ///< auto: bfloat16 where the device computes it natively
  Pick<bool> channels_last{};
  Pick<bool> tf32{};  ///< auto: on where the device is CUDA
  ProveBackend prove_backend = ProveBackend::automatic;
  double init_scale = 65536;  ///< fp16 GradScaler
  int64_t scale_growth_interval = 2000;
  double min_scale = 1e-4;    ///< least loss scale: below it the run ends
  int64_t max_skipped = 100;  ///< updates in a row, then the run ends; 0: no limit
};
using PrecisionOptions = PrecisionOptionsOf<Auto>;
using ResolvedPrecisionOptions = PrecisionOptionsOf<Plain>;

/// Processes of this machine that work together, each with a device.
struct Devices {
  int64_t count = 1;
  std::vector<int64_t> gpus{};  ///< the number of that of each process; empty: 0, 1, 2 and so on, or a CPU for all
};

template <template <typename> class Pick>
struct DeviceOptionsOf {
  Pick<std::string> device{};  ///< cpu, cuda or cuda:N; resolved: cpu or cuda:N
  Pick<int64_t> threads{};     ///< CPU threads inside one operation
  Devices devices{};
  Exchange exchange = Exchange::exact;
  bool overlap_exchange = true;  ///< with the backward pass
  /// None: where training is found to wait for launches.
  std::optional<Graphs> graphs = Graphs::off;
  double exchange_timeout_seconds = 60;  ///< that one of them waits for another
  std::string listen;                    ///< the address at which rank 0 waits for ranks on other machines; empty: none
  int64_t restarts = 0;                  ///< limit on restarts of all processes after one was lost
};
using DeviceOptions = DeviceOptionsOf<Auto>;
using ResolvedDeviceOptions = DeviceOptionsOf<Plain>;

template <template <typename> class Pick>
struct RunOptionsOf {
  Pick<std::string> run_dir{};
  std::string resume = "auto";   ///< auto, last, best, none or a checkpoint directory
  bool override_resume = false;  ///< continue although training options or data changed
  Interval save_every = Interval::epochs(1);
  Interval report_every = Interval::seconds(5);
  int64_t digest_every = 200;  ///< updates; 0: never
  int64_t keep_last = 2;
  Interval keep_every;       ///< checkpoints that stay; epochs or updates
  int64_t average_last = 0;  ///< checkpoints of save_every that are averaged in the end; 0: none
  bool save_best = true;
  bool space_check = true;
  bool async_save = true;    ///< checkpoints are written beside training, from a copy in host memory
  bool plan_check = true;    ///< refuse a run whose memory cannot fit
  std::string stop_signals;  ///< names with commas, beside those that always stop; empty: none
  int64_t stop_exit_code = 75;
  bool tensorboard = false;  ///< event files for TensorBoard
  bool report = false;       ///< report.html at the end
  Interval profile;          ///< how much of the run's start goes into profile.json; never: nothing
};
using RunOptions = RunOptionsOf<Auto>;
using ResolvedRunOptions = RunOptionsOf<Plain>;

struct LogOptions {
  std::string log_level = "info";  ///< debug, info, warning or error
  bool quiet = false;              ///< warnings, errors and the last line only
  std::string progress = "bar";    ///< bar, plain or off
  std::string log_file;            ///< besides the run's train.log
};

template <template <typename> class Pick>
struct OptionsOf {
  DataOptionsOf<Pick> data;
  TaskOptionsOf<Pick> task;
  AugmentOptionsOf<Pick> augment;
  LoaderOptionsOf<Pick> loader;
  ModelOptionsOf<Pick> model;
  OptimOptionsOf<Pick> optim;
  ScheduleOptionsOf<Pick> schedule;
  TrainOptionsOf<Pick> train;
  PrecisionOptionsOf<Pick> precision;
  DeviceOptionsOf<Pick> device;
  RunOptionsOf<Pick> run;
  LogOptions log;
};
using Options = OptionsOf<Auto>;
using ResolvedOptions = OptionsOf<Plain>;

}  // namespace stoker::config
