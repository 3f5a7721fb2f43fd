// SPDX-License-Identifier: Apache-2.0
// Which command a command line names, and what is wrong with its words and flags.
#include <gtest/gtest.h>

#include <set>

#include "commands/command.h"
#include "commands/eval/eval.h"
#include "commands/predict/predict.h"
#include "tests/config/command_words.h"

namespace stoker::train {
namespace {

using fixtures::Failure;
using fixtures::failure_of;

/// Parses `train <words>` as the program does. Returns the name of the command.
std::string parse(const std::vector<std::string>& words, config::Configuration& configuration) {
  const std::vector<Command> commands = all_commands();
  std::vector<const char*> argv = {"train"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const ChosenCommand chosen = choose_command(commands, static_cast<int>(argv.size()), argv.data());
  config::CommandLine line = {chosen.words, chosen.command, {}, {}, chosen.mistake};
  for (const Command& command : commands) line.others.push_back(&command);
  config::parse_command_line(line, configuration);
  return chosen.command->name;
}

std::string named(const std::vector<std::string>& words) {
  config::Configuration configuration;
  return parse(words, configuration);
}

Failure failure_of_words(const std::vector<std::string>& words) {
  return failure_of([&] { named(words); });
}

TEST(CommandNamesTest, AreUniqueAndEachHasUsageAndSummary) {
  std::set<std::string> names;
  for (const Command& command : all_commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_EQ(command.usage.rfind(command.shown_name(), 0), 0u) << command.usage;
    EXPECT_EQ(command.summary.back(), '.') << command.name;
    EXPECT_TRUE(command.run) << command.name;
    EXPECT_TRUE(command.owner || command.flags.empty()) << command.name << ": nobody keeps what its flags fill";
  }
}

TEST(CommandNamesTest, WordsInFrontNameTheCommand) {
  EXPECT_EQ(named({"--epochs", "3"}), "");
  EXPECT_EQ(named({"eval", "runs/x"}), "eval");
  EXPECT_EQ(named({"inspect", "diff", "a", "b"}), "inspect diff");
  EXPECT_EQ(named({"help", "eval"}), "eval");
}

TEST(CommandNamesTest, UnknownNamesAreErrorsThatNameTheNearest) {
  EXPECT_EQ(failure_of_words({"evl", "runs/x"}).message, "unknown command \"evl\"; did you mean eval?");
  EXPECT_EQ(failure_of_words({"evl"}).kind, core::ErrorKind::usage);
  const Failure unknown = failure_of_words({"zzzzz"});
  EXPECT_EQ(unknown.message, "unknown command \"zzzzz\"");
  EXPECT_EQ(unknown.hint.rfind("train --data-dir zzzzz if zzzzz is a folder of images; commands: eval, predict,", 0),
            0u)
      << unknown.hint;
  for (const Command& command : all_commands()) {
    EXPECT_NE(unknown.hint.find(command.first_word()), std::string::npos) << command.name;
  }
  EXPECT_EQ(failure_of_words({"--epochs", "3", "eval"}).message,
            "the command eval must be the first word: train eval ...");
  EXPECT_EQ(failure_of_words({""}).message, "unexpected word \"\"");
}

TEST(CommandNamesTest, WordsOfOtherProgramsAnswerWithTheWholeCommand) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{"val", "runs/x"}, "train eval runs/x"},
      {{"test", "runs/x", "photos", "--split", "test"}, "train eval runs/x photos --split test"},
      {{"val"}, "train eval RUN_OR_CHECKPOINT"},
      {{"infer", "runs/x", "a.jpg"}, "train predict runs/x a.jpg"},
      {{"predict", "model=runs/x", "source=a.jpg"}, "train predict runs/x a.jpg"},
      {{"fit", "--epochs", "3"}, "train --epochs 3"},
      {{"train", "--epochs", "3"}, "train --epochs 3"},
      {{"version"}, "train --version"},
      {{"resume", "runs/x"}, "train --resume runs/x"},
      {{"help", "val"}, "train eval --help"},
      {{"classify", "train", "data=a/b", "epochs=3"}, "train --data-dir a/b --epochs 3"},
      {{"task=classify", "mode=val", "model=runs/x", "data=photos"}, "train eval runs/x photos"},
      {{"data=photos", "epochs=3", "lr0=0.1", "optimizer=SGD", "plots=True", "batch=-1", "device=0"},
       "train --data-dir photos --epochs 3 --lr 0.1 --opt sgd --batch-size auto --device cuda:0"},
      {{"project=runs", "name=a"}, "train --run-dir runs/a"},
      {{"trainer.max_epochs=3", "amp=False", "--lr0", "0.1"}, "train --epochs 3 --no-amp --lr 0.1"},
      {{"--trainer.max_epochs", "1", "--model.lr=0.1"}, "train --epochs 1 --lr 0.1"},
      {{"--trainer.devices", "2", "--trainer.logger", "False"}, "train --devices 2"},
      {{"--input-size", "3", "32", "48"}, "train --img-size 32,48"},
      {{"--input-size=1,32,32", "--mean", "0.5", "0.5"}, "train --in-chans 1 --img-size 32 --mean 0.5,0.5"},
      {{"input_size=[3,64,64]", "betas=[0.9,0.95]"}, "train --img-size 64 --betas 0.9,0.95"},
      {{"plan", "--input-size", "3", "32", "32", "trainer.max_epochs=2"}, "train plan --img-size 32 --epochs 2"},
      {{"tune", "--epochs", "3"}, "train sweep sweeps/lr --over lr=0.1,0.03,0.01 --epochs 3"},
      {{"lr_find", "--epochs", "3"}, "train bench lr --epochs 3"},
      {{"benchmark"}, "train bench all"},
      {{"--opt-betas", "0.9", "0.95", "--opt-eps", "1e-6"}, "train --betas 0.9,0.95 --eps 1e-6"},
      {{"--name", "a", "--epochs", "3"}, "train --run-dir runs/a --epochs 3"},
      {{"a/b", "--foo", "3", "--batchsize", "4"}, "train --data-dir a/b --batch-size 4"},
      {{"--epochs", "3", "a/b"}, "train --epochs 3 --data-dir a/b"},
      {{"c.yaml", "--epochs", "3"}, "train --config c.yaml --epochs 3"}};
  for (const auto& [words, hint] : kCases) {
    const Failure failure = failure_of_words(words);
    EXPECT_EQ(failure.kind, core::ErrorKind::usage) << hint;
    EXPECT_EQ(failure.hint, hint) << failure.message;
  }
}

TEST(CommandNamesTest, NoWordAtAllAnswersWithTheFirstSteps) {
  const Failure failure = failure_of_words({});
  EXPECT_EQ(failure.kind, core::ErrorKind::usage);
  for (const char* const step : {"--data-dir photos", "--preset fashion_mnist", "eval", "predict", "--help"}) {
    EXPECT_NE(failure.hint.find(std::string("train ") + step), std::string::npos) << failure.hint;
  }
  EXPECT_EQ(named({"--preset", "fashion_mnist"}), "");
}

TEST(CommandNamesTest, TasksThatNoCommandHasAreRefusedByName) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{"detect", "train", "data=coco.yaml"}, "\"detect\": detection is not supported"},
      {{"segment"}, "\"segment\": segmentation is not supported"},
      {{"mode=train", "task=segment"}, "\"task=segment\": segmentation is not supported"},
      {{"track", "source=a.mp4"}, "\"track\": tracking is not supported"}};
  for (const auto& [words, message] : kCases) EXPECT_EQ(failure_of_words(words).message, message);
}

TEST(CommandNamesTest, AFormerNameAnswersWithTheNewOne) {
  EXPECT_EQ(failure_of_words({"ls"}).message, "train ls is now train runs");
  EXPECT_EQ(failure_of_words({"watch", "runs/x"}).message, "train watch is now train runs --follow");
  EXPECT_EQ(failure_of_words({"replay", "runs/x"}).message, "train replay is now train inspect replay");
  EXPECT_EQ(failure_of_words({"models"}).kind, core::ErrorKind::usage);
}

TEST(CommandWordsTest, MissingAndSuperfluousWordsAreReported) {
  EXPECT_EQ(failure_of_words({"eval"}).message,
            "missing RUN_OR_CHECKPOINT: train eval RUN_OR_CHECKPOINT [DATA] [options]");
  EXPECT_EQ(failure_of_words({"predict", "runs/x"}).message,
            "missing INPUT: train predict RUN_OR_CHECKPOINT INPUT... [options]");
  EXPECT_EQ(failure_of_words({"eval", "runs/x", "data", "more"}).message, "unexpected word \"more\"");
  EXPECT_EQ(failure_of_words({"eval", "runs/x", "--which", "first"}).message,
            "--which: \"first\" is not accepted; write one of best and last");
  EXPECT_EQ(failure_of_words({"predict", "r", "i", "--top-k", "0"}).kind, core::ErrorKind::usage);
}

TEST(CommandWordsTest, FlagsOfAnotherCommandDifferFromUnknownOnes) {
  EXPECT_EQ(failure_of_words({"eval", "r", "--epochs", "3"}).message, "--epochs: an option of training, not of eval");
  EXPECT_EQ(failure_of_words({"eval", "runs/x", "-b", "3"}).message, "-b: an option of training, not of eval");
  EXPECT_EQ(failure_of_words({"predict", "r", "i", "--data-dir", "x"}).message,
            "--data-dir: an option of training, not of predict");
  EXPECT_EQ(failure_of_words({"--logits"}).message, "--logits: a flag of train eval");
  EXPECT_EQ(failure_of_words({"eval", "r", "--dry-run"}).message, "--dry-run: a flag of training, not of eval");
}

TEST(CommandWordsTest, ARemovedFlagIsNamedAsRemoved) {
  EXPECT_EQ(failure_of_words({"plan", "--devices", "2", "--link", "10Gbit"}).message,
            "--link: was removed: nobody can check a forecast of exchange between machines");
}

TEST(CommandWordsTest, FlagsAndWordsGoIntoTheStructOfTheCommandAndOptionsIntoTheConfiguration) {
  const auto flags = std::make_shared<EvalFlags>();
  config::Syntax syntax;
  syntax.name = "eval";
  syntax.takes = takes_eval;
  syntax.arguments = {checkpoint_argument(flags->checkpoint)};
  syntax.flags = {which_flag(flags->which), config::flag("split", "NAME", "", flags->split),
                  config::flag("resamples", "N", "", flags->resamples, 0, 10),
                  config::flag("logits", "", flags->logits)};
  const config::CommandLine line = {{"--which", "last", "runs/x", "--split", "test", "--logits", "-vb", "9"}, &syntax};
  config::Configuration configuration;
  config::parse_command_line(line, configuration);
  EXPECT_EQ(flags->checkpoint, "runs/x");
  EXPECT_EQ(flags->which, "last");
  EXPECT_EQ(flags->split, "test");
  EXPECT_TRUE(flags->logits);
  EXPECT_EQ(configuration.options.loader.val_batch_size.value(), 9);

  flags->split = "changed since";
  config::Configuration again;
  config::parse_options(line, again);
  EXPECT_EQ(again.options.loader.val_batch_size.value(), 9);
  EXPECT_EQ(flags->split, "changed since") << "the options alone";
}

}  // namespace
}  // namespace stoker::train
