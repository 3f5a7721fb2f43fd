// SPDX-License-Identifier: Apache-2.0
// BIWI's annotation files and folders of head pose data. Golden angles were computed by NumPy.
#include "data/dataset/head_pose_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "data/open_datasets.h"
#include "made_data.h"

namespace stoker::data {
namespace {

TEST(HeadPoseFileTest, ReadsTheRotationOfBiwi) {
  // scipy.spatial.transform.Rotation.from_euler("xyz", [10, 20, 30], degrees=True).as_matrix()
  const char* const text =
      "0.8137976813493736 -0.44096961052988237 0.37852230636979245 \n"
      "0.4698463103929541 0.8825641192593854 0.018028311236297265 \n"
      "-0.34202014332566866 0.1631759111665348 0.9254165783983233 \n"
      "\n"
      "12.5 -30 900.25 \r\n";
  HeadPose pose;
  ASSERT_EQ(parse_biwi_pose(text, pose), "");
  EXPECT_NEAR(pose.angles[0], 22.242180910309514, 1e-4);
  EXPECT_NEAR(pose.angles[1], 1.116054677004636, 1e-4);
  EXPECT_NEAR(pose.angles[2], 28.4517752565855, 1e-4);
  EXPECT_EQ(pose.place, (std::array<double, 3>{12.5, -30, 900.25}));
  EXPECT_EQ(parse_biwi_pose("1 0 0 0 1 0 0 0 1", pose), "has not the 12 numbers of a rotation and a place");
  EXPECT_EQ(parse_biwi_pose("1 0 0 0 1 0 0 0 2 0 0 0", pose), "does not begin with a rotation matrix");
  EXPECT_EQ(parse_biwi_pose("1 0 0 0 1 0 0 0 1 0 0 x", pose), "holds something else than numbers");
}

/// Made with NumPy: turned by 0.02 about x and -0.03 about y.
constexpr char kCameraText[] =
    "500 0 310 \n0 510 245 \n0 0 1 \n\n0 0 0 0 \n\n"
    "0.9995500337489878 0 -0.02999550020249566\n-0.0005998700108495156 0.999800006666578 -0.01998966796825584\n"
    "0.029989501302422502 0.01999866669333308 0.9993501304058162\n\n-25 6 -12 \r\n\n640 480\n";

TEST(HeadPoseFileTest, ProjectsTheHeadOfBiwiThroughItsColourCamera) {
  ColourCamera camera;
  ASSERT_EQ(parse_biwi_camera(kCameraText, camera), "");
  // NumPy: p = R @ [80, -60, 900] + T; u = K @ p / p[2]; a square of 200 mm around it, and one half as wide again.
  const RegionOfInterest box = biwi_head_box({80, -60, 900}, camera, /*margin=*/0);
  EXPECT_NEAR(box.left, 269.4695117871, 1e-8);
  EXPECT_NEAR(box.top, 146.2691931425993, 1e-8);
  EXPECT_NEAR(box.width, 112.53475611733003, 1e-8);
  EXPECT_NEAR(box.height, 114.78545123967663, 1e-8);
  const RegionOfInterest wide = biwi_head_box({80, -60, 900}, camera, /*margin=*/0.25);
  EXPECT_NEAR(wide.left, 241.3358227577675, 1e-8);
  EXPECT_NEAR(wide.height, 172.17817685951493, 1e-8);
  EXPECT_EQ(biwi_head_box({80, -60, -900}, camera, 0).width, 0) << "behind the camera";
  const RegionOfInterest beyond = biwi_head_box({1e308, 1e308, 1e308}, camera, 0);
  EXPECT_EQ(beyond.width, 0) << "numbers as large as no place";
  EXPECT_EQ(beyond.left, 0);
}

TEST(HeadPoseFileTest, ADamagedCameraFileIsAValue) {
  ColourCamera camera;
  EXPECT_EQ(parse_biwi_camera("", camera), "has not the lines of intrinsics, distortion, rotation and translation");
  std::string text = kCameraText;
  EXPECT_EQ(parse_biwi_camera(text.replace(0, 3, "5x0"), camera), "holds something else than numbers");
  EXPECT_EQ(parse_biwi_camera(text.replace(0, 3, "000"), camera), "has a focal length that is not above 0");
  EXPECT_EQ(parse_biwi_camera(text.replace(0, 3, "   "), camera), "has not 3 numbers in a line of a matrix");
}

class PoseLayoutTest : public testing::Test {
 protected:
  PoseLayoutTest() {
    options_.data_dir = folder_.path();
    options_.task = config::TaskKind::head_pose;
  }

  /// Turned about one axis by a round angle.
  void write_biwi_frame(const std::string& name, int degrees) {
    const double c = std::cos(degrees * 3.141592653589793 / 180), s = std::sin(degrees * 3.141592653589793 / 180);
    char text[200];
    std::snprintf(text, sizeof text, "1 0 0\n0 %.12f %.12f\n0 %.12f %.12f\n\n1 2 900\n", c, s, -s, c);
    folder_.write(name + "_rgb.png", png_of({1, 2, 3}, 1, 1, 3));
    folder_.write(name + "_pose.txt", std::string(text));
  }

  const TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(PoseLayoutTest, BiwiIsSplitBySubject) {
  for (int subject = 1; subject <= 6; ++subject) {
    for (int frame = 3; frame < 5; ++frame) {
      write_biwi_frame("0" + std::to_string(subject) + "/frame_0000" + std::to_string(frame), 10 * subject + frame);
    }
  }
  folder_.write("01/frame_00003_depth.bin", std::string("x"));
  options_.dataset = config::DatasetType::biwi;
  const Datasets data = open_datasets(options_);
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.val->size(), 4);
  EXPECT_EQ(data.val->relative_name(0), "03/frame_00003_rgb.png");
  EXPECT_EQ(data.val->relative_name(2), "06/frame_00003_rgb.png");
  float angles[3];
  data.train->targets(1, angles);
  EXPECT_NEAR(angles[1], 14, 1e-4);
  options_.val_subjects = "02";
  EXPECT_EQ(open_datasets(options_).val->size(), 2);
  EXPECT_EQ(open_datasets(options_).val->relative_name(0), "02/frame_00003_rgb.png");
  options_.val_subjects = "02,99";
  EXPECT_NE(std::string(error_of([&] { open_datasets(options_); }).what()).find("no folder of the subject '99'"),
            std::string::npos);
}

TEST_F(PoseLayoutTest, FacesOfBiwiAreCroppedWithTheCameraOfTheirFolder) {
  const std::string head = "1 0 0\n0 1 0\n0 0 1\n\n80 -60 900\n";
  for (const char* const name : {"01/frame_00003", "02/frame_00003", "03/frame_00003"}) {
    folder_.write(std::string(name) + "_rgb.png", png_of({1, 2, 3}, 1, 1, 3));
    folder_.write(std::string(name) + "_pose.txt", head);
  }
  folder_.write("01/rgb.cal", std::string(kCameraText));
  folder_.write("03/rgb.cal", std::string(kCameraText));
  options_.dataset = config::DatasetType::biwi;
  options_.face_margin = 0.25;
  const Datasets data = open_datasets(options_);  // 01 and 02 to train
  EXPECT_NEAR(data.train->region(0).left, 241.3358227577675, 1e-8);
  EXPECT_NEAR(data.val->region(0).left, 241.3358227577675, 1e-8);
  // NumPy with the usual Kinect's matrices.
  EXPECT_NEAR(data.train->region(1).left, 269.8438013976, 1e-6);
  EXPECT_NEAR(data.train->region(1).width, 175.1290708843, 1e-6);
  const std::string note = "train: 1 of 2 folders have no rgb.cal: faces are found with the usual Kinect's";
  EXPECT_NE(std::find(data.notes.begin(), data.notes.end(), note), data.notes.end());
  folder_.write("02/rgb.cal", std::string("517 0 320"));
  EXPECT_NE(std::string(error_of([&] { open_datasets(options_); }).what()).find("02/rgb.cal: has not the lines"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::data
