// SPDX-License-Identifier: Apache-2.0
// Configuration files that cannot be used, options that do not fit together, devices that are not there:
// refused before the data is looked at.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"

namespace stoker::cli {
namespace {

class BadConfig : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadConfig, IsRefused) { expect_refused_before_the_run(GetParam()); }

const std::vector<BadInput>& bad_content() {
  static const std::vector<BadInput> all = {
      {"UnknownKey",
       config("epochs: 1\nbatchsize: 2\n"),
       kConfig,
       {"c.yaml:2: unknown option \"batchsize\"; did you mean batch-size?", "hint: "}},
      {"EveryUnknownKeyAtOnce",
       config("epoch: 1\nloader:\n  batchsize: 2\nlearning_rat: 1\n"),
       kConfig,
       {"3 problems with the configuration:", "c.yaml:1: unknown option \"epoch\"; did you mean epochs?",
        "c.yaml:3: unknown option \"batchsize\"", "c.yaml:4: unknown option \"learning_rat\""}},
      {"KeyTwice", config("lr: 1\nepochs: 1\nlr: 2\n"), kConfig, {"c.yaml:3: lr: already set in line 1"}},
      {"KeyAgainUnderAnotherName",
       config("lr: 1\nlearning_rate: 2\n"),
       kConfig,
       {"c.yaml:2: learning_rate: already set in line 1 (as lr)"}},
      {"GroupTwice",
       config("optim: {lr: 1}\noptim: {momentum: 0.5}\n"),
       kConfig,
       {"c.yaml:2: optim: this group already stands in line 1"}},
      {"KeyInTheWrongGroup",
       config("optim:\n  batch-size: 3\n"),
       kConfig,
       {"c.yaml:2: batch-size: belongs in group loader, not in optim"}},
      {"AliasOfItself", config("lr: &x [*x]\n"), kConfig, {"c.yaml:1:", "(*name) are not supported"}},
      {"BillionLaughs",
       config("a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
              "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
              "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
              "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n"),
       kConfig,
       {"c.yaml:1: anchors (&name) are not supported", "c.yaml:2: aliases (*name) are not supported"}},
      {"MergeKey", config("optim:\n  <<: {lr: 1}\n"), kConfig, {"c.yaml:2: merge keys (<<) are not supported"}},
      {"Tag", config("lr: !!python/object:os.system 1\n"), kConfig, {"c.yaml:1: tags", "are not supported"}},
      {"Octal", config("epochs: 010\n"), kConfig, {"c.yaml:1: epochs: \"010\" begins with 0", "write 10"}},
      {"Hexadecimal", config("epochs: 0x10\n"), kConfig, {"c.yaml:1: epochs: \"0x10\""}},
      {"Nan", config("lr: .nan\n"), kConfig, {"c.yaml:1: lr: \".nan\""}},
      {"Infinity", config("lr: .inf\n"), kConfig, {"c.yaml:1: lr: \".inf\""}},
      {"OutOfRange", config("momentum: 1.5\n"), kConfig, {"c.yaml:1: momentum: 1.5 is out of range"}},
      {"ListForScalar", config("lr: [0.1, 0.2]\n"), kConfig, {"c.yaml:1: lr: takes a single value, not a list"}},
      {"MappingForScalar", config("lr: {base: 1}\n"), kConfig, {"c.yaml:1: lr: takes a single value, not a mapping"}},
      {"NoValue", config("lr:\n"), kConfig, {"c.yaml:1: lr: no value given"}},
      {"QuotedNumber", config("epochs: \"3\"\n"), kConfig, {"c.yaml:1: epochs: \"3\" is in quotes"}},
      {"YesForTrue",
       config("tf32: yes\n"),
       kConfig,
       {"c.yaml:1: tf32: \"yes\" is not a switch value; write true or false"}},
      {"SyntaxError", config("epochs: 1\nmean: [1\n"), kConfig, {"c.yaml:", "not valid YAML:"}},
      {"DeepNesting", config(std::string(10'000, '[')), kConfig, {"c.yaml:1: not valid YAML: nested too deeply"}},
      {"TwoDocuments", config("lr: 1\n---\nlr: 2\n"), kConfig, {"c.yaml:", "begins a second document"}},
      {"Empty", config(""), kConfig, {"c.yaml:1: is empty"}},
      {"OnlyComments", config("# nothing\n"), kConfig, {"c.yaml:1: is empty"}},
      {"ListAtTheTop", config("- lr\n- 1\n"), kConfig, {"c.yaml:1: the top level must be a mapping"}},
      {"TextAtTheTop", config("just some words\n"), kConfig, {"c.yaml:1: the top level must be a mapping"}},
      {"NulByte", config(std::string("lr: 1\n\0lr: 2\n", 13)), kConfig, {"c.yaml:2: holds the control character 0x00"}},
      {"Utf16", config(std::string("\xFF\xFEl\0r\0:\0 \0001\0\n\0", 14)), kConfig, {"c.yaml:1: ", "UTF-8"}},
      {"Latin1", config("run-dir: caf\xE9\n"), kConfig, {"c.yaml:1: is not UTF-8 text"}},
      {"TwoMegabytes",
       config(std::string(2 << 20, '#')),
       kConfig,
       {"cannot read c.yaml: it has 2.1 MB, more than the limit of 1.0 MB"}},
  };
  return all;
}

const std::vector<BadInput>& bad_files() {
  static const std::vector<BadInput> all = {
      {"Missing",
       words({"-c", "nowhere.yaml"}),
       kNoInput,
       {"cannot read nowhere.yaml: No such file or directory", "check the path given with --config"}},
      {"Directory",
       [](const Workplace& work) {
         std::filesystem::create_directory(work / "c.yaml");
         return train_words({"-c", "c.yaml"});
       },
       kNoInput,
       {"cannot read c.yaml: it is a directory"}},
      {"Pipe",
       [](const Workplace& work) {
         ::mkfifo((work / "c.yaml").c_str(), 0600);
         return train_words({"-c", "c.yaml"});
       },
       kNoInput,
       {"cannot read c.yaml: it is not a regular file"}},
      {"EndlessDevice", words({"-c", "/dev/zero"}), kNoInput, {"cannot read /dev/zero: it is not a regular file"}},
      {"TwoBadFilesAreBothReported",
       [](const Workplace& work) {
         work.write("a.yaml", "epochs: 0\n");
         work.write("b.yaml", "lr: x\n");
         return train_words({"-c", "a.yaml", "-c", "b.yaml"});
       },
       kConfig,
       {"a.yaml:1: epochs: 0 is out of range", "b.yaml:1: lr: \"x\" is not a decimal number"}},
  };
  return all;
}

const std::vector<BadInput>& bad_combinations() {
  static const std::vector<BadInput> all = {
      {"MultistepWithoutMilestones",
       words(train_words({"--sched", "multistep"})),
       kConfig,
       {"sched multistep needs decay-milestones"}},
      {"WarmUpAsLongAsTheRun",
       words(train_words({"--warmup-epochs", "1"})),
       kConfig,
       {"leaves nothing of epochs 1: set it below, or to 0"}},
      {"PatienceWithoutEvaluation",
       words(train_words({"--patience", "3", "--val-every", "never"})),
       kConfig,
       {"patience needs evaluations"}},
      {"TwoSplitsToEvaluateOn",
       words(train_words({"--val-fraction", "0.1", "--val-split", "test"})),
       kConfig,
       {"val-fraction and val-split"}},
      {"SeveralBrokenRulesAtOnce",
       words(train_words(
           {"--sched", "multistep", "--val-fraction", "0.1", "--val-split", "test", "--lr", "0.1", "--min-lr", "1"})),
       kConfig,
       {"3 options do not fit together:", "decay-milestones", "val-fraction and val-split",
        "min-lr 1 is above lr 0.1"}},
      {"DeviceThatNoMachineHas",
       words(train_words({"--device", "cuda:63"})),
       kUnavailable,
       {"device cuda:63 was requested", "--device cpu"}},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Content, BadConfig, ::testing::ValuesIn(bad_content()), name_of);
INSTANTIATE_TEST_SUITE_P(File, BadConfig, ::testing::ValuesIn(bad_files()), name_of);
INSTANTIATE_TEST_SUITE_P(Combination, BadConfig, ::testing::ValuesIn(bad_combinations()), name_of);

/// LibTorch computes float16 on CPUs from 2.4 on. Both words for it are requested here and now.
TEST(HalfPrecisionOnTheCpu, IsRefusedOrTrainedInAsLibTorchCan) {
  for (const Words& asked : {Words{"--amp", "float16"}, Words{"--fp16"}}) {
    if (STOKER_LIBTORCH_COMPUTES_FLOAT16 == 0) {
      expect_refused_before_the_run({"",
                                     words(train_words(asked)),
                                     kConfig,
                                     {"amp float16 does not run on the CPU in this LibTorch: use amp bfloat16"}});
      continue;
    }
    const Workplace work;
    write_idx(work);
    Words command_line = train_words(asked);
    command_line.insert(command_line.end(), {"--report-every", "1u"});
    const Ended ended = run(command_line, work.path());
    SCOPED_TRACE(story_of(command_line, ended));
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_NE(ended.out.find("device    cpu, float16 autocast"), std::string::npos);
    const std::string metrics = content_of_file(work / "run/metrics.jsonl");
    EXPECT_NE(metrics.find("\"loss_scale\":"), std::string::npos);
    EXPECT_EQ(metrics.find("\"loss_scale\":null"), std::string::npos);
  }
}

/// With every CUDA device hidden, so that the fact can be checked on any machine.
Ended run_without_cuda(const Workplace& work, const Words& more) {
  write_idx(work);
  Launch launch;
  launch.words = train_words(more);
  launch.directory = work.path();
  launch.variables = {"CUDA_VISIBLE_DEVICES="};
  return run(launch);
}

TEST(MissingDevice, IsNeverReplacedByTheCpu) {
  const Workplace work;
  work.write("c.yaml", "device: cuda\n");
  for (const Words& asked : {Words{"--device", "cuda"}, Words{"--device", "cuda:0"}, Words{"--gpus", "1"}}) {
    const Ended ended = run_without_cuda(work, asked);
    SCOPED_TRACE(story_of(asked, ended));
    EXPECT_EQ(ended.exit_code, kUnavailable);
    EXPECT_NE(ended.err.find("was requested, but no CUDA device is available"), std::string::npos);
    EXPECT_EQ(last_line(ended.err), "train: exit=69 reason=error");
    EXPECT_FALSE(std::filesystem::exists(work / "run"));
  }
}

TEST(MissingDevice, IsNeverReplacedByTheCpuWhenAFileAsksForIt) {
  const Workplace work;
  write_idx(work);
  work.write("c.yaml", "device: {device: cuda}\n");
  Launch launch;
  launch.words = {"-c", "c.yaml", "--data-dir", "data", "--run-dir", "run"};
  launch.directory = work.path();
  launch.variables = {"CUDA_VISIBLE_DEVICES="};
  const Ended ended = run(launch);
  EXPECT_EQ(ended.exit_code, kUnavailable) << story_of(launch.words, ended);
  EXPECT_FALSE(std::filesystem::exists(work / "run"));
}

TEST(MissingDevice, LeavesAutoToTheCpu) {
  const Workplace work;
  const Ended ended = run_without_cuda(work, {"--device", "auto", "-v"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_NE(ended.out.find("no CUDA device found"), std::string::npos) << ended.out;
}

}  // namespace
}  // namespace stoker::cli
