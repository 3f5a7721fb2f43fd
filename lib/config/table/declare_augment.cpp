// SPDX-License-Identifier: Apache-2.0
// Rows of the group augment. Independent of how options are read or shown.
#include <algorithm>
#include <cmath>
#include <map>

#include "config/table/declaration.h"
#include "config/table/parse_value.h"
#include "core/format.h"

namespace stoker::config {
namespace {

constexpr Bounds kProbability{0, 1};

template <template <typename> class Pick>
void declare_crops(Declaration& d, AugmentOptionsOf<Pick>& o) {
  using Of = AugmentOptionsOf<Pick>;
  d.group("augment", "Data augmentation");
  d.add("train-crop", o.train_crop, choice_codec<TrainCrop>("none center random-resized padded letterbox"))
      .help(
          "Crop while training; auto is padded below 64 pixels (center for gray images and up to 20 epochs), else "
          "random-resized. Use letterbox (the whole image, black bars) or none (squashed) where objects must not be "
          "cut off.");
  d.add_parts("scale",
              {{"MIN", o, &Of::scale_min, number_codec({0, 1, true, false})},
               {"MAX", o, &Of::scale_max, number_codec({0, 1, true, false})}},
              2)
      .help(
          "random-resized: share of the image's area that a crop has. Raise MIN where a small part does not show the "
          "class.");
  d.add_parts("ratio",
              {{"MIN", o, &Of::ratio_min, number_codec({0, 100, true, false})},
               {"MAX", o, &Of::ratio_max, number_codec({0, 100, true, false})}},
              2)
      .unit("width / height")
      .help("random-resized: aspect ratio of a crop. Set 1,1 where shapes must not be distorted.");
  d.add("crop-padding", o.crop_padding, integer_codec(0, 4096))
      .unit("pixels")
      .help(
          "padded: zero border on each side before the crop; auto is 2 up to 28 pixels, 4 up to 32, else img-size / 8. "
          "Lower it where objects fill the image.");
  d.add("hflip", o.hflip, number_codec(kProbability))
      .unit("probability")
      .help(
          "Probability of a horizontal flip; auto is 0.5, and 0 for samples of HDF5 and multi-band files. Set 0 where "
          "left "
          "and right differ, as in text.");
  d.add("eval-crop", o.eval_crop, choice_codec<EvalCrop>("none center letterbox"))
      .help(
          "Crop for evaluation: the centre; none squashes the whole image into the square, letterbox adds black bars. "
          "Use the one that training saw; none or letterbox where objects are at the border.")
      .used_in_inference();
  d.add("crop-pct", o.crop_pct, number_codec({0, 1, true, false}))
      .help(
          "Share of the resized short side that the centre crop keeps; auto is 1 below 64 pixels, else 0.875. Set it "
          "to what pretrained weights were evaluated with.")
      .used_in_inference();
  d.add("interpolation", o.interpolation, choice_codec<Interpolation>("bilinear bicubic lanczos"))
      .help(
          "Filter of resizing, antialiased, bit-identical to Pillow's. Set it to what pretrained weights were "
          "evaluated with: bicubic for most of timm's.")
      .value_in_older_runs("bilinear")
      .used_in_inference();
}

constexpr double kStrengths = 30;  // of RandAugment in torchvision; timm counts to 10

/// rand-m9-n2-mstd0.5-inc1 and its like: strength m of 10 (10 where it is missing), n operations (2). The other parts
/// vary how timm draws strengths and operations; nothing here does. Empty: another text.
std::vector<double> rand_augment_of_timm(const std::string& text) {
  std::vector<std::string> parts = split_words(text, '-');
  if (parts.front() != "rand") return {};
  double strength = 10;
  double operations = 2;
  parts.erase(parts.begin());
  for (const std::string& part : parts) {
    const size_t digits = std::min(part.find_first_of("0123456789"), part.size());
    const std::string name = part.substr(0, digits);
    double value = 0;
    if (!read_number(part.substr(digits), {0, kStrengths, false, false}, value).empty()) return {};
    if (name == "m") strength = value;
    if (name == "n") operations = value;
    if (name != "m" && name != "n" && name != "mstd" && name != "mmax" && name != "inc" && name != "w" && name != "p") {
      return {};
    }
  }
  if (operations != std::floor(operations) || operations < 1) return {};
  return {operations, std::min(kStrengths, std::round(3 * strength))};
}

const std::map<std::string, AugmentPolicy>& policies() {
  static const std::map<std::string, AugmentPolicy> all = {{"none", AugmentPolicy::none},
                                                           {"ta-wide", AugmentPolicy::ta_wide},
                                                           {"augmix", AugmentPolicy::aug_mix},
                                                           {"3a", AugmentPolicy::three_augment}};
  return all;
}

std::string assign_policy(const std::string& text, std::vector<double>& rand_augment, AugmentPolicy& policy) {
  const std::string word = kebab(text);
  const std::vector<double> rand = word == "ra" ? std::vector<double>{2, 9} : rand_augment_of_timm(word);
  const auto named = policies().find(word);
  if (rand.empty() && named == policies().end()) {
    return shown(text) + " is not accepted; write none, ra, ta-wide, augmix, 3a or such as rand-m9-n2";
  }
  rand_augment = rand;
  policy = rand.empty() ? named->second : AugmentPolicy::none;
  return "";
}

std::string policy_text(const std::vector<double>& rand_augment, AugmentPolicy policy) {
  if (rand_augment.size() != 2) {
    const auto is_it = [&](const auto& named) { return named.second == policy; };
    return std::find_if(policies().begin(), policies().end(), is_it)->first;
  }
  if (rand_augment == std::vector<double>{2, 9}) return "ra";
  return core::format("rand-m{:.4g}-n{}", rand_augment[1] / 3, rand_augment[0]);
}

/// Strengths, then the share of images as p0.8.
std::string assign_jitter(const std::string& text, std::vector<double>& jitter, double& share) {
  const Bounds strengths{0, 10};
  std::vector<double> read;
  double read_share = 1;
  std::string strengths_text = text == "none" ? "" : text;
  const size_t mark = strengths_text.rfind(",p");
  if (mark != std::string::npos) {
    const std::string problem = read_number(strengths_text.substr(mark + 2), kProbability, read_share);
    if (!problem.empty()) return "the share of images: " + problem;
    strengths_text.resize(mark);
  }
  const std::string problem = strengths_text.empty() ? "" : read_list(strengths_text, strengths, read);
  if (!problem.empty()) return problem;
  jitter = std::move(read);
  share = read_share;
  return "";
}

template <template <typename> class Pick>
void declare_moves(Declaration& d, AugmentOptionsOf<Pick>& o) {
  using Of = AugmentOptionsOf<Pick>;
  d.add("vflip", o.vflip, number_codec(kProbability))
      .unit("probability")
      .help("Probability of a vertical flip. Use 0.5 where there is no up, as in microscopy.")
      .value_in_older_runs("0");
  d.add("rotate90", o.rotate90, number_codec(kProbability))
      .unit("probability")
      .help("Probability of a rotation by 90, 180 or 270 degrees. Use it where there is no up, as in aerial images.");
  d.add("rotation", o.rotation, number_codec({0, 180}))
      .unit("degrees")
      .help("Rotate by a random angle of up to this either way; 0: off. Use 10 to 20 where cameras are not level.");
  d.add_parts("affine", {{"SHIFT", o, &Of::affine_shift, number_codec(kProbability)},
                         {"MIN", o, &Of::affine_scale_min, number_codec({0.1, 10})},
                         {"MAX", o, &Of::affine_scale_max, number_codec({0.1, 10})},
                         {"SHEAR", o, &Of::affine_shear, number_codec({0, 80})}})
      .help(
          "Random affine move, as torchvision's RandomAffine: a shift of up to SHIFT of the side, a scale of MIN to "
          "MAX (1) and a shear of up to SHEAR degrees, with --rotation in one step. Use it where objects are found "
          "anywhere and in any size; 0: off.")
      .value_in_older_runs("0,1,1,0");
  d.add_parts("perspective", {{"P", o, &Of::perspective, number_codec(kProbability)},
                              {"DISTORTION", o, &Of::perspective_distortion, number_codec(kProbability)}})
      .help(
          "Random perspective with probability P, as torchvision's RandomPerspective: corners move by up to "
          "DISTORTION of half the side. Use it where flat things are seen from any side.")
      .value_in_older_runs("0,0.5");
  d.add_own(
       "auto-augment", {&o.rand_augment, &o.policy},
       [&o](const std::string& text) { return assign_policy(text, o.rand_augment, o.policy); },
       [&o] { return policy_text(o.rand_augment, o.policy); })
      .alias({"aa"})
      .placeholder("none|ra|ta-wide|augmix|3a|rand-mM-nN")
      .help(
          "A policy of random operations: ra, ta-wide and augmix are torchvision's RandAugment, TrivialAugmentWide and "
          "AugMix, 3a is DeiT III's 3-Augment, rand-m9-n2 timm's RandAugment with 2 operations of strength 9 of 10. "
          "Try it where a long run overfits.");
  d.add("augment-interpolation", o.augment_interpolation, choice_codec<AugmentInterpolation>("nearest bilinear"))
      .help(
          "How rotation, affine, perspective and auto-augment move pixels. Set nearest only to compare with programs "
          "that use it.")
      .expert();
}

template <template <typename> class Pick>
void declare_colours(Declaration& d, AugmentOptionsOf<Pick>& o) {
  using Of = AugmentOptionsOf<Pick>;
  d.add_own(
       "color-jitter", {&o.color_jitter, &o.color_jitter_prob},
       [&o](const std::string& text) { return assign_jitter(text, o.color_jitter, o.color_jitter_prob); },
       [&o] {
         if (o.color_jitter.empty()) return std::string("none");
         return list_value_text(o.color_jitter) +
                (o.color_jitter_prob == 1 ? "" : ",p" + number_text(o.color_jitter_prob));
       })
      .several()
      .placeholder("X[,X,X[,HUE]][,pSHARE]")
      .help(
          "Color jitter: strength of random brightness, contrast and saturation: one number, or three, or four with "
          "hue (at most "
          "0.5); p0.8 at the end varies 80 % of the images. Use it where light and cameras differ; none: off.");
  d.add("grayscale", o.grayscale, number_codec(kProbability))
      .unit("probability")
      .help("Probability of conversion to grayscale. Use it where colours mislead.");
  d.add_parts("gaussian-blur", {{"P", o, &Of::gaussian_blur, number_codec(kProbability)},
                                {"KERNEL", o, &Of::gaussian_blur_kernel, integer_codec(1, 1023)},
                                {"MIN", o, &Of::gaussian_blur_sigma_min, number_codec({0, 256, true, false})},
                                {"MAX", o, &Of::gaussian_blur_sigma_max, number_codec({0, 256, true, false})}})
      .help(
          "Gaussian blur with probability P, by a kernel of KERNEL pixels (odd, below twice img-size) with a sigma of "
          "MIN "
          "to MAX pixels. Use it where photographs may be out of focus.");
  d.add_parts("gaussian-noise", {{"SIGMA", o, &Of::gaussian_noise, number_codec({0, 1})},
                                 {"P", o, &Of::gaussian_noise_prob, number_codec(kProbability)}})
      .help(
          "Gaussian noise of standard deviation SIGMA, a share of the full range, in a share P of the images. Use it "
          "where cameras "
          "are noisy; 0: off.");
  d.add("random-erasing", o.random_erasing, number_codec(kProbability))
      .alias({"reprob", "random-erase"})
      .unit("probability")
      .help(
          "Random erasing: probability that a box of 2 to 33 % of the area becomes the mean pixel. Use 0.1 to 0.25 in "
          "long runs.");
}

template <template <typename> class Pick>
void declare_masks(Declaration& d, AugmentOptionsOf<Pick>& o) {
  using Of = AugmentOptionsOf<Pick>;
  d.add_parts("freq-mask", {{"COUNT", o, &Of::freq_masks, integer_codec(0, 64)},
                            {"WIDTH", o, &Of::freq_mask_param, integer_codec(1, 8192)}})
      .help(
          "Spectrograms: COUNT bands of frequency narrower than WIDTH bins are replaced by the mean (SpecAugment). Use "
          "it where sounds overfit; 0: off.");
  d.add_parts("time-mask", {{"COUNT", o, &Of::time_masks, integer_codec(0, 64)},
                            {"WIDTH", o, &Of::time_mask_param, integer_codec(1, 8192)}})
      .help(
          "Spectrograms: COUNT segments of time shorter than WIDTH steps are replaced by the mean (SpecAugment). Use "
          "it where sounds overfit; 0: off.");
}

template <template <typename> class Pick>
void declare_mixing(Declaration& d, AugmentOptionsOf<Pick>& o) {
  d.add("mixup-alpha", o.mixup_alpha, number_codec({0, 100}))
      .alias({"mixup"})
      .help(
          "Mixup: averages pairs of images of a batch; shares are from Beta(alpha, alpha), 0: off. Use 0.2 in long "
          "runs with "
          "many classes.");
  d.add("cutmix-alpha", o.cutmix_alpha, number_codec({0, 100}))
      .alias({"cutmix"})
      .help(
          "CutMix: pastes a box of one image into another, with an area from Beta(alpha, alpha); 0: off. Use 1 in long "
          "runs "
          "with many classes.");
  d.add("mixup-prob", o.mixup_prob, number_codec(kProbability))
      .unit("probability")
      .help(
          "Share of batches that are mixed, when mixup-alpha or cutmix-alpha is set. Lower it where training accuracy "
          "stays far below validation.");
  d.add("mixup-switch-prob", o.mixup_switch_prob, number_codec(kProbability))
      .unit("probability")
      .help("Share of mixed batches that CutMix mixes, when both alphas are set. Rarely changed.")
      .expert();
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
