// SPDX-License-Identifier: Apache-2.0
// Golden numbers are those of Pillow 9.4: Image.crop(box).resize(size, filter) of the same pattern.
#include "data/resample/resample.h"

#include <gtest/gtest.h>

#include "made_data.h"

namespace stoker::data {
namespace {

struct ResampleCase {
  int width, height, channels;   // of the pattern
  int left, top, right, bottom;  // box
  int to_width, to_height;
  ResizeFilter filter = ResizeFilter::bilinear;
};

Bytes resampled(const ResampleCase& c, bool mirror = false, int window_left = 0, int window_top = 0, int out_width = 0,
                int out_height = 0) {
  const Bytes pixels = pattern_pixels(c.width, c.height, c.channels);
  ResampleTask task;
  task.channels = c.channels;
  task.source_stride = c.width * c.channels;
  task.source = pixels.data() + c.top * task.source_stride + c.left * c.channels;
  task.source_width = c.right - c.left;
  task.source_height = c.bottom - c.top;
  task.resized_width = c.to_width;
  task.resized_height = c.to_height;
  task.window_left = window_left;
  task.window_top = window_top;
  task.out_width = out_width > 0 ? out_width : c.to_width;
  task.out_height = out_height > 0 ? out_height : c.to_height;
  task.mirror = mirror;
  task.filter = c.filter;
  Bytes out(static_cast<size_t>(task.out_width) * static_cast<size_t>(task.out_height * c.channels));
  ResampleScratch scratch;
  resample(task, scratch, out.data());
  return out;
}

uint32_t digest_of(const Bytes& bytes) { return byte_digest(bytes.data(), bytes.size()); }

TEST(ResampleTest, ShrinksLikePillow) {
  EXPECT_EQ(resampled({9, 7, 1, 0, 0, 9, 7, 4, 3}), Bytes({21, 46, 74, 97, 57, 88, 111, 135, 91, 116, 140, 163}));
}

TEST(ResampleTest, EnlargesLikePillow) {
  EXPECT_EQ(resampled({3, 2, 3, 0, 0, 3, 2, 5, 4}),
            Bytes({0,  29, 58, 3,  32, 61, 7,  36, 65, 12, 41, 70, 15, 44, 73, 3,  32, 61, 7,  36,
                   65, 12, 41, 70, 17, 46, 75, 21, 50, 79, 10, 39, 68, 14, 43, 72, 21, 50, 79, 28,
                   57, 86, 32, 61, 90, 13, 42, 71, 18, 47, 76, 25, 54, 83, 33, 62, 91, 38, 67, 96}));
}

TEST(ResampleTest, BoxesOfAPhotographGiveThePixelsOfPillow) {
  EXPECT_EQ(digest_of(resampled({500, 375, 3, 31, 17, 431, 317, 224, 224})), 2020014680u);
  EXPECT_EQ(digest_of(resampled({60, 45, 3, 0, 0, 60, 45, 224, 224})), 2786964215u);
  EXPECT_EQ(digest_of(resampled({500, 375, 1, 0, 0, 500, 375, 224, 224})), 1127916963u);
  EXPECT_EQ(digest_of(resampled({1000, 700, 3, 3, 5, 998, 699, 32, 32})), 532784738u);
}

TEST(ResampleTest, BicubicAndLanczosGiveThePixelsOfPillow) {
  struct Golden {
    ResampleCase part;
    uint32_t bicubic, lanczos;
  };
  for (const Golden& golden : {Golden{{500, 375, 3, 31, 17, 431, 317, 224, 224}, 1284213414u, 746314606u},
                               Golden{{60, 45, 3, 0, 0, 60, 45, 224, 224}, 730503572u, 3577388406u},
                               Golden{{500, 375, 1, 0, 0, 500, 375, 224, 224}, 787669539u, 3640596726u},
                               Golden{{1000, 700, 3, 3, 5, 998, 699, 32, 32}, 901856668u, 348467840u},
                               Golden{{223, 500, 3, 0, 0, 223, 500, 224, 224}, 1746330679u, 2032901507u}}) {
    ResampleCase part = golden.part;
    part.filter = ResizeFilter::bicubic;
    EXPECT_EQ(digest_of(resampled(part)), golden.bicubic) << part.width;
    part.filter = ResizeFilter::lanczos;
    EXPECT_EQ(digest_of(resampled(part)), golden.lanczos) << part.width;
  }
}

TEST(ResampleTest, OvershootsAreCutAtBlackAndWhite) {
  Bytes edge(32 * 8 * 3, 0);
  for (size_t i = 0; i < edge.size(); ++i) edge[i] = i / 3 % 32 < 16 ? 0 : 255;
  for (const auto filter : {ResizeFilter::bicubic, ResizeFilter::lanczos}) {
    ResampleTask task;
    task.source = edge.data();
    task.channels = 3;
    task.source_stride = 32 * 3;
    task.source_width = 32;
    task.source_height = 8;
    task.resized_width = task.out_width = 50;
    task.resized_height = task.out_height = 12;
    task.filter = filter;
    Bytes vectorised(50 * 12 * 3), plain(vectorised.size());
    ResampleScratch scratch;
    resample(task, scratch, vectorised.data());
    resample(task, scratch, plain.data(), /*use_simd=*/false);
    EXPECT_EQ(vectorised, plain);
    EXPECT_EQ(plain[3 * 23], 0) << "the dark side of the edge, where sums are below 0";
    EXPECT_EQ(plain[3 * 26], 255) << "the light side, where they are above 255";
  }
}

TEST(ResampleTest, AnAxisThatKeepsItsSizeIsCopied) {
  EXPECT_EQ(digest_of(resampled({223, 500, 3, 0, 0, 223, 500, 224, 224})), 1308426292u);
  EXPECT_EQ(digest_of(resampled({224, 500, 3, 0, 0, 224, 500, 224, 224})), 3744594061u);
}

TEST(ResampleTest, MirrorsOnTheWayOut) {
  EXPECT_EQ(digest_of(resampled({500, 375, 3, 100, 90, 250, 333, 224, 224}, /*mirror=*/true)), 760297674u);
}

TEST(ResampleTest, AWindowIsTheSamePartOfTheWhole) {
  EXPECT_EQ(digest_of(resampled({500, 375, 3, 0, 0, 500, 375, 341, 256}, false, 58, 16, 224, 224)), 939205297u);
}

TEST(ResampleTest, VectorCodeGivesTheSameBits) {
  const Bytes pixels = pattern_pixels(301, 203, 3);
  for (const auto& [channels, filter] : {std::pair{1, ResizeFilter::bilinear},
                                         {3, ResizeFilter::bilinear},
                                         {3, ResizeFilter::bicubic},
                                         {3, ResizeFilter::lanczos}}) {
    for (const int to : {1, 7, 33, 203, 224, 500}) {
      for (const int rows : {1, 3, 4, 9, 203}) {
        ResampleTask task;
        task.source = pixels.data();
        task.channels = channels;
        task.source_stride = 301 * 3;
        task.source_width = 301;
        task.source_height = rows;
        task.resized_width = task.out_width = to;
        task.resized_height = task.out_height = to + 2;
        task.mirror = to % 2 == 1;
        task.filter = filter;
        Bytes vectorised(static_cast<size_t>(to * (to + 2) * channels)), plain(vectorised.size());
        ResampleScratch scratch;
        resample(task, scratch, vectorised.data());
        resample(task, scratch, plain.data(), /*use_simd=*/false);
        EXPECT_EQ(vectorised, plain) << channels << " channels, " << rows << " rows to " << to;
      }
    }
  }
}

TEST(ResampleTest, VectorCodeGivesTheSameBitsForNarrowAndHugeSources) {
  for (const auto& [width, height] : {std::pair{1, 40}, {2, 9}, {5, 5}, {6, 30}, {21, 2}, {2000, 12}}) {
    const Bytes pixels = pattern_pixels(width, height, 3);  // with nothing behind the last
    ResampleTask task;
    task.source = pixels.data();
    task.channels = 3;
    task.source_stride = width * 3;
    task.source_width = width;
    task.source_height = height;
    task.resized_width = task.out_width = 16;
    task.resized_height = task.out_height = 10;
    Bytes vectorised(16 * 10 * 3), plain(vectorised.size());
    ResampleScratch scratch;
    resample(task, scratch, vectorised.data());
    resample(task, scratch, plain.data(), /*use_simd=*/false);
    EXPECT_EQ(vectorised, plain) << width << "x" << height;
  }
}

TEST(ResampleTest, ReadsNothingBesideTheBox) {
  // A box at the very end of an exactly sized buffer: address checkers see a read beyond it.
  for (const int channels : {1, 3}) {
    EXPECT_EQ(resampled({40, 30, channels, 20, 10, 40, 30, 7, 9}).size(), static_cast<size_t>(7 * 9 * channels));
  }
}

}  // namespace
}  // namespace stoker::data
