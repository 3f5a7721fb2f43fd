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
  EXPECT_EQ(c->table.find("amp")->origin.detail, "--bf16");
  EXPECT_EQ(c->table.find("amp")->origin.kind, Origin::Kind::flag);
}

TEST(FlagsTest, OfARepeatedFlagTheLastCountsWhateverItsName) {
  EXPECT_EQ(parsed({"--epochs", "3", "--max-epochs", "4"})->options.train.epochs, 4);
  EXPECT_EQ(parsed({"--max-epochs", "4", "--epochs", "3"})->options.train.epochs, 3);
  EXPECT_TRUE(parsed({"--no-amp", "--amp"})->options.precision.amp.value());
  EXPECT_FALSE(parsed({"--amp", "--no-amp"})->options.precision.amp.value());
  EXPECT_EQ(parsed({"--bf16", "--fp16"})->options.precision.amp_dtype.value(), AmpDtype::float16);
  EXPECT_EQ(parsed({"--fp16", "--precision", "bf16-mixed"})->options.precision.amp_dtype.value(), AmpDtype::bfloat16);
}

TEST(FlagsTest, PrecisionHasOneDoorWithManyNames) {
  const std::pair<std::vector<std::string>, const char*> kCases[] = {{{}, "auto"},
                                                                     {{"--amp"}, "on"},
                                                                     {{"--no-amp"}, "off"},
                                                                     {{"--amp", "bfloat16"}, "bfloat16"},
                                                                     {{"--amp=float16"}, "float16"},
                                                                     {{"--amp", "off"}, "off"},
                                                                     {{"--use-amp"}, "on"},
                                                                     {{"--no-use-amp"}, "off"},
                                                                     {{"--fp16"}, "float16"},
                                                                     {{"--bf16"}, "bfloat16"},
                                                                     {{"--amp-dtype", "float16"}, "float16"},
                                                                     {{"--amp", "--amp-dtype", "bfloat16"}, "bfloat16"},
                                                                     {{"--amp-dtype", "bfloat16", "--amp"}, "bfloat16"},
                                                                     {{"--fp16", "--no-amp", "--amp"}, "on"},
                                                                     {{"--precision", "32"}, "off"},
                                                                     {{"--precision", "16-mixed"}, "float16"},
                                                                     {{"--precision", "bf16-mixed"}, "bfloat16"}};
  for (const auto& [words, text] : kCases) {
    EXPECT_EQ(parsed(words)->table.find("amp")->render(), text) << (words.empty() ? "" : words.front());
  }
  EXPECT_EQ(parse_failure({"--amp=half"}).message,
            "--amp: \"half\" is not accepted; write auto, off, on, bfloat16 or float16");
}

TEST(FlagsTest, AnOldNameIsAnsweredWithTheNewOne) {
  EXPECT_EQ(parse_failure({"--scale-min", "0.5"}).message, "--scale-min is a part of scale now, as in --scale 0.08,1");
  EXPECT_EQ(parse_failure({"--no-one-cycle-base-momentum"}).kind, core::ErrorKind::usage);
  EXPECT_TRUE(parse_failure({"--rand-augment", "2,9"}).mentions("write --auto-augment ra or rand-m9-n2 or ta-wide"));
  EXPECT_TRUE(parse_failure({"--trivial-augment"}).mentions("--trivial-augment was renamed: write --auto-augment"));
  EXPECT_TRUE(parse_failure({"eval", "runs/x", "--max-bad", "3"}).mentions("--max-bad is a part of on-bad-image now"));
  for (const char* const flag : {"--winograd", "--no-winograd"}) {
    EXPECT_TRUE(parse_failure({flag}).mentions("was removed; leave it out")) << flag;
  }
}

TEST(FlagsTest, AnOptionOfSeveralValuesTakesThemWithCommas) {
  const auto c = parsed({"--scale",
                         "0.2,0.9",
                         "--gaussian-blur",
                         "0.5",
                         "--on-bad-image",
                         "skip,7",
                         "--time-mask",
                         "2,30",
                         "--color-jitter",
                         "0.4,p0.8",
                         "--betas",
                         "0.8,0.95",
                         "--one-cycle",
                         "0.2",
                         "--pose-head",
                         "binned,33",
                         "--hdf5",
                         ",train/y",
                         "--one-cycle-momentum",
                         "off"});
  EXPECT_EQ(c->options.augment.scale_min, 0.2);
  EXPECT_EQ(c->options.augment.scale_max, 0.9);
  EXPECT_EQ(c->options.augment.gaussian_blur, 0.5);
  EXPECT_EQ(c->options.augment.gaussian_blur_kernel, 23) << "what is left out is as usual";
  EXPECT_EQ(c->options.data.on_bad_image, OnBadImage::skip);
  EXPECT_EQ(c->options.data.max_bad, 7);
  EXPECT_EQ(c->options.augment.time_mask_param, 30);
  EXPECT_EQ(c->options.augment.color_jitter, std::vector<double>{0.4});
  EXPECT_EQ(c->options.augment.color_jitter_prob, 0.8);
  EXPECT_EQ(c->options.optim.beta2, 0.95);
  EXPECT_EQ(c->options.schedule.one_cycle_pct_start, 0.2);
  EXPECT_EQ(c->options.task.pose_bins, 33);
  EXPECT_EQ(c->options.data.hdf5_input, "");
  EXPECT_EQ(c->options.data.hdf5_label, "train/y");
  EXPECT_FALSE(c->options.schedule.one_cycle_momentum);
  EXPECT_EQ(parse_failure({"--scale", "0.5"}).message, "--scale: \"0.5\" is not accepted; write MIN,MAX");
  EXPECT_EQ(parse_failure({"--scale", "0.5,2"}).message, "--scale: MAX: 2 is out of range; accepted: above 0 to 1");
  EXPECT_TRUE(parse_failure({"--freq-mask", "1,2,3"}).mentions("write COUNT[,WIDTH]"));
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
    const std::string on = row.choices.empty() ? "true" : "on", off = row.choices.empty() ? "false" : "off";
    EXPECT_EQ(parsed({"--" + row.name})->table.find(row.name)->render(), on) << row.name;
    EXPECT_EQ(parsed({"--no-" + row.name})->table.find(row.name)->render(), off) << row.name;
    for (const std::string& alias : row.aliases) {
      EXPECT_EQ(parsed({"--no-" + alias})->table.find(row.name)->render(), off) << alias;
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
      const std::string usual = row.name == "stop-signals" ? "USR2" : "x";
      const std::string text = row.default_text.empty() ? usual : row.default_text;
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
  EXPECT_TRUE(parse_failure({"--batch-size="}).mentions("--batch-size: no value given"));
  EXPECT_EQ(parse_failure({"--amp="}).message, "--amp: no value given; write true or false");
}

TEST(FlagsTest, ValuesOfSwitchesAreTrueOrFalse) {
  EXPECT_TRUE(parse_failure({"--tf32=maybe"}).mentions("--tf32: \"maybe\" is not a switch value; write true or false"));
  EXPECT_EQ(parse_failure({"--dry-run=3"}).message, "--dry-run: takes no value");
  EXPECT_TRUE(parsed({"--no-amp=false"})->options.precision.amp.value());
}

TEST(FlagsTest, NegativeNumbersAreValues) {
  EXPECT_TRUE(parse_failure({"--num-workers", "-1"}).mentions("-1 does not mean automatic, write auto"));
  EXPECT_TRUE(parse_failure({"--lr", "-0.5"}).mentions("--lr: -0.5 is out of range; accepted: above 0"));
  EXPECT_TRUE(parse_failure({"--seed", "-1"}).mentions("--seed: -1 is out of range"));
}

TEST(FlagsTest, FreeTextIsUtf8WithoutControlCharacters) {
  EXPECT_TRUE(parse_failure({"--run-dir", "\xff"}).mentions("is not valid UTF-8"));
  EXPECT_TRUE(parse_failure({"--log-file", "a\nb"}).mentions("\"a\\x0ab\" holds a control character"));
  EXPECT_TRUE(parse_failure({"--run-dir", ""}).mentions("--run-dir: no value given"));
  EXPECT_EQ(parsed({"--init-from", ""})->options.model.init_from, "");
}

TEST(FlagsTest, WordsOfChoicesAreSuggested) {
  EXPECT_EQ(
      parse_failure({"--opt", "adamv"}).message,
      "--opt: \"adamv\" is not accepted; write one of sgd, adam, adamw, rmsprop, nadam, lion, lamb, muon (did you "
      "mean adamw?)");
  EXPECT_TRUE(parse_failure({"--device", "tpu"}).mentions("accepted: auto, cpu, cuda or cuda:N"));
  EXPECT_TRUE(parse_failure({"--device", "cuda:-1"}).mentions("is not a device"));
  EXPECT_EQ(parsed({"--gpus", "0"})->options.device.device.value(), "cpu");
  EXPECT_EQ(parsed({"--gpus", "1"})->options.device.device.value(), "cuda");
}

TEST(FlagsTest, ListedWordsAreTakenInAnyLetters) {
  EXPECT_EQ(parsed({"--sched", "Cosine"})->table.find("sched")->render(), "cosine");
  EXPECT_EQ(parsed({"--channels-last", "True"})->table.find("channels-last")->render(), "true");
  EXPECT_EQ(parsed({"--channels-last=AUTO"})->table.find("channels-last")->render(), "auto");
  EXPECT_EQ(parsed({"--amp", "BFloat16"})->table.find("amp")->render(), "bfloat16");
  EXPECT_EQ(parsed({"--amp", "BFLOAT16"})->table.find("amp")->render(), "bfloat16");
  EXPECT_EQ(parsed({"--precision", "BF16"})->table.find("amp")->render(), "bfloat16");
  EXPECT_EQ(parsed({"--amp-dtype", "Float16"})->table.find("amp")->render(), "float16");
  EXPECT_EQ(parsed({"--accelerator", "CPU"})->table.find("device")->render(), "cpu");
  EXPECT_EQ(parsed({"--device", "CPU"})->table.find("device")->render(), "cpu");
  EXPECT_EQ(parsed({"--batch-size", "Auto"})->table.find("batch-size")->render(), "auto");
  EXPECT_EQ(parsed({"--run-dir", "Auto"})->table.find("run-dir")->render(), "Auto") << "a name";
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
