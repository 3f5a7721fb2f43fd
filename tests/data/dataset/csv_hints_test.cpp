// SPDX-License-Identifier: Apache-2.0
// CSV lists whose owners forgot an option: what is refused with its name, and what is read nevertheless.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/dataset/csv_manifest.h"
#include "tests/data/dataset/csv_files.h"

namespace stoker::data {
namespace {

using Names = std::vector<std::string>;

class CsvHintsTest : public CsvFiles {
 protected:
  CsvHintsTest() : CsvFiles({"a.png", "b.png", "c.png", "d.png", "e.png"}) {}

  /// Rows of a.png, b.png and so on.
  static std::string list(const std::string& header, const Names& rows) {
    std::string text = header + "\n";
    for (size_t i = 0; i < rows.size(); ++i) {
      text += std::string(1, static_cast<char>('a' + i)) + ".png," + rows[i] + "\n";
    }
    return text;
  }

  /// Message and hint.
  std::string problem(const std::string& train) {
    const core::Error error = error_of([&] { open(train, train); });
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    return std::string(error.what()) + "; " + error.hint();
  }
};

TEST_F(CsvHintsTest, TagsInAColumnOfAnyNameAreNoClasses) {
  for (const Names& rows : {Names{"sea;sky", "dog", "dog;sea", "sky", "sea;dog;sky"},
                            Names{"sea|sky", "dog", "dog|sea", "sky", "sea|dog|sky"},
                            Names{"\"sea, sky\"", "dog", "\"dog, sea\"", "sky", "\"sea, dog, sky\""},
                            Names{"sea sky", "dog", "dog sea", "sky", "sea"}}) {
    for (const char* const header : {"path,keywords", "path,labels", "path,label"}) {
      EXPECT_NE(problem(list(header, rows)).find("holds lists of tags: --task multilabel"), std::string::npos)
          << header << " " << rows[0];
    }
  }
  options_.csv_label = "keywords";
  const std::string text = list("path,keywords", {"sea;sky", "dog", "dog;sea", "sky", "sea;dog;sky"});
  EXPECT_EQ(open(text, text).train->num_classes(), 5) << "as they are, on request";
}

TEST_F(CsvHintsTest, NamesOfClassesMayHoldBlanksAndSeparators) {
  for (const Names& rows : {Names{"golden retriever", "labrador retriever", "flat coated retriever"},
                            Names{"Animal|Dog", "Animal|Cat", "Plant|Tree"}, Names{"\"Smith, A\"", "\"Smith, B\""}}) {
    const std::string text = list("path,kind", rows);
    EXPECT_EQ(open(text, text).train->num_classes(), static_cast<int64_t>(rows.size())) << rows[0];
  }
  EXPECT_FALSE(look_like_tags({"red cube", "red ball", "blue cube", "blue ball"}, /*with_blanks=*/true));
  EXPECT_TRUE(look_like_tags({"haze primary", "clear primary", "haze", "clear primary water", "haze water", "clear",
                              "haze primary water", "primary water"},
                             /*with_blanks=*/true));
}

TEST_F(CsvHintsTest, AnEmptyLabelHasAHintAtMultilabel) {
  const std::string text = problem(list("path,label", {"dog", "", "cat"}));
  EXPECT_NE(text.find("train.csv:3: the label is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("--task multilabel"), std::string::npos) << text;
}

TEST_F(CsvHintsTest, FlagsWithBlankCellsAreLabelsOrAClass) {
  const std::string several = problem(list("path,cat,dog,fox", {"1,,", "1,1,", ",,1", ",1,"}));
  EXPECT_NE(several.find("'cat', 'dog' and 'fox' hold several labels per row"), std::string::npos) << several;
  EXPECT_NE(several.find("--task multilabel"), std::string::npos) << several;
  const std::string one = list("path,cat,dog,fox", {"1,,", ",1,", ",,1", ",1,"});
  const Datasets data = open(one, one);
  EXPECT_EQ(data.train->class_names(), (Names{"cat", "dog", "fox"}));
  EXPECT_EQ(data.train->label(3), 1);
}

TEST_F(CsvHintsTest, NanAmongTagsIsNoTag) {
  options_.task = config::TaskKind::multilabel;
  const std::string text = list("path,tags", {"sea;dog", "NaN", "nan;dog", "\"['nan', 'sea']\"", ""});
  const Datasets data = open(text, text);
  EXPECT_EQ(data.train->target_names(), (Names{"dog", "sea"}));
  EXPECT_EQ(targets(*data.train, 1), (std::vector<float>{0, 0}));
  EXPECT_EQ(targets(*data.train, 2), (std::vector<float>{1, 0}));
  EXPECT_EQ(targets(*data.train, 3), (std::vector<float>{0, 1}));
}

TEST_F(CsvHintsTest, AColumnThatCountsTheRowsHoldsNoClasses) {
  const std::string two = problem(list("path,idx,species", {"0,dog", "1,cat", "2,dog", "3,cat"}));
  EXPECT_NE(two.find("'idx' counts the rows"), std::string::npos) << two;
  EXPECT_NE(two.find("--csv-label 'species'"), std::string::npos) << two;
  const std::string one = problem(list("path,idx", {"1", "2", "3", "4"}));
  EXPECT_NE(one.find("--csv-label idx"), std::string::npos) << one;
  const std::string classes = list("path,kind", {"1", "0", "1", "2"});
  EXPECT_EQ(open(classes, classes).train->num_classes(), 3);
}

TEST_F(CsvHintsTest, AColumnOfSplitsIsNeitherALabelNorATarget) {
  const std::string text = list("path,species,split", {"dog,train", "cat,train", "dog,val"});
  const Datasets data = open(text, text);
  EXPECT_EQ(data.train->class_names(), (Names{"cat", "dog"}));
  std::string notes;
  for (const std::string& note : data.notes) notes += note + "\n";
  EXPECT_NE(notes.find("column 'split' is not used"), std::string::npos) << notes;
  const std::string phases = list("path,phase", {"early", "late", "early"});
  EXPECT_EQ(open(phases, phases).train->class_names(), (Names{"early", "late"})) << "no words for splits";
  options_.task = config::TaskKind::multilabel;
  const std::string flags = list("path,cat,dog,split", {"1,0,train", "0,1,train", "1,1,val"});
  EXPECT_EQ(open(flags, flags).train->target_names(), (Names{"cat", "dog"}));
}

TEST_F(CsvHintsTest, StratifyIsForOneClassPerImage) {
  options_.task = config::TaskKind::multilabel;
  options_.stratify = true;
  options_.val_fraction = 0.4;
  Names rows;
  for (int i = 0; i < 20; ++i) rows.emplace_back(i % 2 == 0 ? "sea;dog" : "sea");
  folder_.write("train.csv", list("path,tags", rows));
  std::string notes;
  for (const std::string& note : open_datasets(options_).notes) notes += note + "\n";
  EXPECT_NE(notes.find("--stratify has no effect"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("of each class"), std::string::npos) << notes;
}

}  // namespace
}  // namespace stoker::data
