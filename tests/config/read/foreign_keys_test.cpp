// SPDX-License-Identifier: Apache-2.0
// Configuration files for other trainers, as their documents show them, start a run here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/config/command_words.h"
#include "tests/temporary_directory.h"

namespace stoker::config {
namespace {

using fixtures::parse_failure;
using fixtures::parsed;

class ForeignKeysTest : public ::testing::Test {
 protected:
  std::unique_ptr<Configuration> read(const std::string& text) {
    return parsed({"-c", directory_.write("theirs.yaml", text), "--data-dir", directory_.path()});
  }
  fixtures::TemporaryDirectory directory_;
};

TEST_F(ForeignKeysTest, OptionsMayStandBelowTrainingAndOptimization) {
  const auto c = read(
      "# config/defaults.yaml\ntraining:\n  batch_size: 16          # Increased from 12\n  num_workers: 8\n  \n"
      "optimization:\n  use_amp: true           # Mixed precision\n");
  EXPECT_EQ(c->options.loader.batch_size.value(), 16);
  EXPECT_EQ(c->options.loader.num_workers.value(), 8);
  EXPECT_TRUE(c->options.precision.amp.value());
  EXPECT_TRUE(c->notes.empty());
}

TEST_F(ForeignKeysTest, ABlockForLightningsTrainerStartsARun) {
  const auto c = read(
      "seed_everything: 7\ntrainer:\n  max_epochs: 4\n  accelerator: cpu\n  precision: bf16-mixed\n"
      "  gradient_clip_val: 0.5\n  accumulate_grad_batches: 2\n  check_val_every_n_epoch: 3\n  log_every_n_steps: 10\n"
      "  enable_progress_bar: false\n");
  EXPECT_EQ(c->options.train.seed, 7u);
  EXPECT_EQ(c->options.train.epochs, 4);
  EXPECT_EQ(c->options.optim.clip_grad, 0.5);
  EXPECT_EQ(c->options.train.val_every.unit, Interval::Unit::epochs);
  EXPECT_EQ(c->options.train.val_every.amount, 3);
  EXPECT_EQ(c->options.log.progress, "plain");
  EXPECT_EQ(c->options.run.report_every.amount, 10);
  EXPECT_TRUE(c->notes.empty()) << "all of it has an effect";
}

constexpr const char* kLightning =
    "seed_everything: 42\ntrainer:\n  max_epochs: 5\n  devices: auto\n  logger: null\n  callbacks:\n"
    "    - class_path: lightning.pytorch.callbacks.ModelCheckpoint\nmodel:\n  class_path: my.Classifier\n"
    "  init_args:\n    model_name: resnet18\n    num_classes: 10\ndata:\n  class_path: my.Images\n  init_args:\n"
    "    batch_size: 32\n    num_workers: 2\n    image_size: 64\noptimizer:\n  class_path: torch.optim.AdamW\n"
    "  init_args:\n    lr: 0.002\n    betas: [0.8, 0.95]\nlr_scheduler:\n"
    "  class_path: torch.optim.lr_scheduler.CosineAnnealingLR\n  init_args:\n    T_max: 5\n    eta_min: 0.0001\n"
    "ckpt_path: null\n";

TEST_F(ForeignKeysTest, AWholeFileForLightningCliStartsARun) {
  const auto c = read(kLightning);
  EXPECT_EQ(c->options.model.model, "resnet18");
  EXPECT_EQ(c->options.data.num_classes.value(), 10);
  EXPECT_EQ(c->options.data.img_size.value().height, 64);
  EXPECT_EQ(c->options.loader.batch_size.value(), 32);
  EXPECT_EQ(c->options.optim.opt.value(), OptimizerKind::adamw);
  EXPECT_EQ(c->options.optim.lr.value(), 0.002);
  EXPECT_EQ(c->options.optim.beta2, 0.95);
  EXPECT_EQ(c->options.optim.weight_decay, 0.01) << "torch's default";
  EXPECT_EQ(c->options.schedule.sched.value(), ScheduleKind::cosine);
  ASSERT_EQ(c->notes.size(), 1u);
  for (const char* const name : {"my.Classifier", "my.Images", "trainer.callbacks"}) {
    EXPECT_NE(c->notes[0].find(name), std::string::npos) << c->notes[0];
  }
}

TEST_F(ForeignKeysTest, WhatWouldChangeTheTrainingOfALightningFileIsAnError) {
  std::string text = kLightning;
  text.replace(text.find("T_max: 5"), 8, "T_max: 9");
  text.replace(text.find("AdamW"), 5, "Adagrad");
  const std::string path = directory_.write("wrong.yaml", text + "amsgrad: true\n");
  const std::string message = parse_failure({"-c", path, "--data-dir", "x"}).message;
  for (const char* const part : {"T_max: is 9, but max_epochs is 5", "adagrad", "amsgrad"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

constexpr const char* kTimm =
    "aa: rand-m9-mstd0.5-inc1\namp: true\namp_dtype: float16\naug_repeats: 0\naug_splits: 0\nbatch_size: 64\n"
    "bn_eps: null\nclip_grad: null\nclip_mode: norm\ncolor_jitter: 0.4\ncutmix_minmax: null\ndecay_epochs: 90\n"
    "dist_bn: reduce\ndrop_path: null\nepochs: 20\nexperiment: night\nimg_size: null\ninput_size: [3, 96, 96]\n"
    "log_interval: 50\nlog_wandb: true\nlr: null\nlr_base: 0.004\nlr_base_scale: ''\nlr_base_size: 256\n"
    "mixup_mode: batch\nmodel: resnet18.a1_in1k\nmodel_ema: true\nmodel_kwargs: {}\nmomentum: 0.9\nopt: adamw\n"
    "opt_betas: [0.8, 0.95]\nopt_eps: null\noutput: ''\npretrained: false\nratio: [0.8, 1.25]\nrecount: 1\n"
    "reprob: 0.25\nresume: ''\nscale: [0.35, 1.0]\nsched: cosine\nsmoothing: 0.1\ntta: 0\nval_split: validation\n"
    "vflip: 0.0\nwarmup_epochs: 5\nworker_seeding: all\nworkers: 4\n";

TEST_F(ForeignKeysTest, AnInputSizeOfTimmNeedNotBeSquare) {
  std::string text = kTimm;
  text.replace(text.find("[3, 96, 96]"), 11, "[3, 96, 320]");
  EXPECT_EQ(read(text)->options.data.img_size.value(), (ImageSize{96, 320}));
}

TEST_F(ForeignKeysTest, AnArgsFileOfTimmStartsARun) {
  const auto c = read(kTimm);
  const Options& options = c->options;
  EXPECT_EQ(options.augment.rand_augment, (std::vector<double>{2, 27}));
  EXPECT_TRUE(options.augment.color_jitter.empty()) << "a policy takes its place in timm";
  EXPECT_EQ(options.augment.scale_min, 0.35);
  EXPECT_EQ(options.optim.beta1, 0.8);
  EXPECT_EQ(options.augment.ratio_max, 1.25);
  EXPECT_EQ(options.augment.train_crop.value(), TrainCrop::random_resized);
  EXPECT_EQ(options.precision.amp_dtype.value(), AmpDtype::float16);
  EXPECT_EQ(options.data.img_size.value().height, 96);
  EXPECT_EQ(options.data.in_chans.value(), 3);
  EXPECT_EQ(options.model.model, "resnet18");
  EXPECT_EQ(options.optim.lr.value(), 0.002) << "0.004 x root of 64 / 256";
  EXPECT_EQ(options.optim.beta2, 0.95);
  EXPECT_EQ(options.run.report_every.unit, Interval::Unit::updates);
  EXPECT_EQ(options.run.report_every.amount, 50);
  EXPECT_EQ(options.run.run_dir.value(), "runs/night");
  EXPECT_EQ(options.augment.vflip, 0);
  const auto noted = [&](const std::string& words) {
    return std::any_of(c->notes.begin(), c->notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(noted("rand-m9-mstd0.5-inc1"));
  EXPECT_TRUE(noted("ignored: dist_bn, log_wandb, worker_seeding"));
  EXPECT_TRUE(noted("lr is 0.002"));
}

TEST_F(ForeignKeysTest, WhatWouldChangeTheTrainingOfATimmFileIsAnError) {
  std::string text = kTimm;
  text.replace(text.find("aug_splits: 0"), 13, "aug_splits: 3");
  const std::string path = directory_.write("wrong.yaml", text + "jsd_loss: true\nsome_new_key: 3\n");
  const std::string message = parse_failure({"-c", path, "--data-dir", "x"}).message;
  for (const char* const part : {"aug_splits: there is no such option", "jsd_loss: there is no such option",
                                 "unknown option \"some_new_key\""}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  const std::string bce = directory_.write("bce.yaml", kTimm + std::string("bce_loss: true\nbce_target_thresh: 0.2\n"));
  const Loss loss = parsed({"-c", bce, "--data-dir", "x"})->options.task.loss.value();
  EXPECT_EQ(loss.kind, LossKind::bce);
  EXPECT_EQ(loss.numbers, std::vector<double>{0.2});
}

TEST_F(ForeignKeysTest, PretrainedIsTheNameOfWeights) {
  const auto weights = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--data-dir", "x"});
    return parsed(words)->options.model.init_from;
  };
  EXPECT_EQ(weights({"--pretrained"}), "default");
  EXPECT_EQ(weights({"--pretrained", "-b", "8"}), "default");
  EXPECT_EQ(weights({"--pretrained", "resnet50.a1_in1k"}), "resnet50.a1_in1k");
  EXPECT_EQ(weights({"--pretrained", "false"}), "");
  EXPECT_EQ(weights({"--weights", "DEFAULT"}), "default");
  EXPECT_EQ(weights({"--weights", "ResNet50_Weights.IMAGENET1K_V2"}), "IMAGENET1K_V2");
  EXPECT_EQ(weights({"-c", directory_.write("own.yaml", "pretrained: true\n")}), "default");
  std::string timm = kTimm;
  timm.replace(timm.find("pretrained: false"), 17, "pretrained: true");
  const std::string model = timm.substr(timm.find("model: ") + 7);
  const std::string name = model.substr(0, model.find('\n'));
  EXPECT_EQ(weights({"-c", directory_.write("timm.yaml", timm)}),
            name.find('.') == std::string::npos ? "default" : name);
  EXPECT_EQ(weights({"-c", directory_.write("lightning.yaml",
                                            "model:\n  class_path: a.B\n  init_args:\n    pretrained: true\n")}),
            "default");
}

TEST_F(ForeignKeysTest, FlagsOfTorchvisionsScriptAreTaken) {
  const auto c = parsed({"--data-path",        "x",   "-a",           "resnet50", "--lr-scheduler",     "steplr",
                         "--lr-warmup-epochs", "5",   "--lr-gamma",   "0.5",      "--lr-step-size",     "20",
                         "--lr-min",           "0.1", "--output-dir", "out",      "--lr-warmup-method", "linear",
                         "--random-erase",     "0.2", "--print-freq", "10"});
  EXPECT_EQ(c->options.model.model, "resnet50");
  EXPECT_EQ(c->options.schedule.sched.value(), ScheduleKind::step);
  EXPECT_EQ(c->options.schedule.warmup_epochs, 5);
  EXPECT_EQ(c->options.schedule.decay_rate, 0.5);
  EXPECT_EQ(c->options.schedule.decay_epochs, 20);
  EXPECT_EQ(c->options.schedule.min_lr, 0.1);
  EXPECT_EQ(c->options.augment.random_erasing, 0.2);
  EXPECT_EQ(c->options.run.run_dir.value(), "out");
}

TEST_F(ForeignKeysTest, APlainLogIntervalCountsUpdates) {
  EXPECT_EQ(read("log_interval: 50\n")->options.run.report_every.unit, Interval::Unit::updates);
  EXPECT_EQ(parsed({"--data-dir", "x", "--log-interval", "50"})->options.run.report_every.amount, 50);
  EXPECT_EQ(parsed({"--data-dir", "x", "--log-interval", "2e"})->options.run.report_every.unit, Interval::Unit::epochs);
  EXPECT_NE(parse_failure({"--data-dir", "x", "--report-every", "50"}).message.find("has no unit"), std::string::npos);
}

TEST_F(ForeignKeysTest, AnyIntegerIsTakenWhereAnotherProgramTakesOne) {
  const struct {
    const char* name;
    const char* above_zero;  // what 20 means, by the option that it stands for
    const char* else_text;   // and what 0, -1 and -7
  } rows[] = {{"max-steps", "20", "0"},
              {"log-interval", "20u", "never"},
              {"save-interval", "20e", "never"},
              {"val-interval", "20e", "never"},
              {"check-val-every-n-epoch", "20e", "never"},
              {"print-freq", "20u", "never"},
              {"log-every-n-steps", "20u", "never"},
              {"total-workers", "", ""}};
  for (const auto& row : rows) {
    for (const char* const number : {"20", "0", "-1", "-7"}) {
      Options options;
      Table table(options);
      std::vector<Assignment> assignments;
      EXPECT_EQ(table.expand(row.name, number, assignments), "") << row.name << " " << number;
      const std::string expected = number[0] == '2' ? row.above_zero : row.else_text;
      ASSERT_EQ(assignments.size(), expected.empty() ? 0u : 1u) << row.name;
      if (expected.empty()) continue;
      EXPECT_EQ(assignments[0].text, expected) << row.name << " " << number;
      EXPECT_EQ(assignments[0].row->assign(assignments[0].text), "") << row.name;
    }
  }
  EXPECT_EQ(read("max_steps: -1\n")->options.train.max_updates, 0);
  EXPECT_EQ(parsed({"--data-dir", "x", "--log-interval", "0"})->options.run.report_every.unit, Interval::Unit::never);
}

TEST_F(ForeignKeysTest, APolicyOfTimmIsTakenOnTheCommandLine) {
  EXPECT_EQ(parsed({"--data-dir", "x", "--aa", "rand-m7-n3"})->options.augment.rand_augment,
            (std::vector<double>{3, 21}));
  const auto wrong = parse_failure({"--data-dir", "x", "--aa", "rand-q7"});
  EXPECT_NE(wrong.message.find("rand-m9-n2"), std::string::npos) << wrong.message;
}

TEST_F(ForeignKeysTest, AnUnknownKeyBelowTrainingIsStillAnError) {
  const std::string path = directory_.write("wrong.yaml", "training:\n  bacth_size: 16\n");
  EXPECT_EQ(parse_failure({"-c", path, "--data-dir", "x"}).message,
            path + ":2: unknown option \"bacth_size\"; did you mean batch-size?");
}

TEST_F(ForeignKeysTest, WhatHasNoMeaningHereIsNotedWithItsPlace) {
  const auto c = read(
      "batch_size: 256\nnum_workers: 12\nprefetch_factor: 3\npin_memory: true\npersistent_workers: true\n"
      "compile_model: true\nmixup_alpha: 0.0\ncutmix_alpha: 0.0\nlabel_smoothing: 0.1\nlr: 0.5\n"
      "precision: 16-mixed\ntotal_workers: 48\nprofile_performance: true\nprofile_gpu_util: true\n");
  EXPECT_EQ(c->options.loader.prefetch_factor, 3);
  EXPECT_EQ(c->options.optim.lr.value(), 0.5);
  EXPECT_EQ(c->options.precision.amp_dtype.value(), AmpDtype::float16);
  const std::string path = directory_.path() + "/theirs.yaml";
  for (const std::string& beginning :
       {"compile-model (" + path + ":6) is accepted and ignored", "total-workers (" + path + ":12) is accepted",
        "profile-performance (" + path + ":13) is accepted", "profile-gpu-util (" + path + ":14) is accepted",
        "persistent-workers (" + path + ":5) is accepted"}) {
    EXPECT_TRUE(std::any_of(c->notes.begin(), c->notes.end(), [&](const std::string& note) {
      return note.rfind(beginning, 0) == 0;
    })) << beginning;
  }
}

TEST_F(ForeignKeysTest, SpecAugmentByOneWordSetsItsMasks) {
  EXPECT_EQ(read("use_specaugment: true\n")->options.augment.freq_masks, 2);
  EXPECT_EQ(read("use_specaugment: true\n")->options.augment.time_masks, 2);
  EXPECT_EQ(read("use_specaugment: false\n")->options.augment.time_masks, 0);
}

TEST_F(ForeignKeysTest, TheirValuesAreChecked) {
  const std::string path = directory_.write("wrong.yaml", "compile_model: maybe\ntotal_workers: many\n");
  const std::string message = parse_failure({"-c", path, "--data-dir", "x"}).message;
  EXPECT_NE(message.find("wrong.yaml:1: compile_model: "), std::string::npos) << message;
  EXPECT_NE(message.find("wrong.yaml:2: total_workers: "), std::string::npos) << message;
}

TEST_F(ForeignKeysTest, TheEnvironmentOfAPythonTrainerSetsTheLogLevelBelowOptions) {
  ::setenv("TRAINER_LOG_LEVEL", "DEBUG", 1);
  const std::string by_environment = parsed({"--data-dir", "x"})->options.log.log_level;
  const std::string by_flag = parsed({"--data-dir", "x", "--log-level", "error"})->options.log.log_level;
  ::setenv("TRAINER_LOG_LEVEL", "chatty", 1);
  const auto wrong = parsed({"--data-dir", "x"});
  ::unsetenv("TRAINER_LOG_LEVEL");
  EXPECT_EQ(by_environment, "debug");
  EXPECT_EQ(by_flag, "error");
  EXPECT_EQ(wrong->options.log.log_level, "info");
  ASSERT_EQ(wrong->notes.size(), 1u);
  EXPECT_EQ(wrong->notes[0].rfind("ignoring TRAINER_LOG_LEVEL", 0), 0u);
}

TEST_F(ForeignKeysTest, ThePageForPeopleWhoComeFromOtherTrainersNamesEachOfThem) {
  std::ostringstream page;
  page << std::ifstream(STOKER_SOURCE_DIR "/docs/how-to/coming-from.md", std::ios::binary).rdbuf();
  const Configuration configuration;
  std::vector<std::string> names = {"training", "optimization", "trainer", "OMP_NUM_THREADS", "TRAINER_LOG_LEVEL"};
  for (const Shorthand& shorthand : configuration.table.shorthands()) names.push_back(shorthand.name);
  for (const Row& row : configuration.table.rows()) {
    for (const std::string& alias : row.aliases) {
      if (alias.size() > 1) names.push_back(alias);
    }
  }
  for (std::string name : names) {
    std::replace(name.begin(), name.end(), '-', '_');
    EXPECT_NE(page.str().find("`" + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace stoker::config
