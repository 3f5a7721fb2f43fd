// SPDX-License-Identifier: Apache-2.0
// classify RUN IMAGE...: the most probable class of each image.
#include <stoker.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::unique_ptr<stoker_network, decltype(&stoker_close)> network(stoker_open(argv[1], nullptr), stoker_close);
  if (!network) {
    std::cerr << stoker_error() << '\n';
    return 66;
  }
  std::vector<float> predictions(static_cast<size_t>(stoker_outputs(network.get())));
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (const int code = stoker_classify_file_bytes(network.get(), bytes.data(), bytes.size(), predictions.data())) {
      std::cerr << argv[i] << ": " << stoker_error() << '\n';
      return code;
    }
    const auto best = std::max_element(predictions.begin(), predictions.end());
    std::cout << argv[i] << ' ' << stoker_name(network.get(), best - predictions.begin()) << ' ' << *best << '\n';
  }
}
