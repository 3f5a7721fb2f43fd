// SPDX-License-Identifier: Apache-2.0
// CSV files as others write them: other columns, other delimiters, lists of tags; and shares of each class.
#include <gtest/gtest.h>

#include <set>

#include "tests/data/dataset/csv_files.h"

namespace stoker::data {
namespace {

using Names = std::vector<std::string>;

class CsvColumnsTest : public CsvFiles {
 protected:
  std::string problem(const std::string& train, const std::string& val) {
    return error_of([&] { open(train, val); }).what();
  }
};

TEST_F(CsvColumnsTest, OptionsNameTheColumns) {
  options_.csv_path = "file name";
  options_.csv_label = "kind";
  const Datasets data = open("id,file name,kind\n1,a.png,dog\n2,b.png,cat\n", "file name,kind\nc.png,dog\n");
  EXPECT_EQ(data.train->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(data.train->label(0), 1);
  EXPECT_EQ(data.val->label(0), 1);
}

TEST_F(CsvColumnsTest, OptionsChooseWhichNumbersAreLearned) {
  options_.task = config::TaskKind::regression;
  options_.csv_label = "y,x";
  const Datasets data = open("x,path,y,note\n1,a.png,2,left out\n", "path,y,x\nb.png,3,4\n");
  EXPECT_EQ(data.train->target_names(), (Names{"y", "x"}));
  EXPECT_EQ(targets(*data.train, 0), (std::vector<float>{2, 1}));
}

TEST_F(CsvColumnsTest, AMissingColumnIsAnErrorWithTheOptionThatNamesIt) {
  options_.csv_label = "kind";
  const core::Error error = error_of([&] { open("path,label\na.png,0\n", "path,label\nb.png,0\n"); });
  EXPECT_NE(std::string(error.what()).find("no column 'kind'; it reads 'path' and 'label'"), std::string::npos);
  EXPECT_NE(error.hint().find("--csv-label"), std::string::npos) << error.hint();
}

TEST_F(CsvColumnsTest, TheDelimiterIsFoundInTheFirstLineUnlessItIsGiven) {
  EXPECT_EQ(open("path;label\na.png;dog\nb.png;cat\n", "path\tlabel\nc.png\tdog\n").val->label(0), 1);
  options_.csv_delimiter = config::CsvDelimiter::comma;
  EXPECT_NE(problem("path;label\na.png;0\n", "path,label\nb.png,0\n").find("'path;label'"), std::string::npos);
}

TEST_F(CsvColumnsTest, AFileByItselfIsTheTrainingSplitWhateverItIsCalled) {
  folder_.write("labels.csv", "path,label\na.png,dog\nb.png,cat\n");
  folder_.write("val.csv", "path,label\nc.png,dog\n");
  options_.data_dir = folder_ / "labels.csv";
  const Datasets data = open_datasets(options_);
  EXPECT_EQ(data.train->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.val->label(0), 1) << "val.csv beside it";
  EXPECT_EQ(open_split(options_, "train")->size(), 2) << "as eval --split train opens it";
}

TEST_F(CsvColumnsTest, AFolderWhoseFilesAreNoSplitsIsAnErrorWithTheOnesThatMayBeNamed) {
  folder_.write("mine.csv", "path,label\na.png,0\n");
  const core::Error error = error_of([&] { open_datasets(options_); });
  EXPECT_NE(error.hint().find("it holds mine.csv: to train on one, --data-dir"), std::string::npos) << error.hint();
}

TEST_F(CsvColumnsTest, ADecimalCommaIsNamed) {
  options_.task = config::TaskKind::regression;
  const core::Error error = error_of([&] { open("path;x\na.png;0,25\n", "path;x\nb.png;1\n"); });
  EXPECT_NE(error.hint().find("decimal point"), std::string::npos) << error.hint();
}

TEST_F(CsvColumnsTest, AColumnOfTagsIsALabelPerTag) {
  options_.task = config::TaskKind::multilabel;
  const Datasets data = open("path,tags\na.png,sea;hot dog\nb.png,hot dog\nc.png,\n", "path,tags\na.png,hot dog\n");
  EXPECT_EQ(data.train->target_names(), (Names{"hot dog", "sea"}));
  EXPECT_EQ(targets(*data.train, 0), (std::vector<float>{1, 1}));
  EXPECT_EQ(targets(*data.train, 1), (std::vector<float>{1, 0}));
  EXPECT_EQ(targets(*data.train, 2), (std::vector<float>{0, 0})) << "no tag, no label";
  EXPECT_EQ(targets(*data.val, 0), (std::vector<float>{1, 0})) << "a whole name, in a file without the separator";
}

TEST_F(CsvColumnsTest, TagsMayBeListsAsPythonWritesThem) {
  options_.task = config::TaskKind::multilabel;
  for (const char* const list :
       {"['sea, deep', \"\"dog's\"\"]", "('sea, deep', \"\"dog's\"\")", "{'sea, deep', \"\"dog's\"\"}",
        "['sea, deep'  \"\"dog's\"\"]", "['sea, deep', 'dog\\'s']"}) {
    const std::string text = std::string("path,tags\na.png,\"") + list + "\"\nb.png,['sun']\nc.png,[]\n";
    const Datasets data = open(text, "path,tags\nc.png,['sun']\n");
    EXPECT_EQ(data.train->target_names(), (Names{"dog's", "sea, deep", "sun"})) << list;
    EXPECT_EQ(targets(*data.train, 0), (std::vector<float>{1, 1, 0})) << list;
    EXPECT_EQ(targets(*data.train, 2), (std::vector<float>{0, 0, 0})) << list;
  }
}

TEST_F(CsvColumnsTest, LabelsMayBeTruthsAndMissingOnesAreNoted) {
  options_.task = config::TaskKind::multilabel;
  const Datasets data = open("Unnamed: 0,path,wet,cold\n0,a.png,True,nan\n1,b.png,false,1.0\n2,c.png,1,NA\n",
                             "path,wet,cold\na.png,TRUE,0\n");
  EXPECT_EQ(data.train->target_names(), (Names{"wet", "cold"}));
  EXPECT_EQ(targets(*data.train, 0), (std::vector<float>{1, 0}));
  EXPECT_EQ(targets(*data.train, 1), (std::vector<float>{0, 1}));
  std::string notes;
  for (const std::string& note : data.notes) notes += note + "\n";
  EXPECT_NE(notes.find("column 'Unnamed: 0' counts the rows and is left out"), std::string::npos) << notes;
  EXPECT_NE(notes.find("cells without a number, taken for 0: 2"), std::string::npos) << notes;
  const core::Error error = error_of([&] { open("path,wet,cold\na.png,-1,1\n", "path,wet,cold\na.png,1,0\n"); });
  EXPECT_NE(error.hint().find("write 0 for -1"), std::string::npos) << error.hint();
}

TEST_F(CsvColumnsTest, TagsMayStandBetweenBlanksAsInListsOfPlanetImages) {
  options_.task = config::TaskKind::multilabel;
  const Datasets data = open("path,tags\na.png,haze primary\nb.png,clear primary\n", "path,tags\nc.png,primary haze\n");
  EXPECT_EQ(data.train->target_names(), (Names{"clear", "haze", "primary"}));
  EXPECT_EQ(targets(*data.val, 0), (std::vector<float>{0, 1, 1}));
}

TEST_F(CsvColumnsTest, ASplitWithoutATagIsStillOneOfTags) {
  options_.task = config::TaskKind::multilabel;
  const Datasets data = open("path,tags\na.png,sea;sun\n", "path,tags\nc.png,\n");
  EXPECT_EQ(targets(*data.val, 0), (std::vector<float>{0, 0}));
}

TEST_F(CsvColumnsTest, ATagThatTrainingLacksIsAnErrorWithTheNearestName) {
  options_.task = config::TaskKind::multilabel;
  const std::string message = problem("path,tags\na.png,haze primary\n", "path,tags\nc.png,hase\n");
  EXPECT_NE(message.find("tag 'hase' does not occur in the training split; did you mean 'haze'?"), std::string::npos)
      << message;
}

TEST_F(CsvColumnsTest, AColumnOfZerosAndOnesIsALabelAndNoList) {
  options_.task = config::TaskKind::multilabel;
  EXPECT_EQ(open("path,wet\na.png,0\nb.png,1\n", "path,wet\nc.png,1\n").train->target_names(), Names{"wet"});
}

class StratifyTest : public testing::Test {
 protected:
  StratifyTest() {
    write("many", 40);
    write("few", 5);
    write("pair", 2);
    write("one", 1);
    options_.data_dir = folder_.path();
    options_.val_fraction = 0.2;
    options_.stratify = true;
  }
  void write(const std::string& name, int count) const {
    for (int i = 0; i < count; ++i) {
      folder_.write("train/" + name + "/" + std::to_string(i) + ".png", png_of({1, 2, 3}, 1, 1, 3));
    }
  }
  static std::vector<int64_t> counts(const Source& source) {
    std::vector<int64_t> counts(static_cast<size_t>(source.num_classes()));
    for (int64_t i = 0; i < source.size(); ++i) ++counts[static_cast<size_t>(source.label(i))];
    return counts;
  }

  const TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(StratifyTest, EachClassGivesItsShareAndKeepsOne) {
  const Datasets data = open_datasets(options_);
  EXPECT_EQ(data.train->class_names(), (Names{"few", "many", "one", "pair"}));
  EXPECT_EQ(counts(*data.val), (std::vector<int64_t>{1, 8, 0, 1}));
  EXPECT_EQ(counts(*data.train), (std::vector<int64_t>{4, 32, 1, 1}));
}

TEST_F(StratifyTest, EachImageIsInOneFoldAndEachClassIsSpreadOverAll) {
  options_.stratify = false;
  options_.val_fraction = 0;
  std::vector<std::string> held_out;
  for (int fold = 1; fold <= 5; ++fold) {
    options_.val_split = "fold:" + std::to_string(fold) + "/5";
    const Datasets data = open_datasets(options_);
    const std::vector<int64_t> val = counts(*data.val);
    EXPECT_EQ(data.train->size() + data.val->size(), 48);
    EXPECT_TRUE(data.val->size() == 9 || data.val->size() == 10) << data.val->size();
    EXPECT_EQ(val[0], 1);
    EXPECT_EQ(val[1], 8);
    for (int64_t i = 0; i < data.val->size(); ++i) held_out.push_back(data.val->relative_name(i));
    EXPECT_EQ(open_split(options_, "val")->size(), data.val->size());
  }
  EXPECT_EQ(std::set<std::string>(held_out.begin(), held_out.end()).size(), 48u);
  for (const std::string wrong : {"fold:0/5", "fold:6/5", "fold:1/1", "fold:2", "fold:1/5x"}) {
    options_.val_split = wrong;
    EXPECT_THROW(open_datasets(options_), core::Error) << wrong;
  }
}

TEST_F(StratifyTest, ClassesWithoutAValidationImageAreNoted) {
  options_.stratify = false;
  options_.val_fraction = 0.05;
  const Datasets data = open_datasets(options_);
  bool noted = false;
  for (const std::string& note : data.notes)
    noted |= note.find("--stratify holds out some of each") != std::string::npos;
  EXPECT_TRUE(noted);
}

}  // namespace
}  // namespace stoker::data
