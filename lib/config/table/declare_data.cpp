// SPDX-License-Identifier: Apache-2.0
// Rows of the groups data, loader and task. Independent of how options are read or shown.
#include <cmath>
#include <limits>
#include <optional>

#include "config/table/declaration.h"
#include "config/task_facts.h"

namespace stoker::config {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

Codec<double> fraction_codec() {
  Codec<double> codec = number_codec({0, 1e9, true, false});
  codec.parse = [parse = codec.parse](const std::string& text, double& value) {
    double number = 0;
    std::string problem = parse(text, number);
    if (!problem.empty()) return problem;
    if (number > 1 && number != std::floor(number)) return shown(text) + " is neither a share nor a whole number";
    value = number;
    return problem;
  };
  codec.range = "a share up to 1, or a whole number of images";
  return codec;
}

void declare_sound(Declaration& d, SoundOptions& o) {
  d.add("sample-rate", o.sample_rate, integer_codec(100, 384'000))
      .value_in_older_runs("16000")
      .unit("Hz")
      .help("Sounds: resampled to this. Raise it where high pitches matter.");
  d.add("n-fft", o.n_fft, integer_codec(2, 1 << 16))
      .value_in_older_runs("400")
      .unit("samples")
      .help("Sounds: window of the Fourier transform. Raise it for finer pitch, lower it for finer time.");
  d.add("hop", o.hop, integer_codec(1, 1 << 20))
      .value_in_older_runs("auto")
      .unit("samples")
      .help("Sounds: from one window to the next; auto is half of n-fft. Raise it for smaller spectrograms.");
  d.add("mels", o.mels, integer_codec(1, 4096))
      .value_in_older_runs("128")
      .unit("bands")
      .help("Sounds: height of the log-mel spectrogram. Lower it with n-fft: bands between two frequencies are empty.");
  d.add_parts("mel-scale", {{"htk|slaney", o, &SoundOptions::mel_scale, choice_codec<MelScale>("htk slaney")},
                            {"none|slaney", o, &SoundOptions::mel_norm, choice_codec<MelNorm>("none slaney")}})
      .value_in_older_runs("htk,none")
      .help("Sounds: mel_scale and norm of torchaudio. Set slaney,slaney for librosa's.");
  d.add("seconds", o.seconds, number_codec({0.001, 3600}))
      .value_in_older_runs("1")
      .unit("seconds")
      .help(
          "Sounds: length of the excerpt that the network sees, from anywhere in training, else from the middle; what "
          "is shorter is followed by silence. Set it to what a label needs.");
}

template <template <typename> class Pick>
void declare_source(Declaration& d, DataOptionsOf<Pick>& o) {
  using Of = DataOptionsOf<Pick>;
  d.group("data", "Dataset");
  d.add("data-dir", o.data_dir, text_codec("DIR", false))
      .alias({"data", "data-path"})
      .help(
          "Folder with the data set; IDX files, one folder per class, CSV files, tar shards or HDF5 files; or one CSV "
          "or HDF5 file. Set it for any data of your own.")
      .free_on_resume()
      .used_in_eval();
  d.add("dataset", o.dataset,
        choice_codec<DatasetType>("auto idx cifar numpy folder csv biwi 300wlp shards clips hdf5"))
      .help("Layout of the data set; auto detects it from what data-dir holds. Set it where the detection is wrong.")
      .used_in_eval()
      .used_in_pack();
  d.add("train-split", o.train_split, text_codec("NAME", false))
      .help(
          "Split to train on: a folder, an IDX stem, a CSV file without .csv, or the prefix of shards. Set it where "
          "yours has another name.")
      .used_in_pack();
  d.add("val-split", o.val_split, text_codec("NAME", false))
      .help(
          "Split to evaluate on; auto uses the first of val, validation, valid, test and t10k that exists. Set it "
          "where yours has another name; fold:2/5 is the second of five parts of train-split, each class spread over "
          "all; none trains on all images, without validation and a best checkpoint.")
      .used_in_eval();
  d.add("val-fraction", o.val_fraction, number_codec({0, 1, false, true}))
      .help(
          "Share of train-split held out for evaluation; chosen by a hash of each path, 0: none. Set it where the data "
          "has no validation split.")
      .used_in_pack();
  d.add_switch("stratify", o.stratify)
      .value_in_older_runs("false")
      .help(
          "With val-fraction: hold out that share of each class, and at least one image of a class with two or more. "
          "Set it where classes are rare; without it a hash of the path decides alone, and an image stays on its side "
          "when others are added or removed.")
      .used_in_pack();
  d.add("group", o.group, text_codec("COLUMN|REGEX|near-duplicates", false))
      .value_in_older_runs(kNoGroups)
      .help(
          "With val-fraction or folds: keep groups of images on one side, the share of each class as far as they "
          "allow: "
          "those with one value in a column of the CSV list, those whose path has one match of a regular expression, "
          "or "
          "of its first parentheses, or near duplicates. Set it where patients, scenes or videos have several images.")
      .used_in_pack();
  d.add("fraction", o.fraction, fraction_codec())
      .value_in_older_runs("1")
      .help(
          "Train on this share of each class, or on this number of images of each; a smaller part lies within a larger "
          "one. "
          "Set "
          "it to see what more data would bring.");
  d.add("val-subjects", o.val_subjects, text_codec("NAMES", true))
      .help(
          "biwi: folders of the subjects to evaluate on, such as 01,12,24; empty takes every third. Set it to "
          "reproduce a publication's split.")
      .used_in_eval();
  d.add("face-margin", o.face_margin, number_codec({0, 4}))
      .unit("share of the box")
      .help(
          "300wlp, biwi: images are cropped to the annotated face, enlarged by this on each side. Raise it where heads "
          "are cut off.");
  d.add("clip-frames", o.clip_frames, integer_codec(1, 1024))
      .unit("frames")
      .help(
          "clips: frames of each video that the network sees at once. Raise it for slow movements; memory grows with "
          "it.");
  d.add_parts("frame-sampling",
              {{"uniform|stride", o, &Of::frame_sampling, choice_codec<FrameSampling>("uniform stride")},
               {"N", o, &Of::frame_stride, integer_codec(1, 100'000)}})
      .help(
          "clips: frames spread over the whole video, or N frames apart from a place that is drawn at random. Use "
          "stride where the pace of a movement matters.");
  d.add("boxes", o.boxes, text_codec("FILE", true))
      .help(
          "Video files: CSV file with the part of each frame that is seen, path,frame,x,y,width,height. Set it to "
          "train "
          "on faces that a detector found.")
      .free_on_resume()
      .used_in_inference();
  d.add_parts("hdf5", {{"INPUT", o, &Of::hdf5_input, text_codec("NAME", true)},
                       {"LABEL", o, &Of::hdf5_label, text_codec("NAME", true)}})
      .help(
          "hdf5: names of the data sets with the samples and with their labels, such as train/x,train/y. Set it where "
          "they are not found by their usual names.")
      .used_in_eval();
  d.add("csv-path", o.csv_path, text_codec("COLUMN", false))
      .value_in_older_runs("path")
      .help("csv: column with the paths of the images. Set it where yours has another name.")
      .used_in_eval()
      .used_in_pack();
  d.add("csv-label", o.csv_label, text_codec("COLUMN[,..]", true))
      .value_in_older_runs("")
      .help(
          "csv: column with the class, or the columns to learn; empty is label, or every other column. Set it where "
          "yours have other names; for multilabel one column may hold a list of tags.")
      .used_in_eval()
      .used_in_pack();
  d.add("csv-delimiter", o.csv_delimiter, choice_codec<CsvDelimiter>("auto comma semicolon tab"))
      .value_in_older_runs("auto")
      .help("csv: separator of fields; auto detects it in the first line. Set it where the detection is wrong.")
      .used_in_eval()
      .used_in_pack();
  declare_sound(d, o.sound);
  d.add("stage-dir", o.stage_dir, text_codec("DIR", true))
      .help(
          "Copy loose files, shards or HDF5 files there before the start and read the copies, as in /dev/shm; empty: "
          "read them in place. Set it for data on slow network storage.")
      .per_process()
      .used_in_eval();
  d.add("img-size", o.img_size, image_size_codec(1, 8192))
      .several()
      .alias({"imgsz", "image-size"})
      .unit("pixels")
      .help(
          "The network sees squares of N pixels, or images of HEIGHT,WIDTH; auto uses the median size up to 64, else "
          "224. "
          "Raise it for small details; time and memory grow with its square.")
      .used_in_inference();
  d.add("in-chans", o.in_chans, integer_codec(1, 1024))
      .unit("channels")
      .help(
          "Channels of images: 1 (gray) or 3 (RGB); auto uses what most have. Set it to 1 to train on gray images; "
          "HDF5 and multi-band TIFF samples keep their own number.");
  d.add("num-classes", o.num_classes, integer_codec(1, 1'000'000))
      .unit("classes")
      .help("Outputs of the network; auto uses the number in the data. Set it where classes will be added later.")
      .used_in_pack();
}

Codec<std::vector<double>> range_codec() {
  Codec<std::vector<double>> codec = list_codec({-kUnbounded, kUnbounded}, "full");
  codec.parse = [parse = codec.parse](const std::string& text, std::vector<double>& value) {
    if (text == "percentile") {
      value = kPercentiles;
      return std::string();
    }
    std::string problem = parse(text, value);
    const bool is_range = value.empty() || (value.size() == 2 && value[0] < value[1]);
    return problem.empty() && !is_range ? "two numbers are needed, the lower one first: 900,1300" : problem;
  };
  codec.render = [render = codec.render](const std::vector<double>& value) {
    return value == kPercentiles ? "percentile" : render(value);
  };
  codec.placeholder = "LOW,HIGH";
  codec.range = "full, percentile, or LOW,HIGH";
  return codec;
}

template <template <typename> class Pick>
void declare_pixels(Declaration& d, DataOptionsOf<Pick>& o) {
  using Of = DataOptionsOf<Pick>;
  d.add_list("mean", o.mean, {-kUnbounded, kUnbounded}, "auto")
      .unit("per channel, of pixels in [0, 1] or of floats as they are")
      .help(
          "Subtracted from each channel; auto uses ImageNet's for 3 channels and 0.5 for 1, and measures others and "
          "floats. Set it for weights that were trained with another.");
  d.add_list("std", o.std, {0, kUnbounded, true, false}, "auto")
      .unit("per channel, of pixels in [0, 1] or of floats as they are")
      .help(
          "Each channel is divided by it; auto uses ImageNet's for 3 channels and 0.25 for 1, and measures others and "
          "floats. Set it for weights that were trained with another.");
  d.add("input-range", o.input_range, range_codec())
      .unit("numbers as stored")
      .help(
          "Images with more than 8 bits: the values that become black and white; full: the whole range of the type; "
          "percentile: the 0.1 and 99.9 % percentiles; auto: percentile where these span less than a sixteenth of the "
          "range. Give LOW,HIGH where the values of a sensor are known.")
      .value_in_older_runs("full")
      .used_in_inference()
      .used_in_pack();
  d.add_parts("on-bad-image", {{"fail|skip|repair", o, &Of::on_bad_image, choice_codec<OnBadImage>("fail skip repair")},
                               {"MAX", o, &Of::max_bad, integer_codec(0, kUnlimitedBad)}})
      .help(
          "Stop at an image that cannot be decoded, skip up to MAX of them, or train on what the decoder makes of "
          "damaged JPEGs, as Pillow does with LOAD_TRUNCATED_IMAGES. Use skip for data that you cannot clean.")
      .free_on_resume()
      .used_in_inference()
      .used_in_pack();
  d.add("max-image-megapixels", o.max_image_megapixels, number_codec({0, 4096, true, false}))
      .unit("million pixels")
      .help(
          "Larger images count as bad before any memory is allocated for them. Raise it for satellite or microscope "
          "images.")
      .free_on_resume()
      .used_in_inference()
      .used_in_pack()
      .expert();
  d.add_switch("follow-symlinks", o.follow_symlinks)
      .help(
          "Scan folders behind symbolic links; loops are detected and left out. Turn it off for folders that you do "
          "not trust.")
      .used_in_inference()
      .used_in_pack()
      .expert();
}

template <template <typename> class Pick>
void declare_loader(Declaration& d, LoaderOptionsOf<Pick>& o) {
  d.group("loader", "Data loading");
  d.add("batch-size", o.batch_size, integer_codec(1, 1 << 20))
      .alias({"b", "batch"})
      .unit("images per device")
      .help(
          "Images in one forward pass; an update (optimizer step) sees accumulation-steps times as many. Use auto to "
          "take the "
          "most that fit the device.");
  d.add("val-batch-size", o.val_batch_size, integer_codec(1, 1 << 20))
      .alias({"vb"})
      .unit("images per device")
      .help(
          "Images in one evaluation pass; auto is batch-size, and at least 256 below 64 pixels. Lower it where "
          "evaluation runs out of memory.")
      .free_on_resume()
      .used_in_inference();
  d.add("num-workers", o.num_workers, integer_codec(0, 1024))
      .alias({"j", "workers"})
      .unit("threads")
      .help(
          "Threads that decode; 0 decodes on the training thread. Leave it at auto, which measures how many are worth "
          "it, unless other work needs the CPUs.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
  d.add("prefetch-factor", o.prefetch_factor, integer_codec(1, 1024))
      .alias({"prefetch"})
      .unit("batches")
      .help(
          "Batches that are decoded ahead, by all workers together. Raise it for storage with pauses; lower it to save "
          "memory.")
      .per_process()
      .used_in_inference()
      .expert();
  d.add_switch("pin-memory", o.pin_memory)
      .alias({"pin-mem"})
      .help("Decode into page-locked memory when the device is CUDA. Turn it off where the system limits such memory.")
      .per_process()
      .used_in_inference()
      .expert();
  d.add("feed", o.feed, choice_codec<FeedKind>("loader resident"))
      .help(
          "loader: workers decode batches, which are copied to the device; resident: the pixels of the data set stay "
          "in the memory of the device, which crops them, bit-identical. auto uses resident on CUDA for small images "
          "of one size that are only padded, cropped and mirrored; resident has not run on a card yet.")
      .per_process()
      .expert();
  d.add("cache", o.cache, choice_codec<CacheTier>("none ram compressed"))
      .help(
          "Keep samples in memory from their first use: ram as decoded pixels, compressed as stored. Leave it at auto, "
          "which takes ram when all fit in cache-budget, else compressed when they fit, else none.")
      .per_process();
  d.add("cache-budget", o.cache_budget, size_codec())
      .help(
          "Most memory that the cache may use, training before validation; auto is half of what is free. Lower it "
          "where other programs will need memory later.")
      .per_process();
  d.add_switch("class-balanced", o.class_balanced)
      .help(
          "Train on every class equally often: an epoch keeps its length, rare classes repeat, large ones take turns. "
          "Use it where rare classes matter as much as others.");
  d.add_switch("drop-last", o.drop_last)
      .help(
          "Leave out the last batch of an epoch when it is not full. Leave it at auto, which drops a batch that would "
          "be an update with fewer than an eighth of the images, or one image that batch norm cannot train on.");
  d.add("shuffle-buffer", o.shuffle_buffer, integer_codec(0, kUnlimitedBad))
      .unit("images")
      .help(
          "0 shuffles all images; N visits shards in random order and shuffles N neighbours at a time. Set it to "
          "10,000 or so for storage with slow seeks.")
      .expert();
}

constexpr Bounds kAboveZero{0, kUnbounded, true};

struct LossNumber {
  const char* name;
  Bounds bounds;
  std::optional<double> usual;  ///< none: without it the loss is another
};

std::vector<LossNumber> numbers_of(LossKind loss) {
  constexpr Bounds kGamma{0, 10};
  switch (loss) {
    case LossKind::huber: return {{"DELTA", kAboveZero, 1}};
    case LossKind::bce: return {{"THRESHOLD", {0, 1, false, true}, std::nullopt}};
    case LossKind::focal: return {{"GAMMA", kGamma, 2}};
    case LossKind::asymmetric:
      return {{"NEGATIVE", kGamma, 4}, {"POSITIVE", kGamma, 1}, {"MARGIN", {0, 1, false, true}, 0.05}};
    default: return {};
  }
}

/// A name with the numbers of that loss, all of which are written: a stored run does not depend on what is usual.
Codec<Loss> loss_codec() {
  Codec<Loss> codec;
  const Codec<LossKind> names = choice_codec(loss_choices(), {{"ce", LossKind::cross_entropy},
                                                              {"mae", LossKind::l1},
                                                              {"mse", LossKind::l2},
                                                              {"smooth_l1_loss", LossKind::smooth_l1},
                                                              {"asl", LossKind::asymmetric}});
  codec.parse = [names](const std::string& text, Loss& value) {
    const std::vector<std::string> words = split_words(text, ',');
    Loss loss;
    std::string problem = names.parse(words.empty() ? text : words.front(), loss.kind);
    if (!problem.empty()) return problem;
    const std::vector<LossNumber> numbers = numbers_of(loss.kind);
    if (words.size() > 1 + numbers.size()) {
      std::string usage = loss_name(loss.kind);
      for (const LossNumber& number : numbers) usage += std::string(",") + number.name;
      return shown(text) + " is not accepted; write " + usage;
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      double number = numbers[i].usual.value_or(0);
      if (i + 1 < words.size()) problem = read_number(words[i + 1], numbers[i].bounds, number);
      if (!problem.empty()) return std::string(numbers[i].name) + ": " + problem;
      if (i + 1 < words.size() || numbers[i].usual) loss.numbers.push_back(number);
    }
    value = loss;
    return problem;
  };
  codec.render = [](const Loss& value) {
    std::string text = loss_name(value.kind);
    for (const double number : value.numbers) text += "," + number_text(number);
    return text;
  };
  codec.placeholder = "NAME[,X[,X[,X]]]";
  for (const auto& [name, kind] : loss_choices()) {
    codec.range += (codec.range.empty() ? "" : ", ") + name;
    std::string brackets;
    for (const LossNumber& number : numbers_of(kind)) {
      codec.range += std::string("[,") + number.name;
      brackets += "]";
    }
    codec.range += brackets;
  }
  return codec;
}

constexpr Bounds kNotBelowZero{0, kUnbounded};

template <template <typename> class Pick>
void declare_classes(Declaration& d, OptionsOf<Pick>& o) {
  d.group("task", "Task and targets");
  d.add("task", o.data.task, choice_codec<TaskKind>(task_choices()))
      .help(
          "Kind of label: one of several classes, one of two (a single output), any of several labels, numbers, or "
          "three angles. Set "
          "it where images do not have one class each.");
  d.add("class-weights", o.task.class_weights, list_codec(kNotBelowZero, "none"))
      .help(
          "multiclass: factor of each class's loss; auto: images / (classes x images of the class). Use auto where "
          "classes are unbalanced.");
  d.add("pos-weight", o.task.pos_weight, list_codec(kAboveZero, "none"))
      .help(
          "binary, multilabel: factor of the loss of positives, one or one per label; auto: negatives / positives. Use "
          "auto where positives are rare.");
  d.add("threshold", o.task.threshold, list_codec({0, 1, true, true}, ""))
      .several()
      .unit("probability")
      .help(
          "binary, multilabel: probability from which a label counts as positive, one or one per label. Raise it where "
          "false alarms cost more than misses. It changes accuracy, F1, precision, recall.")
      .used_in_inference();
  d.add("temperature", o.task.temperature, number_codec(kAboveZero))
      .value_in_older_runs("1")
      .help("Outputs are divided by it before they become probabilities. eval --calibrate finds and stores it.")
      .used_in_inference();
}

template <template <typename> class Pick>
void declare_numbers(Declaration& d, TaskOptionsOf<Pick>& o) {
  using Of = TaskOptionsOf<Pick>;
  d.add("loss", o.loss, loss_codec())
      .alias({"regression-loss"})
      .several()
      .help(
          "What training minimises; auto: cross-entropy for classes, bce for labels, smooth-l1 for numbers. Use focal "
          "or, for labels, asymmetric where most examples are easy, bce with mixup for recipes of timm (targets above "
          "THRESHOLD count as 1), l1 or huber where targets have outliers.");
  d.add_list("target-mean", o.target_mean, {-kUnbounded, kUnbounded}, "auto")
      .unit("of the target")
      .help(
          "regression, head-pose: the network learns (target - target-mean) / target-scale; auto: mean of the training "
          "split, head-pose 0. Set it to continue training on other data.");
  d.add_list("target-scale", o.target_scale, kAboveZero, "auto")
      .unit("of the target")
      .help(
          "regression, head-pose: see target-mean; auto: standard deviation in the training split, head-pose 45 "
          "degrees. Set it where some targets matter more than others.");
  d.add_parts("pose-head", {{"direct|binned", o, &Of::pose_head, choice_codec<PoseHead>("direct binned")},
                            {"BINS", o, &Of::pose_bins, integer_codec(2, 1024)},
                            {"RANGE", o, &Of::pose_range, number_codec({0, 180, true, false})},
                            {"WEIGHT", o, &Of::pose_loss_weight, number_codec({0, kUnbounded})}})
      .help(
          "head-pose: learn three angles, or classify each into BINS bins from -RANGE to RANGE degrees whose "
          "expectation is the angle. Use binned to compare with publications that do; WEIGHT is that of the "
          "expectation's loss beside the bins' cross entropy.");
}

}  // namespace

template <typename AnyOptions>
void declare_data(Declaration& declaration, AnyOptions& options) {
  declare_source(declaration, options.data);
  declare_pixels(declaration, options.data);
  declare_augment(declaration, options);
  declare_loader(declaration, options.loader);
}
template void declare_data(Declaration&, Options&);
template void declare_data(Declaration&, ResolvedOptions&);

template <typename AnyOptions>
void declare_task(Declaration& declaration, AnyOptions& options) {
  declare_classes(declaration, options);
  declare_numbers(declaration, options.task);
}
template void declare_task(Declaration&, Options&);
template void declare_task(Declaration&, ResolvedOptions&);

}  // namespace stoker::config
