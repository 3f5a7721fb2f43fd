// SPDX-License-Identifier: Apache-2.0
#include "data/image/opencv_encode.h"

#include <new>
#include <opencv2/core.hpp>
#include <opencv2/core/utility.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>

#include "core/error.h"

namespace stoker::data {

void encode_png(const uint8_t* pixels, int width, int height, int channels, std::vector<uint8_t>& out) {
  try {
    const cv::Mat given(height, width, CV_8UC(channels), const_cast<uint8_t*>(pixels));
    cv::Mat image;
    if (channels == 1) {
      image = given;
    } else {  // OpenCV's order of colours is BGR
      image.create(height, width, CV_8UC3);
      const int from_to[] = {0, 2, 1, 1, 2, 0};
      cv::mixChannels(&given, 1, &image, 1, from_to, 3);
    }
    if (!cv::imencode(".png", image, out)) throw core::Error(core::ErrorKind::bug, "cannot write a PNG");
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();
    throw core::Error(core::ErrorKind::bug, std::string("cannot write a PNG: ") + error.what());
  }
}

std::string image_library_text() { return "OpenCV " + cv::getVersionString(); }

}  // namespace stoker::data
