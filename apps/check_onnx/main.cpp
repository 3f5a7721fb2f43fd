// SPDX-License-Identifier: Apache-2.0
// stoker-check-onnx MODEL.onnx INPUTS.safetensors ANSWERS: runs a file of ONNX by OpenCV's networks, image by image and
// once more as a batch, for `train export --check`. A program of its own, since OpenCV's networks bring libraries that
// LibTorch brings as well. ANSWERS: a line "rows columns OpenCV version", then
// "batches" or "single", then float32.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/dnn.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "weights/file/weight_file.h"

namespace {

/// The tensor "inputs", as numbers of 32 bits: OpenCV's networks take no others.
struct Inputs {
  std::vector<int> shape;
  std::vector<float> numbers;

  size_t per_image() const { return numbers.size() / static_cast<size_t>(shape.at(0)); }
  /// Images [begin, begin + count).
  cv::Mat some(int begin, int count) {
    std::vector<int> sizes = shape;
    sizes[0] = count;
    return {sizes, CV_32F, numbers.data() + per_image() * static_cast<size_t>(begin)};
  }
};

Inputs read_inputs(const std::string& path) {
  const stoker::weights::WeightFile file = stoker::weights::open_weight_file(path);
  if (file.tensors.size() != 1) throw std::runtime_error(path + " holds more than the inputs");
  const stoker::weights::StoredTensor& tensor = file.tensors[0];
  Inputs inputs;
  inputs.shape.assign(tensor.shape.begin(), tensor.shape.end());
  std::vector<uint8_t> bytes(file.storages.at(tensor.storage).bytes);
  file.read_storage(tensor.storage, bytes.data());
  const auto offset = static_cast<std::ptrdiff_t>(tensor.offset);
  if (tensor.type == stoker::weights::NumberType::u8) {
    inputs.numbers.assign(bytes.begin() + offset, bytes.begin() + offset + static_cast<std::ptrdiff_t>(tensor.count()));
  } else {
    inputs.numbers.resize(tensor.count());
    std::memcpy(inputs.numbers.data(), bytes.data() + tensor.offset * sizeof(float),
                inputs.numbers.size() * sizeof(float));
  }
  return inputs;
}

cv::Mat outputs_of(cv::dnn::Net& network, const cv::Mat& images) {
  network.setInput(images);
  const cv::Mat output = network.forward();
  return output.reshape(1, images.size[0]).clone();
}

cv::dnn::Net opened(const std::string& model) {
  cv::dnn::Net network = cv::dnn::readNetFromONNX(model);
  network.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
  network.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
  return network;
}

/// Whether the reader takes several images at once; some of its layers do not, in which case the file may be right.
/// Throws where it does and gives other outputs than one by one. Opens the file again: OpenCV 4.10 adds wrong numbers
/// in residual networks when the number of images changes. As many images as no image has channels: 4.6 would take
/// three values per channel for one per image, and refuses them with any other number of images.
bool agrees_as_batch(const std::string& model, Inputs& inputs, const cv::Mat& answers) {
  cv::Mat together;
  try {
    cv::dnn::Net network = opened(model);
    constexpr int kTogether = 5;
    const int images = inputs.shape.at(0) < kTogether ? std::min(inputs.shape.at(0), 2) : kTogether;
    together = outputs_of(network, inputs.some(0, images));
  } catch (const cv::Exception&) {
    return false;
  }
  const double difference = cv::norm(together, answers.rowRange(0, together.rows), cv::NORM_INF);
  if (difference <= 1e-3 * std::max(1.0, cv::norm(answers, cv::NORM_INF))) return true;
  throw std::runtime_error("several images at once give other outputs than one by one");
}

int run(const std::string& model, const std::string& inputs_path, const std::string& answers_path) {
  cv::dnn::Net network = opened(model);
  Inputs inputs = read_inputs(inputs_path);
  std::vector<cv::Mat> rows;
  for (int image = 0; image < inputs.shape.at(0); ++image) rows.push_back(outputs_of(network, inputs.some(image, 1)));
  cv::Mat answers;
  cv::vconcat(rows, answers);
  const bool takes_batches = agrees_as_batch(model, inputs, answers);
  std::ofstream file(answers_path, std::ios::binary);
  file << answers.rows << ' ' << answers.cols << " OpenCV " << CV_VERSION << (takes_batches ? " batches" : " single")
       << '\n';
  file.write(answers.ptr<char>(), static_cast<std::streamsize>(answers.total() * sizeof(float)));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + answers_path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: stoker-check-onnx MODEL.onnx INPUTS.safetensors ANSWERS\n");
    return 64;
  }
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker-check-onnx: %s\n", error.what());
    return 65;
  }
}
