// SPDX-License-Identifier: Apache-2.0
#include "app/report_csv.h"

#include <gtest/gtest.h>

namespace stoker::app {
namespace {

TEST(CsvTest, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
}

TEST(PredictionTableTest, NamesTheLargestScoreAndItsSoftmax) {
  PredictionTable table({"a", "b,c"}, /*truth=*/false, /*logits=*/false);
  const float first[] = {1, 0}, second[] = {-100, 100};
  table.add("x/1.png", -1, first);
  table.add("x,2.png", -1, second);
  EXPECT_EQ(table.text(), "path,class,probability\nx/1.png,a,0.731058579\n\"x,2.png\",\"b,c\",1\n");
}

TEST(PredictionTableTest, AddsTruthAndScoresWhenAsked) {
  PredictionTable table({"a", "b"}, /*truth=*/true, /*logits=*/true);
  const float scores[] = {0.5F, 0.5F};
  table.add("1.png", 1, scores);
  EXPECT_EQ(table.text(), "path,true,class,probability,a,b\n1.png,b,a,0.5,0.5,0.5\n");
}

TEST(PerClassTest, EqualsScikitLearn) {
  // precision_recall_fscore_support([0]*5 + [1]*3 + [2]*2, [0,0,0,1,1, 1,1,0, 0,1], zero_division=0)
  const ConfusionMatrix counts = {{3, 2, 0}, {1, 2, 0}, {1, 1, 0}};
  EXPECT_EQ(per_class_csv(counts, {"a", "b", "c"}),
            "class,images,predicted,precision,recall,f1\n"
            "a,5,5,0.600000,0.600000,0.600000\n"
            "b,3,5,0.400000,0.666667,0.500000\n"
            "c,2,0,0.000000,0.000000,0.000000\n"
            "macro average,10,10,0.333333,0.422222,0.366667\n");
}

TEST(ConfusionTest, RowsAreTruthAndColumnsPredictions) {
  EXPECT_EQ(confusion_csv({{3, 2}, {1, 4}}, {"a", "b,c"}), "true\\predicted,a,\"b,c\"\na,3,2\n\"b,c\",1,4\n");
}

}  // namespace
}  // namespace stoker::app
