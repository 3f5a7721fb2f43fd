// SPDX-License-Identifier: Apache-2.0
// Applies single operations of augmentation to images on a pipe, for scripts/parity/augment_parity.py. For
// each request, a line "operation height width channels number..." and the pixels, it writes the pixels that come
// out.
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "named_operation.h"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string operation;
    stoker::data::PixelImage image;
    words >> operation >> image.height >> image.width >> image.channels;
    std::vector<double> numbers;
    for (double number; words >> number;) numbers.push_back(number);
    if (image.height < 1 || image.width < 1 || (image.channels != 1 && image.channels != 3)) return 64;
    std::vector<uint8_t> pixels(static_cast<size_t>(image.bytes()));
    image.pixels = pixels.data();
    if (!std::cin.read(reinterpret_cast<char*>(pixels.data()), image.bytes())) return 74;
    if (!stoker::data::apply_named(operation, numbers, image)) return 64;
    std::cout.write(reinterpret_cast<const char*>(pixels.data()), image.bytes()).flush();
  }
}
