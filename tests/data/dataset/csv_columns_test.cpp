// SPDX-License-Identifier: Apache-2.0
// CSV files as others write them: other columns, other delimiters, lists of tags; and shares of each class.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "data/dataset/held_out.h"
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

TEST_F(StratifyTest, AFileThatIsListedTwiceIsOnOneSideInAnySpelling) {
  std::string list = "path,label\n";
  const std::string spellings[] = {"train/many/", "./train/many/", "train//many/", "train/../train/many/",
                                   folder_ / "train/many/"};
  for (int i = 0; i < 40; ++i) {
    for (const std::string& spelling : spellings) {
      list += spelling + std::to_string(i) + ".png," + (i % 2 == 0 ? "even" : "odd") + "\n";
    }
  }
  folder_.write("list.csv", list);
  options_.data_dir = folder_ / "list.csv";
  const auto files_of = [](const Source& source) {
    std::set<std::string> files;
    for (int64_t i = 0; i < source.size(); ++i) {
      files.insert(std::filesystem::path(source.name(i)).filename().string());
    }
    return files;
  };
  for (const std::string split : {"hash", "stratify", "fold:1/5", "fold:4/5"}) {
    options_.stratify = split == "stratify";
    options_.val_fraction = split[0] == 'f' ? 0 : 0.21;
    options_.val_split = split[0] == 'f' ? std::optional<std::string>(split) : std::nullopt;
    const Datasets data = open_datasets(options_);
    const std::set<std::string> train = files_of(*data.train), val = files_of(*data.val);
    EXPECT_EQ(data.train->size() + data.val->size(), 200) << split;
    EXPECT_EQ(train.size() + val.size(), 40u) << split << ": a file is on both sides";
    EXPECT_FALSE(train.empty() || val.empty()) << split;
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

/// Samples with a class and a name each, and nothing to read.
class NamedSamples : public LeafSource {
 public:
  NamedSamples(std::vector<int64_t> labels, int64_t classes) : labels_(std::move(labels)) {
    for (int64_t k = 0; k < classes; ++k) class_names_.push_back(std::to_string(k));
    fingerprint_ = "named";
  }
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  std::string name(int64_t index) const override { return relative_name(index); }
  std::string relative_name(int64_t index) const override { return std::to_string(index) + ".png"; }
  std::string read(int64_t, std::vector<uint8_t>&, SampleContent&) const override { return "nothing to read"; }

 private:
  std::vector<int64_t> labels_;
};

int64_t number_in(const Source& source, int64_t index) { return std::stoll(source.relative_name(index)); }

TEST(GroupedSplitTest, KeepsEachGroupOnOneSideInAThousandCases) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t limit) { return static_cast<int64_t>(random() % limit); };
    const int64_t classes = 1 + below(5), group_count = 2 + below(30), samples = group_count + below(200);
    const double fraction = 0.05 + 0.009 * static_cast<double>(below(100));
    std::vector<int64_t> labels;
    Names groups;
    for (int64_t i = 0; i < samples; ++i) {
      labels.push_back(below(static_cast<uint64_t>(classes)));
      const int64_t group = i < group_count ? i : below(static_cast<uint64_t>(group_count));
      groups.push_back(below(20) == 0 ? "" : "g" + std::to_string(seed) + "-" + std::to_string(group));
    }
    const auto whole = std::make_shared<NamedSamples>(labels, classes);
    const auto [kept, held] = hold_out_groups(whole, groups, fraction);
    ASSERT_EQ(kept->size() + held->size(), samples);
    std::map<std::string, std::set<int64_t>> classes_of;   // of a group
    std::map<int64_t, std::set<std::string>> groups_with;  // of a class
    for (int64_t i = 0; i < samples; ++i) {
      const std::string& name = groups[static_cast<size_t>(i)];
      const std::string group = name.empty() ? "alone " + std::to_string(i) : name;
      classes_of[group].insert(labels[static_cast<size_t>(i)]);
      groups_with[labels[static_cast<size_t>(i)]].insert(group);
    }
    std::set<std::string> kept_groups, held_groups;
    std::set<int64_t> held_classes, kept_classes;
    for (int64_t i = 0; i < kept->size(); ++i) {
      kept_groups.insert(groups[static_cast<size_t>(number_in(*kept, i))]);
      kept_classes.insert(kept->label(i));
    }
    for (int64_t i = 0; i < held->size(); ++i) {
      const std::string& group = groups[static_cast<size_t>(number_in(*held, i))];
      EXPECT_TRUE(group.empty() || kept_groups.count(group) == 0) << group << " is on both sides";
      held_classes.insert(held->label(i));
    }
    ASSERT_GT(held->size(), 0) << seed;
    ASSERT_GT(kept->size(), 0) << seed;
    const bool some_group_can_go = std::any_of(classes_of.begin(), classes_of.end(), [&](const auto& of) {
      return std::all_of(of.second.begin(), of.second.end(), [&](int64_t k) { return groups_with[k].size() > 1; });
    });
    EXPECT_TRUE(!some_group_can_go || kept_classes.size() == groups_with.size()) << "all are trained on, seed " << seed;
    const auto again = hold_out_groups(whole, groups, fraction).second;
    EXPECT_EQ(again->fingerprint(), held->fingerprint());
  }
}

TEST(GroupedSplitTest, FoldsKeepEachGroupOnOneSideInAThousandCases) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t limit) { return static_cast<int64_t>(random() % limit); };
    const int64_t classes = 1 + below(5), folds = 2 + below(6), group_count = folds + below(30);
    std::vector<int64_t> labels;
    Names groups;
    for (int64_t i = 0; i < group_count + below(200); ++i) {
      labels.push_back(below(static_cast<uint64_t>(classes)));
      const int64_t group = i < group_count ? i : below(static_cast<uint64_t>(group_count));
      groups.push_back(i >= group_count && below(20) == 0 ? "" : "g" + std::to_string(group));
    }
    const auto whole = std::make_shared<NamedSamples>(labels, classes);
    std::map<std::string, int64_t> fold_of_group;
    std::vector<int64_t> seen(labels.size());
    for (int64_t fold = 0; fold < folds; ++fold) {
      const auto [kept, held] = hold_out_fold_of_groups(whole, groups, fold, folds);
      ASSERT_EQ(kept->size() + held->size(), whole->size());
      ASSERT_GT(held->size(), 0) << "seed " << seed << ", fold " << fold;
      for (int64_t i = 0; i < held->size(); ++i) {
        const auto sample = static_cast<size_t>(number_in(*held, i));
        ++seen[sample];
        if (groups[sample].empty()) continue;
        const auto [before, is_new] = fold_of_group.emplace(groups[sample], fold);
        EXPECT_TRUE(is_new || before->second == fold) << groups[sample] << " is on both sides, seed " << seed;
      }
    }
    EXPECT_EQ(seen, std::vector<int64_t>(labels.size(), 1)) << "each sample is in one fold, seed " << seed;
  }
}

TEST(GroupedSplitTest, FoldsHaveEqualSharesOfEachClassWhereGroupsAreSmall) {
  std::vector<int64_t> labels;
  Names groups;
  for (int64_t i = 0; i < 3000; ++i) {
    groups.push_back("patient " + std::to_string(i / (1 + i % 7)));
    labels.push_back(i / 30 % 10 == 0 ? 1 : 0);
  }
  for (int64_t fold = 0; fold < 5; ++fold) {
    const auto held = hold_out_fold_of_groups(std::make_shared<NamedSamples>(labels, 2), groups, fold, 5).second;
    int64_t rare = 0;
    for (int64_t i = 0; i < held->size(); ++i) rare += held->label(i);
    EXPECT_NEAR(static_cast<double>(held->size()), 600, 6) << fold;
    EXPECT_NEAR(static_cast<double>(rare), 60, 3) << fold;
  }
}

TEST(GroupedSplitTest, HoldsTheShareOfEachClassOutWhereGroupsAreSmall) {
  std::vector<int64_t> labels;
  Names groups;
  for (int64_t i = 0; i < 4000; ++i) {
    groups.push_back("patient " + std::to_string(i / 4));
    labels.push_back(i / 4 % 10 == 0 ? 1 : 0);  // a tenth of the patients
  }
  const auto held = hold_out_groups(std::make_shared<NamedSamples>(labels, 2), groups, 0.2).second;
  int64_t rare = 0;
  for (int64_t i = 0; i < held->size(); ++i) rare += held->label(i);
  EXPECT_NEAR(static_cast<double>(held->size()), 800, 8);
  EXPECT_NEAR(static_cast<double>(rare), 80, 8);
}

TEST(GroupedSplitTest, NoClassStandsInForAnother) {
  std::vector<int64_t> labels;
  Names groups;
  for (int64_t i = 0; i < 120; ++i) {
    groups.push_back("P" + std::to_string(i / 6));
    labels.push_back(i / 6 % 2);
  }
  const auto held = hold_out_groups(std::make_shared<NamedSamples>(labels, 2), groups, 0.2).second;
  EXPECT_EQ(held->size(), 24) << "two groups of each class";
}

TEST(FractionTest, IsOfEachClassAndLiesWithinALargerOne) {
  std::vector<int64_t> labels(1000);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i < 900 ? 0 : i < 998 ? 1 : 2;
  const auto whole = std::make_shared<NamedSamples>(labels, 3);
  EXPECT_EQ(part_of_each_class(whole, 1), whole) << "all of it, with the same bits";
  std::set<int64_t> smaller;
  const std::pair<double, std::vector<int64_t>> kParts[] = {
      {0.001, {1, 1, 1}}, {0.1, {90, 10, 1}}, {0.5, {450, 49, 1}}, {500, {500, 98, 2}}, {5000, {900, 98, 2}}};
  for (const auto& [fraction, wanted] : kParts) {
    const auto part = part_of_each_class(whole, fraction);
    std::vector<int64_t> counts(3);
    std::set<int64_t> members;
    for (int64_t i = 0; i < part->size(); ++i) {
      ++counts[static_cast<size_t>(part->label(i))];
      members.insert(number_in(*part, i));
    }
    EXPECT_EQ(counts, wanted) << fraction;
    EXPECT_TRUE(std::includes(members.begin(), members.end(), smaller.begin(), smaller.end())) << fraction;
    smaller = members;
  }
}

class GroupTest : public CsvFiles {
 protected:
  GroupTest() {
    for (int i = 0; i < 40; ++i) {
      const std::string name = "p" + std::to_string(i / 4) + "/" + std::to_string(i) + ".png";
      folder_.write(name, png_of({static_cast<uint8_t>(i), 2, 3}, 1, 1, 3));
      list_ += name + "," + (i % 2 == 0 ? "cat" : "dog") + ",s" + std::to_string(i % 8) + "\n";
      numbers_ += name + "," + std::to_string(i) + ",s" + std::to_string(i % 8) + "\n";
    }
    options_.val_fraction = 0.25;
  }
  /// The number of groups on both sides.
  static int64_t on_both_sides(const Datasets& data, const std::function<std::string(const std::string&)>& group_of) {
    std::set<std::string> kept, both;
    for (int64_t i = 0; i < data.train->size(); ++i) kept.insert(group_of(data.train->relative_name(i)));
    for (int64_t i = 0; i < data.val->size(); ++i) {
      const std::string group = group_of(data.val->relative_name(i));
      if (kept.count(group) > 0) both.insert(group);
    }
    return static_cast<int64_t>(both.size());
  }
  static std::string folder_of(const std::string& name) { return name.substr(0, name.find('/')); }
  static std::string scene_of(const std::string& name) {
    return std::to_string(std::stoi(name.substr(name.find('/') + 1)) % 8);
  }

  std::string list_ = "path,label,scene\n", numbers_ = "path,age,scene\n";
};

TEST_F(GroupTest, AColumnOrAPatternNamesThem) {
  options_.group = "scene";
  Datasets data = open(list_, "path,label\na.png,cat\n");
  EXPECT_EQ(on_both_sides(data, scene_of), 0);
  EXPECT_EQ(data.val->size(), 10);
  EXPECT_EQ(open_split(options_, "val")->fingerprint(), open_split(options_, "val")->fingerprint());
  options_.group = "^(p[0-9]+)/";
  data = open(list_, "path,label\na.png,cat\n");
  EXPECT_EQ(on_both_sides(data, folder_of), 0);
  EXPECT_GT(on_both_sides(data, scene_of), 0);
  options_.group = "^p[0-9]+";
  EXPECT_EQ(open(list_, "").val->fingerprint(), data.val->fingerprint()) << "the whole match";
}

TEST_F(GroupTest, TheirColumnIsNoTarget) {
  options_.task = config::TaskKind::regression;
  options_.group = "scene";
  const Datasets data = open(numbers_, "");
  EXPECT_EQ(data.train->target_names(), Names{"age"});
  EXPECT_EQ(on_both_sides(data, scene_of), 0);
}

TEST_F(GroupTest, WhatNamesNothingIsAnError) {
  for (const char* const wrong : {"patient", "[", "^nowhere/(.*)"}) {
    options_.group = wrong;
    const core::Error error = error_of([&] { open(list_, ""); });
    EXPECT_EQ(error.kind(), core::ErrorKind::config) << wrong;
    EXPECT_NE(std::string(error.what()).find(wrong), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("column"), std::string::npos);
  }
}

/// A picture with blobs that another seed places otherwise.
Bytes scene(int seed, int side, int shift) {
  Bytes pixels;
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<double> numbers(24);
  for (double& number : numbers) number = static_cast<double>(random()) / 4294967296.0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      double value = 60;
      for (size_t k = 0; k < 8; ++k) {
        const double dx = (x + 0.5) / side - numbers[3 * k], dy = (y + 0.5) / side - numbers[3 * k + 1];
        value += (numbers[3 * k + 2] > 0.5 ? 120 : -50) * std::exp(-(dx * dx + dy * dy) * 60);
      }
      const double shown = std::clamp(value + shift, 0.0, 255.0);
      for (int c = 0; c < 3; ++c) pixels.push_back(static_cast<uint8_t>(shown));
    }
  }
  return pixels;
}

TEST_F(GroupTest, NearDuplicatesStayTogether) {
  std::string list = "path,label\n";
  for (int i = 0; i < 30; ++i) {
    const std::string name = "q" + std::to_string(i);
    folder_.write(name + "/1.png", png_of(scene(i, 64, 0), 64, 64, 3));
    folder_.write(name + "/2.png", png_of(scene(i, 64, 0), 64, 64, 3));
    folder_.write(name + "/3.jpg", jpeg_of(scene(i, 96, 6), 96, 96));
    for (const char* const file : {"1.png", "2.png", "3.jpg"}) {
      list += name + "/" + file + "," + (i % 2 == 0 ? "cat" : "dog") + "\n";
    }
  }
  Datasets data = open(list, "");
  ASSERT_GT(on_both_sides(data, folder_of), 5) << "without groups they are torn apart";
  options_.group = config::kNearDuplicates;
  data = open(list, "");
  EXPECT_EQ(on_both_sides(data, folder_of), 0);
  EXPECT_GT(data.val->size(), 10);
  options_.val_fraction = 0;
  for (const char* const fold : {"fold:1/3", "fold:2/3", "fold:3/3"}) {
    options_.val_split = fold;
    data = open(list, "");
    EXPECT_EQ(on_both_sides(data, folder_of), 0) << fold;
    EXPECT_EQ(data.val->size(), 30) << fold;
  }
}

}  // namespace
}  // namespace stoker::data
