// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "config/config.h"
#include "config/yaml/yaml_tree.h"
#include "tests/config/command_words.h"

namespace stoker::config {
namespace {

using Lines = std::vector<std::string>;

class YamlReaderTest : public ::testing::Test {
 protected:
  Lines problems_of(const std::string& text) {
    Options options;
    Table table(options);
    Lines problems;
    read_yaml(text, "a.yaml", Origin::Kind::file, table, problems);
    return problems;
  }
  void read(const std::string& text) {
    Lines problems;
    read_yaml(text, "a.yaml", Origin::Kind::file, table_, problems);
    EXPECT_EQ(problems, Lines{});
  }

  Options options_;
  Table table_{options_};
};

TEST_F(YamlReaderTest, ReadsFlatAndGroupedKeysWithEitherSpelling) {
  read("batch_size: 16\nloader: {num-workers: 3}\noptim:\n  learning_rate: 1e-2\nmodel: resnet18\nhflip: 0\n");
  EXPECT_EQ(options_.loader.batch_size.value(), 16);
  EXPECT_EQ(options_.loader.num_workers.value(), 3);
  EXPECT_EQ(options_.optim.lr.value(), 0.01);
  EXPECT_EQ(options_.model.model, "resnet18");
  EXPECT_EQ(options_.augment.hflip.value(), 0);
  EXPECT_EQ(table_.find("lr")->origin.kind, Origin::Kind::file);
  EXPECT_EQ(table_.find("lr")->origin.detail, "a.yaml:4");
}

TEST_F(YamlReaderTest, SwitchesAreWrittenAsYamlWritesThem) {
  read("tf32: True\nchannels-last: FALSE\namp: True\n");
  EXPECT_TRUE(options_.precision.tf32.value());
  EXPECT_FALSE(options_.precision.channels_last.value());
  EXPECT_TRUE(options_.precision.amp.value());
  read("channels-last: Auto\namp: Off\n");
  EXPECT_TRUE(options_.precision.channels_last.is_auto());
  EXPECT_FALSE(options_.precision.amp.value());
  EXPECT_EQ(problems_of("tf32: 'True'\n").size(), 1u);
  EXPECT_EQ(problems_of("tf32: yes\n").size(), 1u);
}

TEST_F(YamlReaderTest, TheHomeFolderIsKnownWithoutAShell) {
  read("data-dir: ~/photos\n");
  EXPECT_EQ(options_.data.data_dir, std::string(std::getenv("HOME")) + "/photos");
}

TEST_F(YamlReaderTest, AGroupMayBearTheNameOfAnOption) {
  read("model:\n  model: resnet50\ndevice: {device: cpu}\n");
  EXPECT_EQ(options_.model.model, "resnet50");
  EXPECT_EQ(options_.device.device.value(), "cpu");
}

TEST_F(YamlReaderTest, ReadsListsIntervalsSwitchesAndWords) {
  read(
      "mean: [0.1, 0.2, 0.3]\nstd: auto\ndecay-milestones: []\nsave-every: 2000u\nmax-time: 90m\namp: true\n"
      "sched: one_cycle\nchannels-last: auto\nrun-dir: \"a # b\"\nlr: \"auto\"\ninit-from: ''\n");
  EXPECT_EQ(options_.data.mean.value(), (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_TRUE(options_.data.std.is_auto());
  EXPECT_EQ(options_.run.save_every.amount, 2000);
  EXPECT_EQ(options_.train.max_time_seconds, 5400);
  EXPECT_TRUE(options_.precision.amp.value());
  EXPECT_EQ(options_.schedule.sched.value(), ScheduleKind::one_cycle);
  EXPECT_EQ(options_.run.run_dir.value(), "a # b");
}

TEST_F(YamlReaderTest, AcceptsByteOrderMarksAndCarriageReturns) {
  read(
      "\xef\xbb\xbf"
      "epochs: 3\r\nseed: 4\r\n...\r\n");
  EXPECT_EQ(options_.train.epochs, 3);
  EXPECT_EQ(options_.train.seed, 4u);
}

TEST_F(YamlReaderTest, ListsEveryProblemWithItsLine) {
  EXPECT_EQ(
      problems_of("loader: {batch_size: 0}\nbatch-size: 4\nepochs: 1e3\nfoo: 1\nbacth-size: 4\n"),
      (Lines{"a.yaml:1: batch_size: 0 is out of range; accepted: 1 to 1048576; auto is accepted too",
             "a.yaml:2: batch-size: already set in line 1",
             "a.yaml:3: epochs: \"1e3\" is not a whole number in decimal digits; accepted: 1 to 1000000",
             "a.yaml:4: unknown option \"foo\"", "a.yaml:5: unknown option \"bacth-size\"; did you mean batch-size?"}));
}

TEST_F(YamlReaderTest, ATabThatIndentsIsNamedWithItsLine) {
  for (const char* const text : {"epochs: 3\n\tlr: 0.1\n", "train:\n\tepochs: 3\n"}) {
    EXPECT_EQ(problems_of(text), Lines{"a.yaml:2: not valid YAML: a tab indents this line; write spaces"}) << text;
  }
}

TEST_F(YamlReaderTest, AKeyInTheWrongGroupIsAnErrorWithItsGroup) {
  EXPECT_EQ(problems_of("optim: {batch-size: 4}\n"),
            Lines{"a.yaml:1: batch-size: belongs in group loader, not in optim"});
  EXPECT_EQ(problems_of("model:\n  epchs: 3\n"),
            Lines{"a.yaml:2: unknown option \"epchs\"; did you mean epochs (group train)?"});
}

TEST_F(YamlReaderTest, GroupsAndOptionsAreNotMixedUp) {
  EXPECT_EQ(problems_of("loader: 3\n"), Lines{"a.yaml:1: loader is a group: its options go below it, indented"});
  EXPECT_EQ(problems_of("lr: {x: 1}\n"), Lines{"a.yaml:1: lr: takes a single value, not a mapping"});
  EXPECT_EQ(problems_of("loadr: {batch-size: 3}\n"), Lines{"a.yaml:1: unknown option \"loadr\"; did you mean loader?"});
}

TEST_F(YamlReaderTest, OneOptionUnderTwoNamesIsADuplicate) {
  EXPECT_EQ(problems_of("lr: 1\nlearning_rate: 2\n"), Lines{"a.yaml:2: learning_rate: already set in line 1 (as lr)"});
  EXPECT_EQ(problems_of("bf16: true\namp: false\n"), Lines{"a.yaml:2: amp: already set in line 1"});
  EXPECT_EQ(problems_of("loader: {batch: 1}\nloader: {workers: 2}\n"),
            Lines{"a.yaml:2: loader: this group already stands in line 1"});
}

TEST_F(YamlReaderTest, RefusesValuesOfTheWrongType) {
  EXPECT_EQ(problems_of("lr: [1]\n"), Lines{"a.yaml:1: lr: takes a single value, not a list"});
  EXPECT_EQ(problems_of("epochs:\nseed: 1\n"), Lines{"a.yaml:1: epochs: no value given"});
  EXPECT_EQ(problems_of("run-dir: ~\n"), Lines{"a.yaml:1: run-dir: no value given"});
  EXPECT_EQ(problems_of("run-dir: ''\n"), Lines{"a.yaml:1: run-dir: no value given"});
  EXPECT_EQ(problems_of("epochs: '3'\n"), Lines{"a.yaml:1: epochs: \"3\" is in quotes, which makes it text"});
  EXPECT_EQ(problems_of("amp: 'true'\n"), Lines{"a.yaml:1: amp: \"true\" is in quotes, which makes it text"});
  EXPECT_EQ(problems_of("mean: 0.5\n"), Lines{"a.yaml:1: mean: takes a list, such as [0.5, 0.25]"});
  EXPECT_EQ(problems_of("mean: [0.5, [1]]\n"), Lines{"a.yaml:1: mean: takes a list of plain numbers"});
  EXPECT_EQ(problems_of("mean: [0.5, x]\n"),
            Lines{"a.yaml:1: mean: item 2: \"x\" is not a decimal number; accepted: any number"});
}

TEST_F(YamlReaderTest, DevicesAreANumberOrAList) {
  const std::vector<std::pair<std::string, std::string>> written = {
      {"4", "4"}, {"[0, 2]", "0,2"}, {"[2]", "2,"}, {"0,2", "0,2"}, {"\"0,2\"", "0,2"}};
  for (const auto& [value, text] : written) {
    read("devices: " + value + "\n");
    EXPECT_EQ(table_.find("devices")->render(), text) << value;
  }
}

TEST_F(YamlReaderTest, RefusesNumbersThatYamlReadersDisagreeAbout) {
  for (const char* value :
       {"010", "0x10", "0o10", "1_000", "1:30", "yes", "on", "off", ".nan", ".inf", "+3", "1e400"}) {
    EXPECT_EQ(problems_of(std::string("epochs: ") + value + "\n").size(), 1u) << value;
    EXPECT_EQ(problems_of(std::string("lr: ") + value + "\n").size(), 1u) << value;
    EXPECT_EQ(problems_of(std::string("tf32: ") + value + "\n").size(), 1u) << value;
  }
}

TEST_F(YamlReaderTest, RefusesAnchorsAliasesMergeKeysAndTags) {
  EXPECT_EQ(problems_of("epochs: &a 3\nseed: *a\n"),
            (Lines{"a.yaml:1: anchors (&name) are not supported; write the value out",
                   "a.yaml:2: aliases (*name) are not supported; write the value out"}));
  EXPECT_EQ(problems_of("<<: {epochs: 3}\n"),
            Lines{"a.yaml:1: merge keys (<<) are not supported; give several files with -c instead"});
  EXPECT_EQ(problems_of("epochs: !!int 3\n"), Lines{"a.yaml:1: tags (\"tag:yaml.org,2002:int\") are not supported"});
}

TEST_F(YamlReaderTest, SelfReferenceAndExponentialAliasesNeverExpand) {
  EXPECT_EQ(problems_of("lr: &x [*x]\n").size(), 3u);
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  EXPECT_GT(problems_of(bomb).size(), 40u);
}

TEST_F(YamlReaderTest, RefusesEverythingButOneMappingPerFile) {
  EXPECT_EQ(problems_of(""), Lines{"a.yaml:1: is empty; it should hold at least one option, such as `epochs: 10`"});
  EXPECT_EQ(problems_of("# only a comment\n").size(), 1u);
  EXPECT_EQ(problems_of("---\n").size(), 1u);
  EXPECT_EQ(problems_of("[1, 2]\n"), Lines{"a.yaml:1: the top level must be a mapping of option names to values"});
  EXPECT_EQ(problems_of("epochs\n").size(), 1u);
  EXPECT_EQ(problems_of("epochs: 3\n---\nepochs: 4\n"),
            Lines{"a.yaml:3: begins a second document; one file holds one"});
  EXPECT_EQ(problems_of("? [a]\n: 3\n"), Lines{"a.yaml:1: a key must be the name of an option or a group"});
}

TEST_F(YamlReaderTest, RefusesBytesThatAreNotUtf8Text) {
  EXPECT_EQ(problems_of(std::string("lr: 1\nseed: \0 2", 13)),
            Lines{"a.yaml:2: holds the control character 0x00; only UTF-8 text is read"});
  EXPECT_EQ(problems_of("lr: \xff\n"), Lines{"a.yaml:1: is not UTF-8 text"});
  EXPECT_EQ(problems_of(std::string("\xff\xfel\0r\0", 6)).size(), 1u);
  EXPECT_EQ(problems_of(std::string(1000001, '#')), Lines{"a.yaml:1: has 1.0 MB, more than the limit of 1.0 MB"});
}

TEST_F(YamlReaderTest, ASyntaxErrorIsReportedBesideWhatCameBefore) {
  EXPECT_EQ(problems_of("epochs: 0\nlr: {\n").size(), 3u);
}

TEST_F(YamlReaderTest, HostileTextsEndSoonAndWithOneScreenOfProblems) {
  EXPECT_EQ(problems_of(std::string(400000, '[')).size(), 1u);
  EXPECT_EQ(problems_of(std::string(400000, '{')).size(), 1u);
  std::string many;
  for (int i = 0; i < 60000; ++i) many += "unknown" + std::to_string(i) + ": 1\n";
  const Lines problems = problems_of(many);
  EXPECT_EQ(problems.size(), 101u);
  EXPECT_EQ(problems.back(), "a.yaml: more problems follow");
}

TEST_F(YamlReaderTest, NestingIsCutAtDepthEight) {
  const auto nested = [](size_t depth) { return "lr: " + std::string(depth, '[') + std::string(depth, ']') + "\n"; };
  EXPECT_EQ(problems_of(nested(7)), Lines{"a.yaml:1: lr: takes a single value, not a list"});
  const Lines deep = problems_of(nested(8));
  EXPECT_EQ(std::count(deep.begin(), deep.end(), "a.yaml:1: not valid YAML: nested too deeply"), 1);
}

TEST_F(YamlReaderTest, OneLetterFlagsAreNoKeys) {
  EXPECT_EQ(problems_of("b: 3\n"), Lines{"a.yaml:1: unknown option \"b\""});
}

TEST_F(YamlReaderTest, AFlagBeatsAFileThatIsReadLater) {
  EXPECT_EQ(table_.set(*table_.find("epochs"), "7", {Origin::Kind::flag, "--epochs"}), "");
  read("epochs: 3\nseed: 5\n");
  EXPECT_EQ(options_.train.epochs, 7);
  EXPECT_EQ(options_.train.seed, 5u);
}

TEST_F(YamlReaderTest, ARunsConfigurationIsTakenOverButNotItsMachine) {
  Configuration configuration;
  fixtures::parse_words({"--device", "cpu", "--no-amp"}, configuration, "eval");
  read_run_config("model: resnet18\namp: true\ndevice: cuda:3\nthreads: 99\nnum-workers: 55\nimg-size: 96\n",
                  "runs/x/config.yaml", configuration);
  EXPECT_EQ(configuration.options.model.model, "resnet18");
  EXPECT_EQ(configuration.options.data.img_size.value().width, 96);
  EXPECT_FALSE(configuration.options.precision.amp.value()) << "the flag wins";
  EXPECT_EQ(configuration.options.device.device.value(), "cpu");
  EXPECT_TRUE(configuration.options.device.threads.is_auto());
  EXPECT_TRUE(configuration.options.loader.num_workers.is_auto());
  EXPECT_EQ(configuration.table.find("model")->origin.detail, "runs/x/config.yaml:1");
  read_run_config("precision:\n  tf32: false\n  winograd: true\n", "c.yaml", configuration);  // of an older program
  const auto failure = fixtures::failure_of([&] { read_run_config("modle: x\n", "c.yaml", configuration); });
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  EXPECT_TRUE(failure.mentions("c.yaml:1: unknown option \"modle\"; did you mean model?")) << failure.message;
}

TEST(YamlTreeTest, KeepsLinesQuotesAndDuplicates) {
  std::vector<YamlProblem> problems;
  const YamlNode top = parse_yaml("a: 'x'\na: [1,\n  2]\n", problems);
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(top.kind, YamlNode::Kind::map);
  ASSERT_EQ(top.items.size(), 4u);
  EXPECT_TRUE(top.items[1].quoted);
  EXPECT_EQ(top.items[2].line, 2);
  ASSERT_EQ(top.items[3].items.size(), 2u);
  EXPECT_EQ(top.items[3].items[1].line, 3);
  EXPECT_EQ(top.items[3].items[1].text, "2");
}

}  // namespace
}  // namespace stoker::config
