// SPDX-License-Identifier: Apache-2.0
// Rows of the group augment. Nothing here knows how options are read or shown.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "config/table/declaration.h"
#include "config/table/parse_value.h"

namespace stoker::config {
namespace {

constexpr Bounds kProbability{0, 1};

template <template <typename> class Pick>
void declare_crops(Declaration& d, AugmentOptionsOf<Pick>& o) {
  d.group("augment", "How images are varied");
  d.add("train-crop", o.train_crop,
        choice_codec<TrainCrop>({{"none", TrainCrop::none},
                                 {"center", TrainCrop::center},
                                 {"random-resized", TrainCrop::random_resized},
                                 {"padded", TrainCrop::padded}}))
      .help(
          "Crop while training; auto is padded below 64 pixels (center for gray images and up to 20 epochs), else "
          "random-resized.");
  d.add("scale-min", o.scale_min, number_codec({0, 1, true, false}))
      .help("random-resized: smallest share of the image's area.");
  d.add("scale-max", o.scale_max, number_codec({0, 1, true, false}))
      .help("random-resized: largest share of the image's area.");
  d.add("ratio-min", o.ratio_min, number_codec({0, 100, true, false}))
      .unit("width / height")
      .help("random-resized: smallest aspect ratio.");
  d.add("ratio-max", o.ratio_max, number_codec({0, 100, true, false}))
      .unit("width / height")
      .help("random-resized: largest aspect ratio.");
  d.add("crop-padding", o.crop_padding, integer_codec(0, 4096))
      .unit("pixels")
      .help(
          "padded: zero border on each side before the crop; auto is 2 up to 28, 4 up to 32, else img-size / "
          "8.");
  d.add("hflip", o.hflip, number_codec(kProbability))
      .unit("probability")
      .help("Mirror left to right; auto is 0.5, and 0 for samples that stay as they are.");
  d.add("eval-crop", o.eval_crop, choice_codec<EvalCrop>({{"none", EvalCrop::none}, {"center", EvalCrop::center}}))
      .help("Crop for evaluation: none squeezes the whole image into the square.")
      .used_in_inference();
  d.add("crop-pct", o.crop_pct, number_codec({0, 1, true, false}))
      .help(
          "Share of the resized short side that the centre crop keeps; auto is 1 below 64 pixels, else "
          "0.875.")
      .used_in_inference();
}

/// rand-m9-n2-mstd0.5-inc1 and its like: strength m of 10 (10 where it is missing), n operations (2). The other parts
/// vary how timm draws strengths and operations; nothing here does. Empty: another text.
Shorthand::Values rand_augment_of_timm(const std::string& text) {
  std::stringstream parts(text);
  std::string part;
  std::getline(parts, part, '-');
  if (part != "rand") return {};
  double strength = 10;
  double operations = 2;
  while (std::getline(parts, part, '-')) {
    const size_t digits = std::min(part.find_first_of("0123456789"), part.size());
    const std::string name = part.substr(0, digits);
    double value = 0;
    if (!read_number(part.substr(digits), {0, 100, false, false}, value).empty()) return {};
    if (name == "m") strength = value;
    if (name == "n") operations = value;
    if (name != "m" && name != "n" && name != "mstd" && name != "mmax" && name != "inc" && name != "w" && name != "p") {
      return {};
    }
  }
  constexpr double kStrengths = 30;  // of rand-augment; of timm: 10
  return {
      {"rand-augment", number_text(operations) + "," + number_text(std::min(kStrengths, std::round(3 * strength)))}};
}

template <template <typename> class Pick>
void declare_moves(Declaration& d, AugmentOptionsOf<Pick>& o) {
  d.add("rotate90", o.rotate90, number_codec(kProbability))
      .unit("probability")
      .help("Turn by one, two or three quarters.");
  d.add("rotation", o.rotation, number_codec({0, 180}))
      .unit("degrees")
      .help("Turn by up to this either way about the centre; 0: off.");
  d.add_list("rand-augment", o.rand_augment, {0, 30}, "none")
      .help("Operations per image and their strength of 30, as 2,9; torchvision's RandAugment. none: off.");
  d.add_switch("trivial-augment", o.trivial_augment)
      .help("One operation per image of random strength; torchvision's TrivialAugmentWide.");
  const std::vector<std::pair<std::string, Shorthand::Values>> policies = {{"ra", {{"rand-augment", "2,9"}}},
                                                                           {"ta-wide", {{"trivial-augment", "true"}}}};
  d.add_shorthand("auto-augment",
                  "rand-augment 2,9 or trivial-augment, by torchvision's names; or rand-augment as timm writes it, "
                  "rand-m9-n2: strength 9 of 10.",
                  policies, {"rand-m9-n2", rand_augment_of_timm});
  d.add_shorthand("aa", "The same as auto-augment.", policies, {"rand-m9-n2", rand_augment_of_timm});
  d.add("augment-interpolation", o.augment_interpolation,
        choice_codec<AugmentInterpolation>(
            {{"nearest", AugmentInterpolation::nearest}, {"bilinear", AugmentInterpolation::bilinear}}))
      .help("How rotation, rand-augment and trivial-augment move pixels.");
}

template <template <typename> class Pick>
void declare_colours(Declaration& d, AugmentOptionsOf<Pick>& o) {
  d.add_list("color-jitter", o.color_jitter, {0, 10}, "none")
      .help(
          "Strength of random brightness, contrast and saturation: one number, or three, or with hue (at "
          "most "
          "0.5) four. none: off.");
  d.add("color-jitter-prob", o.color_jitter_prob, number_codec(kProbability))
      .before_it_existed("1")
      .unit("probability")
      .help("Share of images whose colours color-jitter varies.");
  d.add("grayscale", o.grayscale, number_codec(kProbability))
      .unit("probability")
      .help("Replace the colours by their luma.");
  d.add("gaussian-blur", o.gaussian_blur, number_codec(kProbability)).unit("probability").help("Blur.");
  d.add("gaussian-blur-kernel", o.gaussian_blur_kernel, integer_codec(1, 1023))
      .unit("pixels, odd")
      .help("Reach of the blur, below twice img-size.");
  d.add("gaussian-blur-sigma-min", o.gaussian_blur_sigma_min, number_codec({0, 256, true, false}))
      .unit("pixels")
      .help("Smallest deviation of the blur.");
  d.add("gaussian-blur-sigma-max", o.gaussian_blur_sigma_max, number_codec({0, 256, true, false}))
      .unit("pixels")
      .help("Largest deviation of the blur.");
  d.add("gaussian-noise", o.gaussian_noise, number_codec({0, 1}))
      .unit("share of the full range")
      .help("Deviation of the noise that each value of each image gets; 0: off.");
  d.add("gaussian-noise-prob", o.gaussian_noise_prob, number_codec(kProbability))
      .before_it_existed("1")
      .unit("probability")
      .help("Share of images that get the noise.");
  d.add("random-erasing", o.random_erasing, number_codec(kProbability))
      .alias({"reprob", "random-erase"})
      .unit("probability")
      .help("Replace a box of 2 to 33 % of the area by the mean pixel.");
}

template <template <typename> class Pick>
void declare_masks(Declaration& d, AugmentOptionsOf<Pick>& o) {
  d.add("freq-masks", o.freq_masks, integer_codec(0, 64))
      .unit("masks")
      .help("Spectrograms: bands of frequency that are replaced by the mean (SpecAugment); 0: off.");
  d.add("freq-mask-param", o.freq_mask_param, integer_codec(1, 8192))
      .unit("bins")
      .help("Bands are narrower than this: any width from 0 on is as likely.");
  d.add("time-masks", o.time_masks, integer_codec(0, 64))
      .unit("masks")
      .help("Spectrograms: stretches of time that are replaced by the mean (SpecAugment); 0: off.");
  d.add("time-mask-param", o.time_mask_param, integer_codec(1, 8192))
      .unit("time steps")
      .help("Stretches are shorter than this: any length from 0 on is as likely.");
}

template <template <typename> class Pick>
void declare_mixing(Declaration& d, AugmentOptionsOf<Pick>& o) {
  d.add("mixup-alpha", o.mixup_alpha, number_codec({0, 100}))
      .alias({"mixup"})
      .help("Average pairs of images of a batch, with shares from Beta(alpha, alpha); 0: off.");
  d.add("cutmix-alpha", o.cutmix_alpha, number_codec({0, 100}))
      .alias({"cutmix"})
      .help("Paste a box of one image into another, with an area from Beta(alpha, alpha); 0: off.");
  d.add("mixup-prob", o.mixup_prob, number_codec(kProbability))
      .unit("probability")
      .help("Share of batches that are mixed, when mixup-alpha or cutmix-alpha is set.");
  d.add("mixup-switch-prob", o.mixup_switch_prob, number_codec(kProbability))
      .unit("probability")
      .help("Of mixed batches, the share that is mixed by CutMix, when both alphas are set.");
}

}  // namespace

template <typename AnyOptions>
void declare_augment(Declaration& declaration, AnyOptions& options) {
  declare_crops(declaration, options.augment);
  declare_moves(declaration, options.augment);
  declare_colours(declaration, options.augment);
  declare_masks(declaration, options.augment);
  declare_mixing(declaration, options.augment);
}
template void declare_augment(Declaration&, Options&);
template void declare_augment(Declaration&, ResolvedOptions&);

}  // namespace stoker::config
