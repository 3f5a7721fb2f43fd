// SPDX-License-Identifier: Apache-2.0
// Rows of the groups data and loader. Nothing here knows how options are read or shown.
#include <limits>

#include "config/table/declaration.h"

namespace stoker::config {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

template <template <typename> class Pick>
void declare_source(Declaration& d, DataOptionsOf<Pick>& o) {
  d.group("data", "What is learned from");
  d.add("data-dir", o.data_dir, text_codec("DIR", false))
      .alias({"data", "data-path"})
      .help(
          "Folder that holds the data set: IDX files, one folder per class, CSV files, tar shards, or HDF5 "
          "files; or one CSV or HDF5 file.")
      .free_on_resume()
      .used_in_eval();
  d.add("dataset", o.dataset,
        choice_codec<DatasetType>({{"auto", DatasetType::automatic},
                                   {"idx", DatasetType::idx},
                                   {"folder", DatasetType::folder},
                                   {"csv", DatasetType::csv},
                                   {"biwi", DatasetType::biwi},
                                   {"300wlp", DatasetType::w300lp},
                                   {"shards", DatasetType::shards},
                                   {"clips", DatasetType::clips},
                                   {"hdf5", DatasetType::hdf5}}))
      .help("How the data set is laid out; auto tells it from what data-dir holds.")
      .used_in_eval()
      .used_in_pack();
  d.add("train-split", o.train_split, text_codec("NAME", false))
      .help(
          "Split to train on: a folder, an IDX stem, a CSV file without .csv, or what shards are called "
          "before the number.")
      .used_in_pack();
  d.add("val-split", o.val_split, text_codec("NAME", false))
      .help("Split to evaluate on; auto takes the first of val, validation, valid, test and t10k that exists.")
      .used_in_eval();
  d.add("val-fraction", o.val_fraction, number_codec({0, 1, false, true}))
      .help("Share of train-split that is held out for evaluation, chosen by a hash of each path; 0: none.")
      .used_in_pack();
  d.add_switch("stratify", o.stratify)
      .before_it_existed("false")
      .help(
          "With val-fraction: hold out that share of each class, and of a class with two images or more at least one; "
          "else the hash of a path decides alone, and an image stays on its side when others come and go.")
      .used_in_pack();
  d.add("val-subjects", o.val_subjects, text_codec("NAMES", true))
      .help("biwi: folders of subjects to evaluate on, such as 01,12,24; empty takes every third one.")
      .used_in_eval();
  d.add("face-margin", o.face_margin, number_codec({0, 4}))
      .unit("share of the box")
      .help("300wlp, biwi: images are cropped to the face that is annotated, widened by this to each side.");
  d.add("clip-frames", o.clip_frames, integer_codec(1, 1024))
      .unit("frames")
      .help("clips: frames of each video that the network sees at once.");
  d.add("frame-sampling", o.frame_sampling,
        choice_codec<FrameSampling>({{"uniform", FrameSampling::uniform}, {"stride", FrameSampling::stride}}))
      .help("clips: frames spread over the whole video, or frame-stride apart from a place that is drawn at random.");
  d.add("frame-stride", o.frame_stride, integer_codec(1, 100'000))
      .unit("frames")
      .help("clips, with frame-sampling stride: from each frame to the next.");
  d.add("hdf5-input", o.hdf5_input, text_codec("NAME", true))
      .help("hdf5: data set that is learned from, as in spectrograms or train/x; empty finds it by its usual names.")
      .used_in_eval();
  d.add("hdf5-label", o.hdf5_label, text_codec("NAME", true))
      .help("hdf5: data set of the labels; empty finds it by its usual names.")
      .used_in_eval();
  d.add("csv-path", o.csv_path, text_codec("COLUMN", false))
      .before_it_existed("path")
      .help("csv: column with the paths of the images.")
      .used_in_eval()
      .used_in_pack();
  d.add("csv-label", o.csv_label, text_codec("COLUMN[,..]", true))
      .before_it_existed("")
      .help(
          "csv: column with the class, or the columns to learn from; empty is label, or every other column. For "
          "multilabel one column may hold a list of tags.")
      .used_in_eval()
      .used_in_pack();
  d.add("csv-delimiter", o.csv_delimiter,
        choice_codec<CsvDelimiter>({{"auto", CsvDelimiter::automatic},
                                    {"comma", CsvDelimiter::comma},
                                    {"semicolon", CsvDelimiter::semicolon},
                                    {"tab", CsvDelimiter::tab}}))
      .before_it_existed("auto")
      .help("csv: what stands between fields; auto tells it from the first line.")
      .used_in_eval()
      .used_in_pack();
  d.add("stage-dir", o.stage_dir, text_codec("DIR", true))
      .help(
          "Copy loose files, shards or HDF5 files there before the start and read the copies, as in /dev/shm; empty: "
          "read "
          "them in place.")
      .per_process()
      .used_in_eval();
  d.add("img-size", o.img_size, integer_codec(1, 8192))
      .alias({"imgsz", "image-size"})
      .unit("pixels")
      .help("The network sees img-size x img-size; auto takes the median size up to 64, else 224.")
      .used_in_inference();
  d.add("in-chans", o.in_chans, integer_codec(1, 1024))
      .unit("channels")
      .help(
          "Of images 1, gray, or 3, RGB: auto takes what most have. Samples of HDF5 files and of TIFF files of many "
          "bands have their own number.");
  d.add("num-classes", o.num_classes, integer_codec(1, 1'000'000))
      .unit("classes")
      .help("Outputs of the network; auto takes the number in the data.")
      .used_in_pack();
}

template <template <typename> class Pick>
void declare_pixels(Declaration& d, DataOptionsOf<Pick>& o) {
  d.add_list("mean", o.mean, {-kUnbounded, kUnbounded}, "auto")
      .unit("per channel, of pixels in [0, 1] or of floats as they are")
      .help(
          "Subtracted from each channel; auto takes ImageNet's for 3 channels and 0.5 for 1, and measures others and "
          "floats.");
  d.add_list("std", o.std, {0, kUnbounded, true, false}, "auto")
      .unit("per channel, of pixels in [0, 1] or of floats as they are")
      .help(
          "Each channel is divided by it; auto takes ImageNet's for 3 channels and 0.25 for 1, and measures others and "
          "floats.");
  d.add("on-bad-image", o.on_bad_image,
        choice_codec<OnBadImage>({{"fail", OnBadImage::fail}, {"skip", OnBadImage::skip}}))
      .help("What an image that cannot be decoded does: stop the run, or be left out and counted.")
      .free_on_resume()
      .used_in_inference()
      .used_in_pack();
  d.add("max-bad", o.max_bad, integer_codec(0, 1'000'000'000))
      .unit("images")
      .help("With on-bad-image skip: more bad images than this stop the run.")
      .free_on_resume()
      .used_in_inference()
      .used_in_pack();
  d.add("max-image-megapixels", o.max_image_megapixels, number_codec({0, 4096, true, false}))
      .unit("million pixels")
      .help("Larger images count as bad before any memory is taken for them.")
      .free_on_resume()
      .used_in_inference()
      .used_in_pack();
  d.add_switch("follow-symlinks", o.follow_symlinks)
      .help("Scan folders behind symbolic links; loops are found and left out.")
      .used_in_inference()
      .used_in_pack();
}

template <template <typename> class Pick>
void declare_loader(Declaration& d, LoaderOptionsOf<Pick>& o) {
  d.group("loader", "How samples travel from disk to the device");
  d.add("batch-size", o.batch_size, integer_codec(1, 1 << 20))
      .alias({"b", "batch"})
      .unit("images per device")
      .help(
          "Images in one forward pass; an optimizer update sees accumulation-steps times as many. auto takes the "
          "most that fit the device.");
  d.add("val-batch-size", o.val_batch_size, integer_codec(1, 1 << 20))
      .alias({"vb"})
      .unit("images per device")
      .help("Images in one evaluation pass; auto is batch-size, and at least 256 below 64 pixels.")
      .free_on_resume()
      .used_in_inference();
  d.add("num-workers", o.num_workers, integer_codec(0, 1024))
      .alias({"j", "workers"})
      .unit("threads")
      .help(
          "Threads that decode; 0 decodes on the training thread. auto measures how many are worth it, up to "
          "the CPUs this process may use.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
  d.add("prefetch-factor", o.prefetch_factor, integer_codec(1, 1024))
      .alias({"prefetch"})
      .unit("batches")
      .help("Batches that are decoded ahead, of all workers together.")
      .per_process()
      .used_in_inference();
  d.add_switch("pin-memory", o.pin_memory)
      .alias({"pin-mem"})
      .help("Decode into page-locked memory when the device is CUDA.")
      .per_process()
      .used_in_inference();
  d.add("feed", o.feed, choice_codec<FeedKind>({{"loader", FeedKind::loader}, {"resident", FeedKind::resident}}))
      .help(
          "How batches reach the device: made by workers and copied, or cut out of pixels that stay on the device, "
          "with the same bits. resident is for images of one size that are only cropped without resizing and mirrored; "
          "it has not run on a card yet. auto takes it on CUDA where they are small and fit, else loader.")
      .per_process();
  d.add_switch("persistent-workers", o.persistent_workers)
      .help("Accepted for compatibility and without effect: workers always live as long as the run.")
      .per_process()
      .used_in_inference();
  d.add("cache", o.cache,
        choice_codec<CacheTier>(
            {{"none", CacheTier::none}, {"ram", CacheTier::ram}, {"compressed", CacheTier::compressed}}))
      .help(
          "Keep samples in memory from their first use on: ram as decoded pixels, compressed as stored. auto "
          "takes ram when all fit in cache-budget, else compressed when they fit, else none.")
      .per_process();
  d.add("cache-budget", o.cache_budget, size_codec())
      .help("Most memory that the cache may take, training before validation; auto is half of what is free.")
      .per_process();
  d.add_switch("class-balanced", o.class_balanced)
      .help(
          "Train on every class equally often: an epoch keeps its length, rare classes repeat, large ones take turns.");
  d.add_switch("drop-last", o.drop_last)
      .help(
          "Leave out the last batch of an epoch when it is not full. auto: when it would be an update of its own with "
          "fewer than an eighth of an update's images, or is one image that batch norm cannot train on.");
  d.add("shuffle-buffer", o.shuffle_buffer, integer_codec(0, 1'000'000'000))
      .unit("images")
      .help(
          "0 shuffles all images. N visits shards in random order and shuffles N neighbours at a time: reads "
          "stay "
          "close together, for storage that punishes seeks.");
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

}  // namespace stoker::config
