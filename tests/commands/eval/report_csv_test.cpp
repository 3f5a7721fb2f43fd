// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/report_csv.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::train {
namespace {

ImageResult image(const std::string& path, int64_t label, const float* outputs, const float* predictions = nullptr) {
  ImageResult result;
  result.path = path;
  result.label = label;
  result.outputs = outputs;
  result.predictions = predictions;
  return result;
}

engine::TaskSpec task(config::TaskKind kind) {
  engine::TaskSpec spec;
  spec.kind = kind;
  return spec;
}

TEST(ImageTableTest, NamesTheLargestScoreAndItsSoftmax) {
  const auto table = make_image_table(task(config::TaskKind::multiclass), {"a", "b,c"}, 2, TableColumns{});
  const float first[] = {1, 0}, second[] = {-100, 100};
  table->add(image("x/1.png", -1, first));
  table->add(image("x,2.png", -1, second));
  EXPECT_EQ(table->text(), "path,class,probability\nx/1.png,a,0.731058579\n\"x,2.png\",\"b,c\",1\n");
}

TEST(ImageTableTest, AddsTruthAndScoresWhenAsked) {
  const auto table = make_image_table(task(config::TaskKind::multiclass), {"a", "b"}, 2, TableColumns{true, true});
  const float scores[] = {0.5F, 0.5F};
  table->add(image("1.png", 1, scores));
  EXPECT_EQ(table->text(), "path,true,class,probability,a,b\n1.png,b,a,0.5,0.5,0.5\n");
}

TEST(ImageTableTest, NamesAsManyClassesAsAskedAndAllProbabilities) {
  TableColumns wanted;
  wanted.top_k = 2;
  wanted.probabilities = true;
  const auto table = make_image_table(task(config::TaskKind::multiclass), {"a", "b", "c"}, 3, wanted);
  const float scores[] = {0, 100, 100};
  table->add(image("1.png", -1, scores));
  EXPECT_EQ(table->text(),
            "path,class,probability,class_2,probability_2,probability_a,probability_b,probability_c\n"
            "1.png,b,0.5,c,0.5,1.86003799e-44,0.5,0.5\n");
  wanted.top_k = 9;
  const auto all = make_image_table(task(config::TaskKind::multiclass), {"a", "b"}, 2, wanted);
  EXPECT_EQ(all->text().find("class_3"), std::string::npos) << "there are two";
}

TEST(ImageTableTest, AsJsonEveryImageIsAnObjectOfItsOwnLine) {
  TableColumns wanted;
  wanted.json = true;
  const auto table = make_image_table(task(config::TaskKind::multiclass), {"a \"x\"", "b"}, 2, wanted);
  const float scores[] = {1000, 0};
  table->add(image("1,2.png", -1, scores));
  table->add(image("\xff.png", -1, scores));
  EXPECT_EQ(table->text(),
            "{\"path\": \"1,2.png\", \"class\": \"a \\\"x\\\"\", \"probability\": 1}\n"
            "{\"path\": \"\xef\xbf\xbd.png\", \"class\": \"a \\\"x\\\"\", \"probability\": 1}\n");
}

TEST(ImageTableTest, ABinaryClassIsDecidedByTheThreshold) {
  engine::TaskSpec spec = task(config::TaskKind::binary);
  spec.options.threshold = {0.75};  // a logit of 1.0986
  const auto table = make_image_table(spec, {"real", "fake"}, 1, TableColumns{true, true});
  const float low[] = {1.0F}, high[] = {1.25F}, low_probability[] = {0.7310586F}, high_probability[] = {0.7772999F};
  table->add(image("1.png", 1, low, low_probability));
  table->add(image("2.png", 0, high, high_probability));
  EXPECT_EQ(table->text(),
            "path,true,class,probability_fake,logit\n"
            "1.png,fake,real,0.731058598,1\n"
            "2.png,real,fake,0.777299881,1.25\n");
}

TEST(ImageTableTest, NumbersStandPerTargetWithTheirTruth) {
  const auto table =
      make_image_table(task(config::TaskKind::head_pose), {"yaw", "pitch", "roll"}, 3, TableColumns{true, false});
  const float outputs[] = {1, 2, 3}, angles[] = {45, -0.5F, 0}, truth[] = {40, 0, 1};
  ImageResult result = image("1.png", -1, outputs, angles);
  result.targets = truth;
  table->add(result);
  EXPECT_EQ(table->text(), "path,true_yaw,true_pitch,true_roll,yaw,pitch,roll\n1.png,40,0,1,45,-0.5,0\n");
}

TEST(TableTest, CountsAreWholeAndUndefinedFiguresAreEmpty) {
  const engine::ResultTable table{"t", "class", {"images", "f1"}, 1, {{"a,b", {3, 0.5}}, {"c", {0, std::nan("")}}}};
  EXPECT_EQ(table_csv(table), "class,images,f1\n\"a,b\",3,0.500000\nc,0,\n");
}

}  // namespace
}  // namespace stoker::train
