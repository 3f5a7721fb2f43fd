// SPDX-License-Identifier: Apache-2.0
// Measures our Huffman stage against libjpeg's own on the same regions of the same files, on one thread:
//   taskset -c 0 jpeg_stage_tool FOLDER [ROUNDS]
// The stages take turns on each file, so that what else the machine does hits both; times are CPU seconds of this
// thread. Prints a table in Markdown: the median of the rounds and their range.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "data/image/decode.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "data/resample/resample.h"
#include "data/transform/transform.h"

namespace stoker::data {
namespace {

struct JpegFile {
  std::vector<uint8_t> bytes;
  int width = 0, height = 0;
};

/// The JPEG files below `folder` that are stored upright, in the order of their names.
std::vector<JpegFile> read_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<JpegFile> files;
  for (const std::string& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    JpegFile file;
    file.bytes.assign(std::istreambuf_iterator<char>(stream), {});
    ImageHeader header;
    if (!read_header(file.bytes.data(), file.bytes.size(), {}, header).empty()) continue;
    if (header.format != ImageFormat::jpeg || header.orientation != 1) continue;
    file.width = header.width;
    file.height = header.height;
    files.push_back(std::move(file));
  }
  return files;
}

double cpu_seconds_of_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TransformPlan plan_of(config::TrainCrop crop) {
  TransformPlan plan;
  plan.training = true;
  plan.shape.height = plan.shape.width = 224;
  plan.shape.channels = 3;
  plan.train_crop = crop;
  plan.hflip = 0.5;
  return plan;
}

using Work = std::function<void(const JpegFile&, uint64_t, EntropyStage)>;

void expect_good(const std::string& reason) {
  if (!reason.empty()) throw core::Error(core::ErrorKind::data, reason);
}

/// All pixels, as for a cache or statistics.
void decode_whole(const JpegFile& file, uint64_t, EntropyStage stage) {
  static ImageBuffer image;
  Region whole{0, 0, file.width, file.height};
  expect_good(decode_jpeg(file.bytes.data(), file.bytes.size(), 3, {}, whole, image, stage));
}

/// A crop as RandomResizedCrop draws it, of 224 x 224 pixels in the end.
SampleGeometry drawn_geometry(const JpegFile& file, uint64_t number) {
  static const TransformPlan plan = plan_of(config::TrainCrop::random_resized);
  core::Rng rng(1, core::RngPurpose::augment, 0, number);
  return draw_geometry(plan, file.width, file.height, rng);
}

/// The region of a crop, without resizing it.
void decode_crop(const JpegFile& file, uint64_t number, EntropyStage stage) {
  static ImageBuffer image;
  const SampleGeometry geometry = drawn_geometry(file, number);
  Region region{geometry.left, geometry.top, geometry.width, geometry.height};
  expect_good(decode_jpeg(file.bytes.data(), file.bytes.size(), 3, {}, region, image, stage));
}

/// The work of a loader worker on a sample: decodes the region of a crop and resizes rows as they come.
void decode_sample(const JpegFile& file, uint64_t number, EntropyStage stage) {
  static const TransformPlan plan = plan_of(config::TrainCrop::random_resized);
  static ResampleScratch scratch;
  static ScratchBytes band;
  static std::vector<uint8_t> row(static_cast<size_t>(plan.shape.image_bytes()));
  const SampleGeometry geometry = drawn_geometry(file, number);
  ResizedRows rows(resample_task(plan, geometry), geometry.left, geometry.top, scratch, band, row.data());
  expect_good(decode_jpeg(file.bytes.data(), file.bytes.size(), 3, {}, rows.needed(), rows, stage));
}

struct Round {
  double own = 0, libjpeg = 0;  ///< CPU seconds
};

/// Both stages on each file; which one goes first changes from file to file.
Round run_round(const std::vector<JpegFile>& files, uint64_t round, const Work& work) {
  Round sums;
  for (size_t i = 0; i < files.size(); ++i) {
    const uint64_t number = round * files.size() + i;
    for (int turn = 0; turn < 2; ++turn) {
      const bool own = (turn == 0) == ((i + round) % 2 == 0);
      const double begin = cpu_seconds_of_thread();
      work(files[i], number, own ? EntropyStage::own : EntropyStage::libjpeg);
      (own ? sums.own : sums.libjpeg) += cpu_seconds_of_thread() - begin;
    }
  }
  return sums;
}

struct Spread {
  double median = 0, least = 0, most = 0;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

void measure(const char* name, const std::vector<JpegFile>& files, int rounds, const Work& work) {
  run_round(files, 0, work);  // warms up
  std::vector<double> own, libjpeg, gains;
  for (int round = 1; round <= rounds; ++round) {
    const Round sums = run_round(files, static_cast<uint64_t>(round), work);
    const double to_microseconds = 1e6 / static_cast<double>(files.size());
    own.push_back(sums.own * to_microseconds);
    libjpeg.push_back(sums.libjpeg * to_microseconds);
    gains.push_back(100 * (sums.libjpeg / sums.own - 1));
  }
  const Spread gain = spread_of(gains);
  std::printf("| %s | %.0f | %.0f | %.1f %% (%.1f to %.1f) |\n", name, spread_of(own).median, spread_of(libjpeg).median,
              gain.median, gain.least, gain.most);
  std::fflush(stdout);
}

}  // namespace
}  // namespace stoker::data

int main(int argc, char** argv) {
  using namespace stoker;
  if (argc < 2 || argc > 3) return 64;
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 5;
  try {
    const std::vector<data::JpegFile> files = data::read_files(argv[1]);
    if (files.empty() || rounds < 1) return 66;
    double bytes = 0, pixels = 0;
    for (const data::JpegFile& file : files) {
      bytes += static_cast<double>(file.bytes.size());
      pixels += 1.0 * file.width * file.height;
    }
    const double count = static_cast<double>(files.size());
    std::printf("%zu files, %.0f kB and %.2f megapixels on average, %d rounds\n\n", files.size(), 1e-3 * bytes / count,
                1e-6 * pixels / count, rounds);
    std::printf("| microseconds of CPU an image | ours | libjpeg's | gain |\n|---|---|---|---|\n");
    data::measure("whole image", files, rounds, data::decode_whole);
    data::measure("random crop", files, rounds, data::decode_crop);
    data::measure("random crop, resized to 224", files, rounds, data::decode_sample);
  } catch (const core::Error& error) {
    std::fprintf(stderr, "jpeg_stage_tool: %s\n", error.what());
    return core::exit_code(error.kind());
  }
  return 0;
}
