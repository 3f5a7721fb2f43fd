// SPDX-License-Identifier: Apache-2.0
#include "data/transform/augment.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/format.h"
#include "data/transform/augment_colour.h"
#include "data/transform/augment_filter.h"

namespace stoker::data {
namespace {

/// torch.linspace(low, high, levels)[level] in single precision: from both ends towards the middle.
double spaced(float low, float high, int level, int levels) {
  const float step = (high - low) / static_cast<float>(levels - 1);
  if (level < levels / 2) return low + step * static_cast<float>(level);
  return high - step * static_cast<float>(levels - 1 - level);
}

}  // namespace

double magnitude_of(ImageOperation operation, MagnitudeSpace space, int level, int width, int height) {
  const bool trivial = space == MagnitudeSpace::trivial_augment, mixes = space == MagnitudeSpace::aug_mix;
  const int levels = mixes ? kAugMixMagnitudes : kMagnitudes;
  const auto up_to = [&](float most) { return spaced(0, most, level, levels); };
  switch (operation) {
    case ImageOperation::shear_x:
    case ImageOperation::shear_y: return up_to(trivial ? 0.99F : 0.3F);
    case ImageOperation::translate_x:
    case ImageOperation::translate_y: {
      const int side = operation == ImageOperation::translate_x ? width : height;
      const double share = mixes ? 1.0 / 3.0 : 150.0 / 331.0;
      return up_to(trivial ? 32 : static_cast<float>(share * side));
    }
    case ImageOperation::rotate: return up_to(trivial ? 135 : 30);
    case ImageOperation::brightness:
    case ImageOperation::color:
    case ImageOperation::contrast:
    case ImageOperation::sharpness: return up_to(trivial ? 0.99F : 0.9F);
    case ImageOperation::posterize:
      return (mixes ? 4 : 8) - std::nearbyint(level / ((levels - 1) / (trivial ? 6.0 : 4.0)));
    case ImageOperation::solarize: return spaced(255, 0, level, levels);
    case ImageOperation::identity:
    case ImageOperation::auto_contrast:
    case ImageOperation::equalize: break;
  }
  return 0;
}

bool has_sign(ImageOperation operation) {
  return operation >= ImageOperation::shear_x && operation <= ImageOperation::sharpness;
}

void apply_operation(ImageOperation operation, double magnitude, Interpolation interpolation, const PixelImage& image,
                     std::vector<uint8_t>& copy) {
  const auto move = [&](const AffineMap& map) {
    copy.assign(image.pixels, image.pixels + image.bytes());
    move_pixels(copy.data(), map, interpolation, image);
  };
  switch (operation) {
    case ImageOperation::identity: return;
    case ImageOperation::shear_x: return move(shear_map(magnitude, 0));
    case ImageOperation::shear_y: return move(shear_map(0, magnitude));
    case ImageOperation::translate_x: return move(shift_map(static_cast<int>(magnitude), 0));
    case ImageOperation::translate_y: return move(shift_map(0, static_cast<int>(magnitude)));
    case ImageOperation::rotate: return move(rotation_map(magnitude, image.width, image.height));
    case ImageOperation::brightness: return adjust_brightness(image, 1 + magnitude);
    case ImageOperation::color: return adjust_saturation(image, 1 + magnitude);
    case ImageOperation::contrast: return adjust_contrast(image, 1 + magnitude);
    case ImageOperation::sharpness: return adjust_sharpness(image, 1 + magnitude, copy);
    case ImageOperation::posterize: return posterize(image, static_cast<int>(magnitude));
    case ImageOperation::solarize: return solarize(image, magnitude);
    case ImageOperation::auto_contrast: return stretch_contrast(image);
    case ImageOperation::equalize: return equalize_histogram(image);
  }
}

namespace {

using core::RngPurpose;

/// One image on its way through the chain.
class AugmentedImage {
 public:
  AugmentedImage(const AugmentPlan& plan, const SampleKey& key, const PixelImage& image, AugmentScratch& scratch)
      : plan_(plan), key_(key), image_(image), scratch_(scratch) {}

  void flip_at_random();
  void turn_quarters_at_random();
  void move_at_random();
  void view_at_random();
  void rand_augment();
  void apply_policy();
  void jitter_colours();
  void turn_gray();
  void blur_at_random();
  void add_gaussian_noise();
  void erase_at_random();

 private:
  void trivial_augment();
  void mix_chains();
  void three_augment();
  core::Rng stream(RngPurpose purpose) const { return {key_.seed, purpose, key_.epoch, key_.sample}; }
  const uint8_t* copy_of_pixels() {
    scratch_.copy.assign(image_.pixels, image_.pixels + image_.bytes());
    return scratch_.copy.data();
  }
  void operate(MagnitudeSpace space, ImageOperation operation, int level, core::Rng& rng);

  const AugmentPlan& plan_;
  const SampleKey& key_;
  const PixelImage& image_;
  AugmentScratch& scratch_;
};

int below(core::Rng& rng, int bound) { return static_cast<int>(rng.below(static_cast<uint64_t>(bound))); }

void AugmentedImage::turn_quarters_at_random() {
  core::Rng rng = stream(RngPurpose::rotate90);
  if (!rng.chance(plan_.rotate90)) return;
  turn_quarters(copy_of_pixels(), 1 + below(rng, 3), image_);
}

void AugmentedImage::flip_at_random() {
  if (stream(RngPurpose::vflip).chance(plan_.vflip)) flip_vertically(image_);
}

/// A rotation; with the affine move in one step.
void AugmentedImage::move_at_random() {
  double degrees = 0;
  if (plan_.rotation_degrees > 0) {
    degrees = stream(RngPurpose::rotation).uniform(-plan_.rotation_degrees, plan_.rotation_degrees);
  }
  if (!plan_.is_affine)
    return move_pixels(copy_of_pixels(), rotation_map(degrees, image_.width, image_.height), plan_.interpolation,
                       image_);
  core::Rng rng = stream(RngPurpose::affine);
  const auto shift_of = [&](int side) {
    const double reach = plan_.shift * side;
    return static_cast<int>(std::nearbyint(rng.uniform(-reach, reach)));
  };
  AffineMove move;
  move.degrees = degrees;
  move.right = shift_of(image_.width);
  move.down = shift_of(image_.height);
  move.scale = rng.uniform(plan_.scale_min, plan_.scale_max);
  move.shear = rng.uniform(-plan_.shear, plan_.shear);
  move_pixels(copy_of_pixels(), affine_map(move, image_.width, image_.height), plan_.interpolation, image_);
}

/// torchvision's RandomPerspective: each corner moves inwards.
void AugmentedImage::view_at_random() {
  core::Rng rng = stream(RngPurpose::perspective);
  if (!rng.chance(plan_.perspective)) return;
  const auto inwards = [&](int side, bool from_end) -> double {
    const int by = below(rng, static_cast<int>(plan_.distortion * (side / 2)) + 1);
    return from_end ? side - 1 - by : by;
  };
  Corners corners;
  for (size_t i = 0; i < corners.size(); ++i) {
    corners[i] = {inwards(image_.width, i == 1 || i == 2), inwards(image_.height, i >= 2)};
  }
  const PerspectiveMap map = perspective_map(corners, image_.width, image_.height);
  if (map != PerspectiveMap{}) move_pixels(copy_of_pixels(), map, plan_.interpolation, image_);
}

void AugmentedImage::operate(MagnitudeSpace space, ImageOperation operation, int level, core::Rng& rng) {
  double magnitude = magnitude_of(operation, space, level, image_.width, image_.height);
  if (has_sign(operation) && below(rng, 2) == 1) magnitude = -magnitude;
  apply_operation(operation, magnitude, plan_.interpolation, image_, scratch_.copy);
}

void AugmentedImage::rand_augment() {
  core::Rng rng = stream(RngPurpose::rand_augment);
  for (int i = 0; i < plan_.rand_augment_operations; ++i) {
    const auto operation = static_cast<ImageOperation>(below(rng, kImageOperations));
    operate(MagnitudeSpace::rand_augment, operation, plan_.rand_augment_level, rng);
  }
}

void AugmentedImage::trivial_augment() {
  core::Rng rng = stream(RngPurpose::trivial_augment);
  const auto operation = static_cast<ImageOperation>(below(rng, kImageOperations));
  const int level = below(rng, kMagnitudes);
  operate(MagnitudeSpace::trivial_augment, operation, level, rng);
}

/// torchvision's AugMix: three chains of one to three weak operations, mixed with each other and with the image.
void AugmentedImage::mix_chains() {
  constexpr int kChains = 3, kLongest = 3, kSeverity = 3;
  constexpr double kWhole = 0x1p16;
  core::Rng rng = stream(RngPurpose::aug_mix);
  // Shares that are uniform on the simplex (Dirichlet with alpha 1): of the image itself, then of the chains.
  const double own = rng.uniform();
  std::array<double, kChains> shares{};
  for (double& share : shares) share = -std::log1p(-rng.uniform());
  const double sum = std::max(shares[0] + shares[1] + shares[2], 1e-300);
  const int64_t bytes = image_.bytes();
  scratch_.original.assign(image_.pixels, image_.pixels + bytes);
  scratch_.mixed.assign(static_cast<size_t>(bytes), 0);
  const auto add = [&](const uint8_t* pixels, int32_t weight) {
    for (int64_t i = 0; i < bytes; ++i) scratch_.mixed[static_cast<size_t>(i)] += weight * pixels[i];
  };
  int32_t left_over = static_cast<int32_t>(kWhole);
  for (const double share : shares) {
    std::copy_n(scratch_.original.data(), bytes, image_.pixels);
    for (int left = 1 + below(rng, kLongest); left > 0; --left) {
      const auto operation = static_cast<ImageOperation>(1 + below(rng, kImageOperations - 1));  // not the identity
      operate(MagnitudeSpace::aug_mix, operation, below(rng, kSeverity), rng);
    }
    const auto weight = static_cast<int32_t>(std::nearbyint(kWhole * (1 - own) * share / sum));
    add(image_.pixels, std::min(weight, left_over));
    left_over -= std::min(weight, left_over);
  }
  add(scratch_.original.data(), left_over);
  for (int64_t i = 0; i < bytes; ++i) {
    image_.pixels[i] = static_cast<uint8_t>(scratch_.mixed[static_cast<size_t>(i)] >> 16);
  }
}

/// DeiT III's 3-Augment (Touvron et al. 2022): gray, inverted above the middle, or blurred; color jitter follows.
void AugmentedImage::three_augment() {
  constexpr int kKernel = 13;  // pixels: three deviations
  constexpr double kLeast = 0.1, kMost = 2;
  core::Rng rng = stream(RngPurpose::three_augment);
  switch (below(rng, 3)) {
    case 0: return to_grayscale(image_);
    case 1: return solarize(image_, 128);
    default: blur(image_, std::min(kKernel, 2 * image_.short_side() - 1), rng.uniform(kLeast, kMost), scratch_.blur);
  }
}

void AugmentedImage::apply_policy() {
  switch (plan_.policy) {
    case config::AugmentPolicy::none: return;
    case config::AugmentPolicy::ta_wide: return trivial_augment();
    case config::AugmentPolicy::aug_mix: return mix_chains();
    case config::AugmentPolicy::three_augment: return three_augment();
  }
}

/// torchvision's ColorJitter: the four in a random order.
void AugmentedImage::jitter_colours() {
  core::Rng rng = stream(RngPurpose::color_jitter);
  if (plan_.jitter < 1 && !rng.chance(plan_.jitter)) return;  // 1 draws nothing, as before there was a probability
  std::array<int, 4> order = {0, 1, 2, 3};
  for (int left = 4; left > 1; --left) {
    std::swap(order[static_cast<size_t>(left - 1)], order[static_cast<size_t>(below(rng, left))]);
  }
  const auto factor = [&rng](double reach) { return rng.uniform(std::max(0.0, 1 - reach), 1 + reach); };
  const double brightness = factor(plan_.brightness), contrast = factor(plan_.contrast);
  const double saturation = factor(plan_.saturation), hue = rng.uniform(-plan_.hue, plan_.hue);
  for (const int step : order) {
    if (step == 0 && plan_.brightness > 0) adjust_brightness(image_, brightness);
    if (step == 1 && plan_.contrast > 0) adjust_contrast(image_, contrast);
    if (step == 2 && plan_.saturation > 0) adjust_saturation(image_, saturation);
    if (step == 3 && plan_.hue > 0) adjust_hue(image_, hue);
  }
}

void AugmentedImage::turn_gray() {
  if (stream(RngPurpose::grayscale).chance(plan_.grayscale)) to_grayscale(image_);
}

void AugmentedImage::blur_at_random() {
  core::Rng rng = stream(RngPurpose::gaussian_blur);
  if (!rng.chance(plan_.blur)) return;
  blur(image_, plan_.blur_kernel, rng.uniform(plan_.blur_sigma_min, plan_.blur_sigma_max), scratch_.blur);
}

void AugmentedImage::add_gaussian_noise() {
  core::Rng rng = stream(RngPurpose::gaussian_noise);
  if (plan_.noise_probability < 1 && !rng.chance(plan_.noise_probability)) return;
  const uint64_t high = rng.next();
  add_noise(image_, *plan_.noise, high << 32 | rng.next());
}

/// torchvision's RandomErasing: ten tries for a box that is smaller than the image, else nothing is erased.
void AugmentedImage::erase_at_random() {
  core::Rng rng = stream(RngPurpose::random_erasing);
  if (!rng.chance(plan_.erasing)) return;
  const double log_ratio_min = std::log(0.3), log_ratio_max = std::log(3.3);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(image_.area()) * rng.uniform(0.02, 0.33);
    const double ratio = std::exp(rng.uniform(log_ratio_min, log_ratio_max));  // height / width
    PixelBox box;
    box.height = static_cast<int>(std::nearbyint(std::sqrt(area * ratio)));
    box.width = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
    if (box.height >= image_.height || box.width >= image_.width) continue;
    box.top = below(rng, image_.height - box.height + 1);
    box.left = below(rng, image_.width - box.width + 1);
    erase(image_, box, plan_.erased_value);
    return;
  }
}

std::array<uint8_t, 3> mean_pixel(const std::vector<double>& mean) {
  std::array<uint8_t, 3> value{};
  for (size_t c = 0; c < std::min<size_t>(3, mean.size()); ++c) {
    value[c] = static_cast<uint8_t>(std::clamp(std::nearbyint(255 * mean[c]), 0.0, 255.0));
  }
  return value;
}

/// " of 0.3 of the images"; empty for all.
std::string share_text(double probability) {
  return probability < 1 ? core::format(" of {:g} of the images", probability) : "";
}

/// Adds "name value" to a list.
void name_step(std::string& text, const std::string& step) { text += (text.empty() ? "" : ", ") + step; }

const char* name_of(config::AugmentPolicy policy) {
  switch (policy) {
    case config::AugmentPolicy::none: break;
    case config::AugmentPolicy::ta_wide: return "TrivialAugment";
    case config::AugmentPolicy::aug_mix: return "AugMix";
    case config::AugmentPolicy::three_augment: return "3-Augment";
  }
  return "";
}

bool jitters(const AugmentPlan& plan) {
  if (plan.jitter == 0) return false;
  return plan.brightness > 0 || plan.contrast > 0 || plan.saturation > 0 || plan.hue > 0;
}

bool adds_noise(const AugmentPlan& plan) { return plan.noise_sigma > 0 && plan.noise_probability > 0; }

}  // namespace

bool AugmentPlan::is_active() const {
  return vflip > 0 || rotate90 > 0 || rotation_degrees > 0 || is_affine || perspective > 0 ||
         rand_augment_operations > 0 || policy != config::AugmentPolicy::none || jitters(*this) || grayscale > 0 ||
         blur > 0 || adds_noise(*this) || erasing > 0;
}

AugmentPlan make_augment_plan(const config::ResolvedDataOptions& data, const config::ResolvedAugmentOptions& options) {
  AugmentPlan plan;
  plan.vflip = options.vflip;
  plan.rotate90 = options.rotate90;
  plan.is_affine = config::is_affine(options);
  plan.shift = options.affine_shift;
  plan.scale_min = options.affine_scale_min;
  plan.scale_max = options.affine_scale_max;
  plan.shear = options.affine_shear;
  plan.perspective = options.perspective;
  plan.distortion = options.perspective_distortion;
  plan.rotation_degrees = options.rotation;
  if (!options.rand_augment.empty()) {
    plan.rand_augment_operations = static_cast<int>(options.rand_augment[0]);
    plan.rand_augment_level = static_cast<int>(options.rand_augment[1]);
  }
  plan.policy = options.policy;
  const std::vector<double>& jitter = options.color_jitter;  // one number is for the first three, like timm
  const auto strength = [&jitter](size_t i) {
    return jitter.size() == 1 ? jitter[0] : i < jitter.size() ? jitter[i] : 0;
  };
  plan.brightness = strength(0);
  plan.contrast = strength(1);
  plan.saturation = strength(2);
  plan.hue = jitter.size() == 1 ? 0 : strength(3);
  plan.jitter = options.color_jitter_prob;
  plan.grayscale = options.grayscale;
  plan.blur = options.gaussian_blur;
  plan.blur_kernel = static_cast<int>(options.gaussian_blur_kernel);
  plan.blur_sigma_min = options.gaussian_blur_sigma_min;
  plan.blur_sigma_max = options.gaussian_blur_sigma_max;
  plan.noise_sigma = options.gaussian_noise;
  plan.noise_probability = options.gaussian_noise_prob;
  if (plan.noise_sigma > 0) plan.noise = std::make_shared<const NoiseTable>(make_noise_table(plan.noise_sigma));
  plan.erasing = options.random_erasing;
  plan.erased_value = mean_pixel(data.mean);
  plan.interpolation = options.augment_interpolation == config::AugmentInterpolation::nearest ? Interpolation::nearest
                                                                                              : Interpolation::bilinear;
  return plan;
}

std::string chain_text(const AugmentPlan& plan) {
  using core::format;
  std::string text;
  if (plan.vflip > 0) name_step(text, format("flipped upside down {:g}", plan.vflip));
  if (plan.rotate90 > 0) name_step(text, format("quarter turns {:g}", plan.rotate90));
  if (plan.rotation_degrees > 0) name_step(text, format("rotation {:g} degrees", plan.rotation_degrees));
  if (plan.is_affine) {
    name_step(text, format("affine {:g},{:g},{:g},{:g}", plan.shift, plan.scale_min, plan.scale_max, plan.shear));
  }
  if (plan.perspective > 0) name_step(text, format("perspective {:g},{:g}", plan.perspective, plan.distortion));
  if (plan.rand_augment_operations > 0) {
    name_step(text, format("RandAugment {} x {}", plan.rand_augment_operations, plan.rand_augment_level));
  }
  if (plan.policy != config::AugmentPolicy::none) name_step(text, name_of(plan.policy));
  if (jitters(plan)) {
    name_step(text,
              format("colour jitter {:g},{:g},{:g},{:g}", plan.brightness, plan.contrast, plan.saturation, plan.hue) +
                  share_text(plan.jitter));
  }
  if (plan.grayscale > 0) name_step(text, format("grayscale {:g}", plan.grayscale));
  if (plan.blur > 0) name_step(text, format("blur {:g}", plan.blur));
  if (adds_noise(plan)) name_step(text, format("noise {:g}", plan.noise_sigma) + share_text(plan.noise_probability));
  if (plan.erasing > 0) name_step(text, format("random erasing {:g}", plan.erasing));
  return text;
}

void augment(const AugmentPlan& plan, const SampleKey& key, const PixelImage& image, AugmentScratch& scratch) {
  AugmentedImage augmented(plan, key, image, scratch);
  if (plan.vflip > 0) augmented.flip_at_random();
  if (plan.rotate90 > 0) augmented.turn_quarters_at_random();
  if (plan.rotation_degrees > 0 || plan.is_affine) augmented.move_at_random();
  if (plan.perspective > 0) augmented.view_at_random();
  if (plan.rand_augment_operations > 0) augmented.rand_augment();
  augmented.apply_policy();
  if (jitters(plan)) augmented.jitter_colours();
  if (plan.grayscale > 0) augmented.turn_gray();
  if (plan.blur > 0) augmented.blur_at_random();
  if (adds_noise(plan)) augmented.add_gaussian_noise();
  if (plan.erasing > 0) augmented.erase_at_random();
}

namespace {

template <typename Number>
void append_bytes(const Number& number, std::vector<uint8_t>& bytes) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}

/// Writes the fill pixel `count` times.
void write_blank(const std::vector<uint8_t>& fill, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * static_cast<int64_t>(fill.size()), fill.data(), fill.size());
}

}  // namespace

MaskPlan make_mask_plan(const config::ResolvedAugmentOptions& options, const std::vector<double>& mean,
                        const SampleShape& shape) {
  MaskPlan plan{options.freq_masks, options.freq_mask_param, options.time_masks, options.time_mask_param, {}};
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double value = mean.empty() ? 0 : mean[std::min(static_cast<size_t>(c), mean.size() - 1)];
    if (shape.element == Element::uint8) {
      plan.fill.push_back(static_cast<uint8_t>(std::clamp(std::nearbyint(255 * value), 0.0, 255.0)));
    } else if (shape.element == Element::float16) {
      append_bytes(c10::Half(static_cast<float>(value)), plan.fill);
    } else {
      append_bytes(static_cast<float>(value), plan.fill);
    }
  }
  return plan;
}

std::string masks_text(const MaskPlan& plan) {
  std::string text;
  const auto add = [&text](int64_t masks, const char* what, int64_t param) {
    if (masks == 0) return;
    text +=
        core::format("{}{} {} mask{} below {}", text.empty() ? "" : ", ", masks, what, masks == 1 ? "" : "s", param);
  };
  add(plan.freq_masks, "frequency", plan.freq_param);
  add(plan.time_masks, "time", plan.time_param);
  return text;
}

MaskBand draw_band(int64_t param, int64_t side, core::Rng& rng) {
  const double width = rng.uniform() * static_cast<double>(std::min(param, side));
  const double begin = rng.uniform() * (static_cast<double>(side) - width);
  return {static_cast<int64_t>(begin), static_cast<int64_t>(width)};
}

void mask_spectrogram(const MaskPlan& plan, const SampleKey& key, const SampleShape& shape, uint8_t* row) {
  const int64_t pixel = shape.channels * bytes_of(shape.element), line = shape.width * pixel;
  const auto each_image = [&](const auto& change) {
    for (int64_t i = 0; i < shape.images(); ++i) change(row + i * shape.image_bytes());
  };
  core::Rng freq_rng(key.seed, core::RngPurpose::frequency_mask, key.epoch, key.sample);
  for (int64_t mask = 0; mask < plan.freq_masks; ++mask) {
    const MaskBand band = draw_band(plan.freq_param, shape.height, freq_rng);
    each_image([&](uint8_t* image) { write_blank(plan.fill, band.size * shape.width, image + band.begin * line); });
  }
  core::Rng time_rng(key.seed, core::RngPurpose::time_mask, key.epoch, key.sample);
  for (int64_t mask = 0; mask < plan.time_masks; ++mask) {
    const MaskBand band = draw_band(plan.time_param, shape.width, time_rng);
    each_image([&](uint8_t* image) {
      for (int64_t y = 0; y < shape.height; ++y)
        write_blank(plan.fill, band.size, image + y * line + band.begin * pixel);
    });
  }
}

}  // namespace stoker::data
