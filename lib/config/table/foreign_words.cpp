// SPDX-License-Identifier: Apache-2.0
#include "config/table/foreign_words.h"

#include <algorithm>
#include <limits>

#include "config/table/parse_value.h"
#include "config/table/table.h"

namespace stoker::config {
namespace {

using Words = std::vector<ForeignOption>;
using Texts = std::vector<std::string>;

/// The words, and more with one meaning: names below a section, with blanks between them.
Words with(Words words, const std::string& section, const char* names, const char* ours) {
  for (const std::string& name : split_words(names, ' ')) words.push_back({section + name, ours});
  return words;
}

}  // namespace

const std::vector<ForeignOption>& foreign_options() {
  static const std::vector<ForeignOption> words = {
      {"amp-dtype", "auto|float16|bfloat16=amp:*"},
      {"fp16", "true=amp:float16"},
      {"bf16", "true=amp:bfloat16"},
      {"precision", "32|32-true=amp:off; 16|16-mixed=amp:float16; bf16|bf16-mixed=amp:bfloat16"},
      {"nproc-per-node", "N=devices:*"},
      {"gpus", "0=device:cpu; 1=device:cuda; N=device:cuda,devices:*"},
      {"accelerator", "auto=device:auto; cpu=device:cpu; gpu|cuda=device:cuda"},
      {"check-val-every-n-epoch", "N=val-every:*e; I=val-every:never"},
      {"use-specaugment", "true=freq-mask:2,time-mask:2; false=freq-mask:0,time-mask:0"},
      {"lr-warmup-method", "linear="},
      {"compile-model", "true|false=", "networks run as compiled C++, and there is no other compiler"},
      {"enable-progress-bar", "true=progress:bar; false=progress:plain"},
      {"log-every-n-steps", "N=report-every:*u; I=report-every:never"},
      {"persistent-workers", "true|false=", "workers always live as long as the run"},
      {"print-freq", "N=report-every:*u; I=report-every:never"},
      {"profile-gpu-util", "true|false=", "GPU, VRAM, CPU and RAM are always sampled and reported"},
      {"profile-performance",
       "true|false=", "where time goes is always measured and reported; --profile 10u writes a trace"},
      {"total-workers", "I=", "num-workers is the number of each process, and --devices N has N times as many"}};
  return words;
}

const std::vector<ForeignOption>& timm_keys() {
  static const Words explained = {{"aa", "@policy"},
                                  {"amp", "@amp"},
                                  {"amp-dtype", ""},
                                  {"color-jitter", "@color-jitter"},
                                  {"color-jitter-prob", ""},
                                  {"cooldown-epochs", "-=; *=", "it is left out: the run ends after epochs"},
                                  {"drop-path", "drop-path-rate"},
                                  {"gaussian-blur-prob", "gaussian-blur"},
                                  {"grayscale-prob", "grayscale"},
                                  {"initial-checkpoint", "init-from"},
                                  {"input-size", "@input-size"},
                                  {"interpolation", "bilinear|bicubic|lanczos=interpolation:*",
                                   "images are resized by bilinear, bicubic or lanczos"},
                                  {"lr-base", "@lr"},
                                  {"lr-base-scale", ""},
                                  {"lr-base-size", ""},
                                  {"model", "@model"},
                                  {"opt", "momentum=opt:sgd,nesterov:false; *=opt:*"},
                                  {"opt-betas", "betas"},
                                  {"opt-eps", "eps"},
                                  {"output", "@run-dir"},
                                  {"experiment", "@run-dir"},
                                  {"pretrained", "@pretrained"},
                                  {"pretrained-path", "init-from"},
                                  {"train-crop-mode", "rrc=train-crop:random-resized"},
                                  {"tta", "0|0.0|false=; *=tta:*"},
                                  {"val-split", "validation=; *=val-split:*"},  // found by its usual names
                                  {"validation-batch-size", "val-batch-size"},
                                  // Written into every file, and used beside others only.
                                  {"bce-loss", "@bce"},
                                  {"bce-target-thresh", ""},
                                  {"clip-mode", "clip-mode", "", "clip_grad"},
                                  {"decay-epochs", "decay-epochs", "", "sched=step"},
                                  {"decay-milestones", "decay-milestones", "", "sched=multistep"},
                                  {"decay-rate", "decay-rate", "", "sched=step|multistep|plateau"},
                                  {"patience-epochs", "plateau", "", "sched=plateau"},
                                  {"momentum", "momentum", "", "opt=sgd|momentum|rmsprop|muon"},
                                  {"warmup-prefix", ""},
                                  // Without a counterpart: off, or the run would be another one.
                                  {"class-map", "-=", "classes are the names of the folders"},
                                  {"drop-connect", "-=", "write drop_path"},
                                  {"epoch-repeats", "-=", "write more epochs"},
                                  {"lr-cycle-limit", "-|1|1.0="},
                                  {"lr-cycle-mul", "-|1|1.0="},
                                  {"lr-k-decay", "-|1|1.0="},
                                  {"mixup-mode", "-|batch="},
                                  {"model-dtype", "-|float32=", "write amp: true"},
                                  {"no-aug", "-=", "write train_crop: center, hflip: 0 and no augmentation"},
                                  {"recount", "-|1|1.0="},
                                  {"start-epoch", "-=", "resume: auto continues an interrupted run"}};
  // The same without advice, and what changes nothing here whatever its value.
  static const Words keys = with(
      with(explained, "",
           "aug-repeats aug-splits bce-pos-weight bce-sum bn-eps cutmix-minmax "
           "drop-block gp head-init-bias head-init-scale jsd-loss lr-noise mixup-off-epoch model-kwargs naflex-loader "
           "opt-kwargs resplit split-bn train-num-samples val-num-samples",
           "-="),
      "",
      "amp-impl apex-amp dataset-download dataset-trust-remote-code device-modules dist-bn fast-norm fuser "
      "input-img-mode input-key local-rank log-wandb lr-cycle-decay lr-noise-pct lr-noise-std "
      "model-ema-force-cpu native-amp no-ddp-bb no-prefetcher no-resume-opt recovery-interval remode "
      "save-images sched-on-updates synchronize-step target-key torchcompile torchcompile-mode torchscript "
      "train-interpolation use-multi-epochs-loader wandb-project wandb-resume-id wandb-tags worker-seeding",
      "*=");
  return keys;
}

const std::vector<ForeignOption>& lightning_keys() {
  static const Words single = {
      {"ckpt-path", "resume"},
      {"seed-everything", "true|false=; *=seed"},  // any seed
      {"model.pretrained", "init-from"},
      {"trainer.devices", "auto|-1=; *=devices"},
      {"trainer.gradient-clip-algorithm", "clip-mode"},
      {"trainer.max-steps", "-1=; *=max-updates"},
      {"trainer.num-nodes", "1=", "start the processes of each machine with torchrun or Slurm"},
      {"trainer.val-check-interval", "1.0=; N=val-every:*u; *=val-every:*e"},
      {"lr-scheduler.last-epoch", ""},
      {"lr-scheduler.verbose", ""},
      {"lr-scheduler.cosineannealinglr", "cosine"},
      {"lr-scheduler.cosineannealinglr.T-max", "@period"},
      {"lr-scheduler.cosineannealinglr.eta-min", "min-lr"},
      {"lr-scheduler.steplr", "step"},
      {"lr-scheduler.steplr.step-size", "decay-epochs"},
      {"lr-scheduler.steplr.gamma", "decay-rate"},
      {"lr-scheduler.multisteplr", "multistep"},
      {"lr-scheduler.multisteplr.milestones", "decay-milestones"},
      {"lr-scheduler.multisteplr.gamma", "decay-rate"},
      {"lr-scheduler.onecyclelr", "one-cycle"},
      {"lr-scheduler.onecyclelr.max-lr", "lr"},
      {"lr-scheduler.onecyclelr.pct-start", "@one-cycle"},
      {"lr-scheduler.onecyclelr.div-factor", "@one-cycle"},
      {"lr-scheduler.onecyclelr.final-div-factor", "@one-cycle"}};
  static const Words trainer =
      with(with(with(single, "trainer.",
                     "barebones benchmark callbacks default-root-dir detect-anomaly enable-checkpointing "
                     "enable-model-summary inference-mode logger num-sanity-val-steps profiler "
                     "reload-dataloaders-every-n-epochs strategy use-distributed-sampler",
                     "auto=; *="),
                "trainer.", "limit-test-batches limit-train-batches limit-val-batches", "1.0="),
           "trainer.", "fast-dev-run overfit-batches", "-=");
  static const Words keys = with(with(with(trainer, "optimizer.", "capturable foreach fused", "*="), "optimizer.",
                                      "amsgrad dampening differentiable maximize", "-="),
                                 "model.", "model-name backbone name architecture net", "model");
  return keys;
}

namespace {

/// Options of command lines that are reported and not read, so that one spelling of each remains.
const std::vector<ForeignOption>& words_of_command_lines() {
  static const Words explained = {
      {"batch", "-1=batch-size:auto; *=batch-size"},
      {"bce-loss", "false=; *=loss:bce"},
      {"cos-lr", "true=sched:cosine; *="},
      {"device", "0|N=device:cuda:*; 0,1|0,1,2,3=devices; *=device"},
      {"distributed", "*=", "processes are started by --devices N or torchrun"},
      {"gpu", "0|N=device:cuda:*; *=devices"},
      {"gpu-id", "0|N=device:cuda:*"},
      {"local-rank", "*=", "torchrun's variables are read"},
      {"name", "*=run-dir:runs/*"},
      {"experiment", "*=run-dir:runs/*"},
      {"no-cuda", "*=device:cpu"},
      {"cpu", "*=device:cpu"},
      {"strategy", "*=", "--devices N trains on N devices, data parallel"},
      {"logger", "*=", "--tensorboard and --report write files"},
      {"cuda", "*=device:cuda"},
      {"use-gpu", "false=device:cpu; *=device:cuda"},
      {"resume", "true=resume:auto; false=; *=resume"},
      {"save-period", "-1=; N=save-every:*e"},
      {"eval-steps", "N=val-every:*u"},
      {"val-check-interval", "1.0=; N=val-every:*u; *=val-every:*e"},
      {"save-steps", "N=save-every:*u"},
      {"logging-steps", "N=report-every:*u"},
      {"warmup-steps", "*=", "--warmup-epochs takes epochs, fractions too: steps / updates of an epoch"},
      {"num-warmup-steps", "*=", "--warmup-epochs takes epochs, fractions too: steps / updates of an epoch"},
      {"warmup-ratio", "*=", "--warmup-epochs takes epochs: the ratio x --epochs"},
      {"limit-train-batches", "1.0=; N=; *=fraction:*", "--fraction 0.1 trains on a share of the images"},
      {"limit-val-batches", "*=", "the whole validation split is evaluated; --val-every sets how often"},
      {"wandb", "*=", "--tensorboard and --report write files"},
      {"log-wandb", "*=", "--tensorboard and --report write files"},
      {"report-to", "tensorboard=tensorboard:true; *=", "--tensorboard and --report write files"},
      {"test-only", "*=", "train eval RUN evaluates"},
      {"evaluate", "*=", "train eval RUN evaluates"},
      {"do-eval", "*=", "every epoch is validated; train eval RUN evaluates"},
      {"do-train", "*="},
      {"do-predict", "*=", "train predict RUN IMAGES predicts"},
      {"start-epoch", "*=", "the same command resumes"},
      {"overwrite-output-dir", "*=", "--fresh starts over"},
      {"exist-ok", "*=", "the same command resumes, --fresh starts over"}};
  static const std::vector<std::pair<const char*, const char*>> same = {
      {"data-dir", "train-dir data-root root dataset-path data-folder train-data traindir"},
      {"epochs", "num-epochs n-epochs num-train-epochs"},
      {"batch-size", "per-device-train-batch-size train-batch-size bs"},
      {"val-batch-size", "per-device-eval-batch-size eval-batch-size test-batch-size"},
      {"num-workers", "dataloader-num-workers num-data-workers"},
      {"lr", "lr0 base-lr"},
      {"opt", "optimizer optim"},
      {"weight-decay", "l2"},
      {"label-smoothing", "label-smoothing-factor"},
      {"hflip", "fliplr"},
      {"vflip", "flipud"},
      {"rotation", "degrees"},
      {"random-erasing", "erasing"},
      {"effective-batch-size", "nbs"},
      {"model", "model-name-or-path model-name net network"},
      {"run-dir", "log-dir save-dir out-dir outdir exp-dir results-dir work-dir"},
      {"init-from", "pretrained ckpt checkpoint pretrained-path finetune"},
      {"eval-metric", "metric-for-best-model"},
      {"patience", "early-stopping-patience early-stop-patience early-stopping-rounds"},
      {"keep-last", "save-total-limit"},
      {"sched", "lr-scheduler-type"}};
  static const Words words = [] {
    Words all =
        with(explained, "",
             "plots save val verbose rect show task mode profile-model torchcompile torch-compile compile "
             "world-size rank dist-url dist-backend dist-eval multiprocessing-distributed apex-amp workers-seed "
             "channels-first pin-memory-device half int8 save-json save-txt save-conf lrf",
             "*=");
    for (const auto& [ours, theirs] : same) all = with(all, "", theirs, ours);
    return all;
  }();
  return words;
}

/// timm's channels, height and width; channels follow from the data, where they are three.
void set_input_size(const Texts& sizes, std::vector<std::pair<std::string, std::string>>& options) {
  if (sizes.size() == 3 && sizes[0] != "3") options.emplace_back("in-chans", sizes[0]);
  const std::string& width = sizes.back();
  const std::string height = sizes.size() < 2 ? width : sizes[sizes.size() - 2];
  options.emplace_back("img-size", height == width ? width : height + "," + width);
}

}  // namespace

std::string without_brackets(std::string text) {
  const auto is_bracket = [](char c) { return c == '[' || c == ']' || c == '(' || c == ')' || c == ' '; };
  text.erase(std::remove_if(text.begin(), text.end(), is_bracket), text.end());
  return text;
}

bool translate_foreign_option(const std::string& name, std::string text,
                              std::vector<std::pair<std::string, std::string>>& options, std::string& note) {
  if (text == "True" || text == "False" || text == "None") text[0] = static_cast<char>(text[0] + ('a' - 'A'));
  if (name == "input-size") {
    set_input_size(split_words(without_brackets(text), ','), options);
    return true;
  }
  const auto has_name = [&](const ForeignOption& word) { return word.name == name; };
  const Words* const tables[] = {&words_of_command_lines(), &lightning_keys(), &timm_keys()};
  for (const Words* const words : tables) {
    const auto word = std::find_if(words->begin(), words->end(), has_name);
    if (word == words->end() || word->ours[0] == '\0' || word->ours[0] == '@') continue;
    const std::string ours = word->ours;
    note = word->note;
    if (ours.find('=') == std::string::npos) {
      options.emplace_back(ours, text);
      return true;
    }
    for (const ForeignCase& one : cases_of(*word)) {
      const auto fits = [&](const std::string& pattern) { return fits_pattern(pattern, text); };
      if (std::none_of(one.patterns.begin(), one.patterns.end(), fits)) continue;
      for (const auto& [option, value] : one.values) options.emplace_back(option, filled_in(value, text));
      return true;
    }
    if (note.empty() && words != tables[0]) note = "there is no such option here";
    return true;
  }
  return false;
}

std::string foreign_run_dir(const std::vector<std::string>& words) {
  const auto value_of = [&](const std::string& key) -> std::string {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string word = words[i].substr(std::min(words[i].find_first_not_of('-'), words[i].size()));
      if (word.rfind(key + "=", 0) == 0) return word.substr(key.size() + 1);
      if (word == key && word != words[i] && i + 1 < words.size()) return words[i + 1];
    }
    return "";
  };
  const std::string project = value_of("project"), name = value_of("name");
  return name.empty() ? project : (project.empty() ? "runs" : project) + "/" + name;
}

const std::vector<ForeignDefault>& foreign_defaults() {
  static const std::vector<ForeignDefault> defaults = {{"timm", "train-crop", "random-resized"},
                                                       {"timm", "drop-path-rate", "0"},
                                                       {"optimizer.adamw", "weight-decay", "0.01"},
                                                       {"optimizer.rmsprop", "momentum", "0"},
                                                       {"optimizer.rmsprop", "lr", "0.01"},
                                                       {"optimizer.nadam", "lr", "0.002"},
                                                       {"optimizer", "weight-decay", "0"},
                                                       {"optimizer", "decay-norm-and-bias", "true"},
                                                       {"optimizer", "lr", "0.001"},
                                                       {"optimizer.sgd", "momentum", "0"},
                                                       {"optimizer.sgd", "nesterov", "false"},
                                                       {"lr-scheduler", "warmup-epochs", "0"},
                                                       {"lr-scheduler.steplr", "decay-rate", "0.1"},
                                                       {"lr-scheduler.multisteplr", "decay-rate", "0.1"},
                                                       {"lr-scheduler.cosineannealinglr", "min-lr", "0"}};
  return defaults;
}

std::vector<ForeignCase> cases_of(const ForeignOption& word) {
  std::vector<ForeignCase> cases;
  for (const std::string& text : split_words(word.ours, ';')) {
    const size_t equals = text.find('=');
    ForeignCase read{split_words(text.substr(0, equals), '|'), {}};
    const std::string values = text.substr(equals + 1);
    for (const std::string& value : split_words(values, ',')) {
      if (value.empty()) continue;
      const size_t colon = value.find(':');
      read.values.emplace_back(value.substr(0, colon), colon == std::string::npos ? "*" : value.substr(colon + 1));
    }
    cases.push_back(std::move(read));
  }
  return cases;
}

bool fits_pattern(const std::string& pattern, const std::string& text) {
  const std::string small = core::lower_case(text);
  if (pattern == "*") return true;
  if (pattern == "-") return small.empty() || small == "false" || small == "0" || small == "0.0";
  int64_t ignored = 0;
  if (pattern == "I")
    return read_integer(text, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), ignored)
        .empty();
  if (pattern == "N") return read_integer(text, 1, 1'000'000'000'000, ignored).empty();
  return core::lower_case(pattern) == small;
}

std::string filled_in(std::string text, const std::string& theirs) {
  const size_t star = text.find('*');
  return star == std::string::npos ? text : text.replace(star, 1, theirs);
}

namespace {

std::string with_commas(const Texts& parts) {
  std::string text = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) text += "," + parts[i];
  return text;
}

std::string amp_of(const Texts& old) { return old[0] == "true" && old[1] != "auto" ? old[1] : old[0]; }

std::string policy_of(const Texts& old) {
  const Texts rand = split_words(old[0], ',');
  double strength = 0;
  if (old[1] == "true") return "ta-wide";
  if (rand.size() != 2 || !read_number(rand[1], {0, 30}, strength).empty()) return "none";
  return "rand-m" + number_text(strength / 3) + "-n" + rand[0];
}

std::string jitter_of(const Texts& old) { return old[0] == "none" || old[1] == "1" ? old[0] : old[0] + ",p" + old[1]; }

std::string cycle_of(const Texts& old) { return old[0] == "false" ? "off" : old[1] + "," + old[2]; }

struct OldOption {
  const char* name;
  const char* usual;  ///< what a run did that does not name it
};

struct Merged {
  const char* now;  ///< "": gone, and `example` is what to do
  const char* example;
  std::vector<OldOption> old;  ///< one may have today's name
  std::string (*text)(const Texts& old) = with_commas;
};

const std::vector<Merged>& merged_options() {
  static const std::vector<Merged> all = {
      {"amp", "bfloat16", {{"amp", "auto"}, {"amp-dtype", "auto"}}, amp_of},
      {"auto-augment",
       "ra or rand-m9-n2 or ta-wide",
       {{"rand-augment", "none"}, {"trivial-augment", "false"}},
       policy_of},
      {"scale", "0.08,1", {{"scale-min", "0.08"}, {"scale-max", "1"}}},
      {"ratio", "0.75,1.33", {{"ratio-min", "0.75"}, {"ratio-max", "1.3333333333333333"}}},
      {"color-jitter", "0.4,0.4,0.4,0.1,p0.8", {{"color-jitter", "none"}, {"color-jitter-prob", "1"}}, jitter_of},
      {"gaussian-blur",
       "0.5,23,0.1,2",
       {{"gaussian-blur", "0"},
        {"gaussian-blur-kernel", "23"},
        {"gaussian-blur-sigma-min", "0.1"},
        {"gaussian-blur-sigma-max", "2"}}},
      {"gaussian-noise", "0.05,0.5", {{"gaussian-noise", "0"}, {"gaussian-noise-prob", "1"}}},
      {"freq-mask", "2,8", {{"freq-masks", "0"}, {"freq-mask-param", "8"}}},
      {"time-mask", "2,8", {{"time-masks", "0"}, {"time-mask-param", "8"}}},
      {"frame-sampling", "stride,2", {{"frame-sampling", "uniform"}, {"frame-stride", "1"}}},
      {"hdf5", "train/x,train/y", {{"hdf5-input", ""}, {"hdf5-label", ""}}},
      {"on-bad-image", "skip,10", {{"on-bad-image", "fail"}, {"max-bad", "10"}}},
      {"pose-head",
       "binned,66,99,1",
       {{"pose-head", "direct"}, {"pose-bins", "66"}, {"pose-range", "99"}, {"pose-loss-weight", "1"}}},
      {"betas", "0.9,0.999", {{"beta1", "0.9"}, {"beta2", "0.999"}}},
      {"one-cycle",
       "0.3,25,10000",
       {{"one-cycle-pct-start", "0.3"}, {"one-cycle-div-factor", "25"}, {"one-cycle-final-div-factor", "10000"}}},
      {"one-cycle-momentum",
       "0.85,0.95 or off",
       {{"one-cycle-momentum", "false"}, {"one-cycle-base-momentum", "0.85"}, {"one-cycle-max-momentum", "0.95"}},
       cycle_of},
      {"patience", "10,0.001", {{"patience", "0"}, {"min-delta", "0"}}},
      {"loss-scale", "65536,2000", {{"init-scale", "65536"}, {"scale-growth-interval", "2000"}}},
      {"", "leave it out: convolutions of float32 are LibTorch's, which rounds otherwise", {{"winograd", "false"}}},
      {"", "leave it out: --devices N computes N replicas at once", {{"lanes", "1"}}}};
  return all;
}

}  // namespace

std::string old_name_hint(const std::string& name, bool is_flag) {
  const std::string wanted = kebab(name), plain = wanted.rfind("no-", 0) == 0 ? wanted.substr(3) : wanted;
  for (const Merged& merged : merged_options()) {
    const std::string now = merged.now;
    if (now == plain) continue;  // today's name, which this command does not take
    for (const OldOption& old : merged.old) {
      if (old.name != wanted && old.name != plain) continue;
      if (now.empty()) return std::string("was removed; ") + merged.example;
      const std::string example = (is_flag ? "--" + now + " " : now + ": ") + merged.example;
      const bool is_part = merged.old.size() > 1 && merged.text == with_commas;
      return is_part ? "is a part of " + now + " now, as in " + example : "was renamed: write " + example;
    }
  }
  return "";
}

std::vector<RenamedOption> renamed_options(const OptionTexts& texts) {
  std::vector<RenamedOption> renamed;
  for (const Merged& merged : merged_options()) {
    RenamedOption option;
    Texts parts;
    bool is_old = false;
    for (const OldOption& old : merged.old) {
      const auto found = texts.find(old.name);
      parts.push_back(found == texts.end() ? old.usual : found->second);
      if (found == texts.end()) continue;
      option.old.push_back(old.name);
      is_old = is_old || std::string(old.name) != merged.now;
    }
    if (!is_old) continue;
    option.now = merged.now;
    option.text = merged.text(parts);
    renamed.push_back(std::move(option));
  }
  // Runs of classes had the loss of numbers in their record, without effect.
  const auto task = texts.find("task"), loss = texts.find("loss");
  const bool is_class =
      task != texts.end() && (task->second == "multiclass" || task->second == "binary" || task->second == "multilabel");
  if (is_class && loss != texts.end() &&
      (loss->second == "smooth-l1" || loss->second == "l1" || loss->second == "l2")) {
    renamed.push_back({{"loss"}, "loss", task->second == "multiclass" ? "cross-entropy" : "bce"});
  }
  return renamed;
}

OptionTexts with_current_names(OptionTexts texts) {
  for (const RenamedOption& option : renamed_options(texts)) {
    for (const std::string& name : option.old) texts.erase(name);
    if (!option.now.empty()) texts[option.now] = option.text;
  }
  Options options;
  Table table(options);
  for (auto& [name, text] : texts) {
    Row* const row = table.find(name);
    if (row && row->assign(text).empty()) text = row->render();
  }
  return texts;
}

}  // namespace stoker::config
