// SPDX-License-Identifier: Apache-2.0
#include "data/audit/near_duplicates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/rng.h"
#include "data/audit/picture_hash.h"

namespace stoker::data {
namespace {

/// A picture that exists at every resolution: waves of many frequencies, the faster the weaker, as in photographs.
class Scene {
 public:
  explicit Scene(uint64_t seed) {
    core::Rng rng(seed, core::RngPurpose::probe, 0, 0);
    for (int i = 0; i < 80; ++i) {
      Wave wave;
      wave.x = rng.uniform(-12, 12);
      wave.y = rng.uniform(-12, 12);
      wave.phase = rng.uniform(0, 6.283);
      wave.height = 40 / (1 + std::hypot(wave.x, wave.y));
      waves_.push_back(wave);
    }
  }

  /// `window` of it, drawn with width x height pixels, with some noise.
  Picture drawn(const PictureWindow& window = {}, int width = 64, int height = 48, double noise = 0) const {
    std::vector<double> u, v, values(static_cast<size_t>(width) * height, 128);
    for (int x = 0; x < width; ++x) {
      const double across = (window.mirrored ? width - 1 - x : x) + 0.5;
      u.push_back(window.left + across / width * (window.right - window.left));
    }
    for (int y = 0; y < height; ++y) v.push_back(window.top + (y + 0.5) / height * (window.bottom - window.top));
    for (const Wave& wave : waves_) add(wave, u, v, values.data());
    core::Rng rng(7, core::RngPurpose::probe, 1, 0);
    std::vector<uint8_t> gray;
    for (const double value : values) {
      gray.push_back(static_cast<uint8_t>(std::clamp(value + noise * rng.normal(), 0.0, 255.0)));
    }
    ResampleScratch scratch;
    return {thumbnail_of(gray.data(), width, height, scratch), std::min(width, height)};
  }

 private:
  struct Wave {
    double x = 0, y = 0, phase = 0, height = 0;
  };
  /// height * cos(6.283 (x u + y v) + phase), by cos(a + b) = cos a cos b - sin a sin b: few cosines for many pixels.
  static void add(const Wave& wave, const std::vector<double>& u, const std::vector<double>& v, double* values) {
    std::vector<double> cosines, sines;
    for (const double across : u) {
      cosines.push_back(std::cos(6.283 * wave.x * across));
      sines.push_back(std::sin(6.283 * wave.x * across));
    }
    for (const double down : v) {
      const double angle = 6.283 * wave.y * down + wave.phase;
      const double cosine = wave.height * std::cos(angle), sine = wave.height * std::sin(angle);
      for (size_t i = 0; i < u.size(); ++i) *values++ += cosine * cosines[i] - sine * sines[i];
    }
  }
  std::vector<Wave> waves_;
};

/// Scenes 0 to count - 1.
std::vector<Picture> strangers(int count) {
  static std::vector<Picture> drawn;
  while (static_cast<int>(drawn.size()) < count) drawn.push_back(Scene(drawn.size()).drawn());
  return {drawn.begin(), drawn.begin() + count};
}

int bits_that_differ(uint64_t a, uint64_t b) { return __builtin_popcountll(a ^ b); }

struct Copy {
  const char* what;
  Picture picture;
};

/// Copies of scene `seed`.
std::vector<Copy> copies_of(uint64_t seed) {
  const Scene scene(seed);
  return {{"resized", scene.drawn({}, 40, 40)},
          {"with noise", scene.drawn({}, 64, 48, 6)},
          {"mirrored", scene.drawn({0, 1, 0, 1, true})},
          {"without 5 % at the left", scene.drawn({0.05f, 1, 0, 1})},
          {"without 5 % at two sides", scene.drawn({0, 0.95f, 0.05f, 1})},
          {"without 5 % all around", scene.drawn({0.05f, 0.95f, 0.05f, 0.95f})},
          {"without what lies between the windows that are tried", scene.drawn({0.013f, 0.963f, 0.037f, 0.987f})},
          {"mirrored, cropped, resized and with noise", scene.drawn({0.02f, 0.97f, 0, 0.95f, true}, 36, 50, 4)}};
}

TEST(NearDuplicatesTest, EveryKindOfCopyIsFoundAmongStrangers) {
  constexpr int kStrangers = 60;
  for (const uint64_t seed : {3, 17, 42}) {
    for (const Copy& copy : copies_of(seed)) {
      std::vector<Picture> pictures = strangers(kStrangers);
      pictures.push_back(copy.picture);
      const std::vector<NearPair> pairs = near_pairs(pictures, 1);
      ASSERT_EQ(pairs.size(), 1u) << copy.what << " of scene " << seed;
      EXPECT_EQ(pairs[0].a, static_cast<int64_t>(seed)) << copy.what;
      EXPECT_EQ(pairs[0].b, kStrangers) << copy.what;
      EXPECT_GE(pairs[0].agreement, 0.9f) << copy.what;
    }
  }
}

TEST(NearDuplicatesTest, CopiesAreFoundWhereThereIsLittleElse) {
  constexpr int kScenes = 20;
  std::vector<Picture> pictures = strangers(kScenes);  // copies are more than a hundredth of all pairs
  for (uint64_t seed = 0; seed < kScenes; ++seed) {
    pictures.push_back(Scene(seed).drawn({0.05f, 0.95f, 0.03f, 1}, 40, 44, 14));
  }
  int found = 0;
  for (const NearPair& pair : near_pairs(pictures, 2)) {
    EXPECT_EQ(pair.b, pair.a + kScenes) << "of another scene";
    ++found;
  }
  EXPECT_EQ(found, kScenes);
}

/// Copies of scene 5 that people make: cropped, mirrored, brighter or darker, resized, with noise.
Picture copy_number(int number) {
  core::Rng rng(11, core::RngPurpose::probe, 2, static_cast<uint64_t>(number));
  PictureWindow window;
  window.left = static_cast<float>(rng.uniform(0, 0.05));
  window.right = static_cast<float>(rng.uniform(0.95, 1));
  window.top = static_cast<float>(rng.uniform(0, 0.05));
  window.bottom = static_cast<float>(rng.uniform(0.95, 1));
  window.mirrored = number % 4 == 3;
  Picture copy = Scene(5).drawn(window, 48 + number % 5 * 4, 48, number % 3);
  const double brightness = rng.uniform(-15, 15);
  for (uint8_t& value : copy.thumbnail) {
    value = static_cast<uint8_t>(std::clamp(std::round(value + brightness), 0.0, 255.0));
  }
  return copy;
}

/// How many pictures pairs connect with picture `first`, itself included.
size_t family_of(int64_t first, const std::vector<NearPair>& pairs) {
  std::set<int64_t> family = {first};
  for (size_t before = 0; before != family.size();) {
    before = family.size();
    for (const NearPair& pair : pairs) {
      if (family.count(pair.a) + family.count(pair.b) == 1) family.insert({pair.a, pair.b});
    }
  }
  return family.size();
}

TEST(NearDuplicatesTest, FamiliesOfAnySizeStayTogether) {
  for (const int others : {30, 150}) {
    for (const int copies : {3, 8, 9, 20, 60, 150}) {
      std::vector<Picture> pictures = strangers(others);
      for (int i = 0; i < copies; ++i) pictures.push_back(copy_number(i));
      const std::vector<NearPair> pairs = near_pairs(pictures, 2);
      EXPECT_EQ(family_of(5, pairs), static_cast<size_t>(copies) + 1) << copies << " copies among " << others;
      for (const NearPair& pair : pairs) {
        EXPECT_TRUE(pair.a == 5 || pair.a >= others) << pair.a << " and " << pair.b;
        EXPECT_GE(pair.b, others);
      }
    }
  }
}

TEST(NearDuplicatesTest, StrangersAreNoPairs) { EXPECT_TRUE(near_pairs(strangers(200), 2).empty()); }

TEST(NearDuplicatesTest, TheNumberOfThreadsChangesNothing) {
  std::vector<Picture> pictures = strangers(80);
  for (const Copy& copy : copies_of(5)) pictures.push_back(copy.picture);
  const std::vector<NearPair> one = near_pairs(pictures, 1), four = near_pairs(pictures, 4);
  ASSERT_EQ(one.size(), four.size());
  EXPECT_GE(one.size(), 8u);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].a, four[i].a);
    EXPECT_EQ(one[i].b, four[i].b);
    EXPECT_EQ(one[i].agreement, four[i].agreement);
  }
}

TEST(NearDuplicatesTest, PicturesWithoutContrastAndThoseLeftOutAreNoPairs) {
  std::vector<Picture> pictures = strangers(4);
  pictures.push_back(pictures[0]);
  EXPECT_EQ(near_pairs(pictures, 1).size(), 1u);
  pictures.back().shorter_side = 0;
  EXPECT_TRUE(near_pairs(pictures, 1).empty());
  Picture dim;
  dim.thumbnail.fill(100);
  dim.thumbnail[5] = 102;
  dim.shorter_side = 32;
  EXPECT_TRUE(near_pairs({dim, dim}, 1).empty());
  EXPECT_TRUE(near_pairs({}, 1).empty());
}

/// A similar picture is not a copy in a set of similar pictures, but an equal one is.
TEST(NearDuplicatesTest, WhereAllLookAlikeACopyHasToStandOut) {
  std::vector<Picture> pictures;
  const Picture of_all = Scene(1).drawn();
  for (int i = 0; i < 60; ++i) {
    Picture varied = Scene(static_cast<uint64_t>(100 + i)).drawn();
    for (size_t k = 0; k < varied.thumbnail.size(); ++k) {
      varied.thumbnail[k] = static_cast<uint8_t>((9 * of_all.thumbnail[k] + varied.thumbnail[k]) / 10);
    }
    pictures.push_back(varied);
  }
  EXPECT_TRUE(near_pairs(pictures, 1).empty());
  pictures.push_back(pictures[30]);
  const std::vector<NearPair> pairs = near_pairs(pictures, 1);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].a, 30);
}

TEST(PictureHashTest, OfAWindowIsThatOfTheCroppedPicture) {
  const PictureHasher hasher;
  UsualCoefficients plain;
  plain.deviation.fill(1);
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const Scene scene(seed);
    std::vector<WindowHash> windows;
    hasher.window_hashes(scene.drawn({}, 64, 64).thumbnail, plain, windows);
    ASSERT_GT(windows.size(), 20u);
    for (const WindowHash& of : windows) {
      PictureWindow window = of.window;
      if (window.mirrored) {  // drawn() mirrors after it has cropped
        std::swap(window.left, window.right);
        window.left = 1 - window.left;
        window.right = 1 - window.right;
      }
      const HashCoefficients cropped = hasher.coefficients(scene.drawn(window, 64, 64).thumbnail);
      EXPECT_LE(bits_that_differ(of.hash.bits, PictureHasher::hash_of(cropped, plain).bits), 6) << seed;
    }
  }
}

TEST(PictureHashTest, StrangersDifferInAboutHalfOfTheBits) {
  const PictureHasher hasher;
  std::vector<HashCoefficients> all;
  for (const Picture& picture : strangers(60)) all.push_back(hasher.coefficients(picture.thumbnail));
  const UsualCoefficients usual = PictureHasher::usual(all);
  int least = kHashBits;
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      least = std::min(least, bits_that_differ(PictureHasher::hash_of(all[i], usual).bits,
                                               PictureHasher::hash_of(all[k], usual).bits));
    }
  }
  EXPECT_GE(least, 14);
}

TEST(HashIndexTest, FindsHashesThatDifferInAFewUncertainBits) {
  core::Rng rng(1, core::RngPurpose::probe, 2, 0);
  std::vector<uint64_t> hashes;
  for (int i = 0; i < 2000; ++i) hashes.push_back(uint64_t{rng.next()} << 32 | rng.next());
  const HashIndex index(hashes);
  for (size_t i = 0; i < hashes.size(); ++i) {
    PictureHash asked;
    asked.bits = hashes[i];
    asked.margin.fill(1);
    for (int k = 0; k < 8; ++k) {  // two in each quarter
      const size_t bit = static_cast<size_t>(k % 4 + 4 * static_cast<int>(rng.below(16)));
      asked.bits ^= uint64_t{1} << bit;
      asked.margin[bit] = 0.01f;
    }
    std::vector<HashIndex::Match> matches;
    index.find(asked, 8, i, matches);
    EXPECT_TRUE(std::any_of(matches.begin(), matches.end(), [&](const HashIndex::Match& match) {
      return match.entry == static_cast<int64_t>(i) && match.distance == bits_that_differ(asked.bits, hashes[i]);
    })) << i;
    for (const HashIndex::Match& match : matches) EXPECT_LE(match.distance, 8);
  }
}

TEST(AlignmentTest, FindsAWindowThatWasNearlyGuessed) {
  const Scene scene(9);
  const Thumbnail whole = scene.drawn({}, 128, 128).thumbnail;
  const Thumbnail copy = scene.drawn({0.03f, 0.93f, 0.06f, 0.98f}, 128, 128).thumbnail;
  EXPECT_GT(aligned_agreement(whole, copy, {0.05f, 0.95f, 0.05f, 0.95f}, 128), 0.95);
  EXPECT_GT(aligned_agreement(whole, whole, {}, 128), 0.9999);
  EXPECT_LT(aligned_agreement(whole, Scene(10).drawn({}, 128, 128).thumbnail, {}, 128), 0.6);
}

TEST(AlignmentTest, OtherContrastLowersAgreement) {
  const Thumbnail whole = Scene(9).drawn().thumbnail;
  Thumbnail faint = whole;
  for (uint8_t& value : faint) value = static_cast<uint8_t>(100 + value / 4);
  const double agreement = aligned_agreement(whole, faint, {}, 48);
  EXPECT_LT(agreement, 0.6);
  EXPECT_GT(agreement, 0.3);
}

}  // namespace
}  // namespace stoker::data
