// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/config/command_words.h"

namespace stoker::config {
namespace {

using fixtures::Failure;
using fixtures::parse_failure;
using fixtures::parsed;

TEST(FlagsTest, ReadsEveryWayOfWritingAFlag) {
  const auto c = parsed({"--batch_size", "32", "-vb", "64", "-j2", "--no-pin_mem", "--lr=1e-2", "-d", "cpu", "-wd=0",
                         "--mean", ".5,.25,.1", "--max-steps=10", "--amp=false", "--opt", "adamw", "--run-dir", "-"});
  EXPECT_EQ(c->options.loader.batch_size.value(), 32);
  EXPECT_EQ(c->options.loader.val_batch_size.value(), 64);
  EXPECT_EQ(c->options.loader.num_workers.value(), 2);
  EXPECT_FALSE(c->options.loader.pin_memory);
  EXPECT_EQ(c->options.optim.lr.value(), 0.01);
  EXPECT_EQ(c->options.device.device.value(), "cpu");
  EXPECT_EQ(c->options.optim.weight_decay, 0);
  EXPECT_EQ(c->options.data.mean.value(), (std::vector<double>{0.5, 0.25, 0.1}));
  EXPECT_EQ(c->options.train.max_updates, 10);
  EXPECT_FALSE(c->options.precision.amp.value());
  EXPECT_EQ(c->options.optim.opt.value(), OptimizerKind::adamw);
  EXPECT_EQ(c->options.run.run_dir.value(), "-");
}

TEST(FlagsTest, RemembersHowAValueWasWritten) {
  const auto c = parsed({"--max-epochs", "3", "--no-pin-mem", "-vb", "8", "--bf16"});
  EXPECT_EQ(c->table.find("epochs")->origin.detail, "--max-epochs");
  EXPECT_EQ(c->table.find("pin-memory")->origin.detail, "--no-pin-mem");
  EXPECT_EQ(c->table.find("val-batch-size")->origin.detail, "--vb");
  EXPECT_EQ(c->table.find("amp-dtype")->origin.detail, "--bf16");
  EXPECT_EQ(c->table.find("amp-dtype")->origin.kind, Origin::Kind::flag);
}

TEST(FlagsTest, OfARepeatedFlagTheLastCountsWhateverItsName) {
  EXPECT_EQ(parsed({"--epochs", "3", "--max-epochs", "4"})->options.train.epochs, 4);
  EXPECT_EQ(parsed({"--max-epochs", "4", "--epochs", "3"})->options.train.epochs, 3);
  EXPECT_TRUE(parsed({"--no-amp", "--amp"})->options.precision.amp.value());
  EXPECT_FALSE(parsed({"--amp", "--no-amp"})->options.precision.amp.value());
  EXPECT_EQ(parsed({"--bf16", "--fp16"})->options.precision.amp_dtype.value(), AmpDtype::float16);
  EXPECT_EQ(parsed({"--fp16", "--precision", "bf16-mixed"})->options.precision.amp_dtype.value(), AmpDtype::bfloat16);
}

TEST(FlagsTest, ASwitchTakesTrueFalseOrAutoBehindIt) {
  EXPECT_TRUE(parsed({"--amp", "true"})->options.precision.amp.value());
  EXPECT_FALSE(parsed({"--amp", "false", "--epochs", "3"})->options.precision.amp.value());
  EXPECT_TRUE(parsed({"--no-amp", "--amp", "auto"})->options.precision.amp.is_auto());
  EXPECT_EQ(parse_failure({"--amp", "sometimes"}).message, "unexpected word \"sometimes\"");
}

TEST(FlagsTest, EverySwitchCanBeUndone) {
  Configuration reference;
  for (const Row& row : reference.table.rows()) {
    if (!row.is_switch) continue;
    EXPECT_EQ(parsed({"--" + row.name})->table.find(row.name)->render(), "true") << row.name;
    EXPECT_EQ(parsed({"--no-" + row.name})->table.find(row.name)->render(), "false") << row.name;
    for (const std::string& alias : row.aliases) {
      EXPECT_EQ(parsed({"--no-" + alias})->table.find(row.name)->render(), "false") << alias;
    }
  }
}

TEST(FlagsTest, EveryNameOfEveryOptionIsAFlag) {
  Configuration reference;
  for (const Row& row : reference.table.rows()) {
    std::vector<std::string> names = row.aliases;
    names.push_back(row.name);
    for (const std::string& name : names) {
      const std::string flag = (name.size() == 1 ? "-" : "--") + name;
      const std::string text = row.default_text.empty() ? "x" : row.default_text;
      const auto c = row.is_switch ? parsed({flag}) : parsed({flag, text});
      EXPECT_EQ(c->table.find(row.name)->origin.kind, Origin::Kind::flag) << flag;
      EXPECT_EQ(c->table.find(row.name)->origin.detail, flag);
    }
  }
}

TEST(FlagsTest, ListsEveryProblemOfTheCommandLineAtOnce) {
  const Failure failure = parse_failure({"--foo", "3", "--bacth-size", "4", "--epochs", "-1", "--lr", "nan", "stray"});
  EXPECT_EQ(failure.kind, core::ErrorKind::usage);
  EXPECT_EQ(failure.message,
            "5 problems with the command line:\n"
            "  --foo: unknown flag\n"
            "  --bacth-size: unknown flag; did you mean --batch-size?\n"
            "  unexpected word \"stray\"\n"
            "  --epochs: -1 is out of range; accepted: 1 to 1000000\n"
            "  --lr: \"nan\" is not a finite number; accepted: above 0; auto is accepted too");
  EXPECT_EQ(failure.hint, "train --help-all lists every flag");
}

TEST(FlagsTest, AMissingValueIsReportedAndNeverTakenFromTheNextFlag) {
  EXPECT_EQ(parse_failure({"--epochs"}).message, "--epochs: no value given");
  EXPECT_EQ(parse_failure({"--run-dir", "--epochs", "3"}).message, "--run-dir: no value given");
  EXPECT_EQ(parse_failure({"-c"}).message, "-c: no value given");
  EXPECT_TRUE(parse_failure({"--batch-size="}).says("--batch-size: no value given"));
  EXPECT_EQ(parse_failure({"--amp="}).message, "--amp: no value given; write true or false");
}

TEST(FlagsTest, ValuesOfSwitchesAreTrueOrFalse) {
  EXPECT_TRUE(parse_failure({"--amp=maybe"}).says("--amp: \"maybe\" is not a switch value; write true or false"));
  EXPECT_EQ(parse_failure({"--dry-run=3"}).message, "--dry-run: takes no value");
  EXPECT_TRUE(parsed({"--no-amp=false"})->options.precision.amp.value());
}

TEST(FlagsTest, NegativeNumbersAreValues) {
  EXPECT_TRUE(parse_failure({"--num-workers", "-1"}).says("-1 does not mean automatic, write auto"));
  EXPECT_TRUE(parse_failure({"--lr", "-0.5"}).says("--lr: -0.5 is out of range; accepted: above 0"));
  EXPECT_TRUE(parse_failure({"--seed", "-1"}).says("--seed: -1 is out of range"));
}

TEST(FlagsTest, FreeTextIsUtf8WithoutControlCharacters) {
  EXPECT_TRUE(parse_failure({"--run-dir", "\xff"}).says("is not valid UTF-8"));
  EXPECT_TRUE(parse_failure({"--log-file", "a\nb"}).says("\"a\\x0ab\" holds a control character"));
  EXPECT_TRUE(parse_failure({"--run-dir", ""}).says("--run-dir: no value given"));
  EXPECT_EQ(parsed({"--init-from", ""})->options.model.init_from, "");
}

TEST(FlagsTest, WordsOfChoicesAreSuggested) {
  EXPECT_EQ(parse_failure({"--opt", "adamv"}).message,
            "--opt: \"adamv\" is not accepted; write one of sgd, adam, adamw (did you mean adamw?)");
  EXPECT_TRUE(parse_failure({"--device", "tpu"}).says("accepted: auto, cpu, cuda or cuda:N"));
  EXPECT_TRUE(parse_failure({"--device", "cuda:-1"}).says("is not a device"));
  EXPECT_EQ(parsed({"--gpus", "0"})->options.device.device.value(), "cpu");
  EXPECT_EQ(parsed({"--gpus", "1"})->options.device.device.value(), "cuda");
}

TEST(FlagsTest, HelpAndVersionAreAnsweredWhateverElseIsWrong) {
  EXPECT_TRUE(parsed({"--help", "--foo", "-c", "missing.yaml"})->flags.help);
  EXPECT_TRUE(parsed({"--version"})->flags.version);
  EXPECT_TRUE(parsed({"--dump-config"})->flags.print_config);
}

TEST(FlagsTest, ASuspiciousCommandLineStillEndsAsAnErrorOfOurs) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"-"},
                                                                                     {"--"},
                                                                                     {"---"},
                                                                                     {"-="},
                                                                                     {"--=3"},
                                                                                     {"--", "--epochs"},
                                                                                     {"-\xff"},
                                                                                     {"--\xff=1"},
                                                                                     {"-b"},
                                                                                     {"-bb"},
                                                                                     {"--epochs", "3", "--epochs"},
                                                                                     {"++"},
                                                                                     {"--no-epochs"},
                                                                                     {"--no-fp16"},
                                                                                     {"-hx"},
                                                                                     {"[1,2]"},
                                                                                     {"--mean", "[1,2]"}}) {
    try {
      parsed(words);
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::usage) << words[0];
    }
  }
  EXPECT_NO_THROW(parsed({}));
}

}  // namespace
}  // namespace stoker::config
