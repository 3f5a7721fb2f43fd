// SPDX-License-Identifier: Apache-2.0
// The C interface: errors become codes and texts, nothing is thrown through it.
#include "embed/stoker.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "embed/classifier.h"
#include "engine/device/device.h"

struct stoker_network {
  explicit stoker_network(const std::string& path, const std::string& which) : classifier(path, which) {}

  stoker::embed::Classifier classifier;
  std::mutex one_at_a_time;
};

namespace {

thread_local std::string last_error;

/// 0, or the exit code of what `work` throws.
template <typename Work>
int guarded(const Work& work) {
  last_error.clear();
  try {
    work();
    return 0;
  } catch (const stoker::core::Error& error) {
    last_error = error.text();
    return stoker::core::exit_code(error.kind());
  } catch (const std::exception& error) {
    const bool is_memory = stoker::engine::is_out_of_memory(error);
    last_error = is_memory ? "memory has run out" : stoker::engine::short_text_of(error);
    return stoker::core::exit_code(is_memory ? stoker::core::ErrorKind::out_of_memory : stoker::core::ErrorKind::bug);
  }
}

void require(bool holds, const char* what) {
  if (!holds) throw stoker::core::Error(stoker::core::ErrorKind::usage, what);
}

int classify(stoker_network* network, const stoker::data::SampleContent& image, float* predictions) {
  return guarded([&] {
    require(network != nullptr && predictions != nullptr, "the network and a buffer for predictions must be given");
    const std::lock_guard<std::mutex> lock(network->one_at_a_time);
    const std::vector<float> numbers = network->classifier.classify(image);
    std::copy(numbers.begin(), numbers.end(), predictions);
  });
}

}  // namespace

const char* stoker_version(void) { return STOKER_VERSION; }

stoker_network* stoker_open(const char* run_or_checkpoint, const char* which) {
  stoker_network* network = nullptr;
  guarded([&] {
    require(run_or_checkpoint != nullptr, "no run or checkpoint is named");
    // A library prints nothing by itself.
    stoker::core::set_console_writer([](stoker::core::LogLevel, std::string_view) {});
    network = std::make_unique<stoker_network>(run_or_checkpoint, which == nullptr ? "best" : which).release();
  });
  return network;
}

int64_t stoker_outputs(const stoker_network* network) {
  return network == nullptr ? 0 : static_cast<int64_t>(network->classifier.names().size());
}

const char* stoker_name(const stoker_network* network, int64_t index) {
  if (index < 0 || index >= stoker_outputs(network)) return nullptr;
  return network->classifier.names()[static_cast<size_t>(index)].c_str();
}

const char* stoker_preprocess_json(const stoker_network* network) {
  return network == nullptr ? nullptr : network->classifier.preprocess_json().c_str();
}

int stoker_classify_file_bytes(stoker_network* network, const void* bytes, size_t size, float* predictions) {
  stoker::data::SampleContent image;
  image.bytes = static_cast<const uint8_t*>(bytes);
  image.size = bytes == nullptr ? 0 : size;
  return classify(network, image, predictions);
}

int stoker_classify_pixels(stoker_network* network, const uint8_t* pixels, int64_t height, int64_t width,
                           int64_t channels, float* predictions) {
  constexpr int64_t kMaxSide = 65535;
  const bool is_image = pixels != nullptr && height > 0 && height <= kMaxSide && width > 0 && width <= kMaxSide &&
                        (channels == 1 || channels == 3);
  if (!is_image) {
    return guarded([] { require(false, "pixels: 1 to 65535 rows and columns of 1 or 3 channels are accepted"); });
  }
  stoker::data::SampleContent image;
  image.bytes = pixels;
  image.height = static_cast<int>(height);
  image.width = static_cast<int>(width);
  image.channels = static_cast<int>(channels);
  image.size = static_cast<uint64_t>(height * width * channels);
  return classify(network, image, predictions);
}

void stoker_close(stoker_network* network) { delete network; }

const char* stoker_error(void) { return last_error.c_str(); }
