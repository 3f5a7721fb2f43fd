// SPDX-License-Identifier: Apache-2.0
// Rows of the groups model, optim, schedule and train. Independent of how options are read or shown.
#include <limits>
#include <set>

#include "config/table/declaration.h"
#include "config/task_facts.h"

namespace stoker::config {
namespace {

constexpr Bounds kNotNegative{0, std::numeric_limits<double>::infinity()};
constexpr Bounds kPositive{0, std::numeric_limits<double>::infinity(), true};
constexpr Bounds kBelowOne{0, 1, false, true};

/// Other trainers' words for the usual weights of a network; torchvision's ResNet50_Weights.IMAGENET1K_V2.
Codec<std::string> weights_codec() {
  Codec<std::string> codec = text_codec("NAME|FILE|RUN", true);
  codec.parse = [read = codec.parse](const std::string& text, std::string& value) {
    static const std::set<std::string> kUsual = {"true", "True", "yes", "DEFAULT", "imagenet", "pretrained"};
    const size_t begin = text.find("_Weights.");
    const std::string name = begin == std::string::npos ? text : text.substr(begin + 9);
    return read(name == "false" || name == "False" || name == "none" ? ""
                : kUsual.count(name) > 0                             ? kDefaultWeights
                                                                     : name,
                value);
  };
  return codec;
}

template <template <typename> class Pick>
void declare_model(Declaration& d, ModelOptionsOf<Pick>& o) {
  d.group("model", "Network");
  d.add("model", o.model, text_codec("NAME", false))
      .alias({"m", "a", "arch"})
      .help(
          "Network; a name of `train list models`, or FILE.ts with --trust-model. Default: small_cnn up to 64 pixels, "
          "else resnet18, or mobilenet_v3_small on a CPU where resnet18 would take more than an hour.")
      .shown_default("by image size");
  d.add("init-from", o.init_from, weights_codec())
      .alias({"pretrained", "weights"})
      .help(
          "Weights to start from (--pretrained alone: those usual for the network): default or the name of a network, "
          "as in resnet50 or resnet50.a1_in1k (the newest match in $STOKER_WEIGHTS and the caches of PyTorch and "
          "Hugging Face), a file, a folder, a run; empty: random weights. Use pretrained weights wherever there are "
          "some.");
  d.add_switch("fresh-head", o.fresh_head)
      .help(
          "Start the classifier at random, whatever init-from has. Without it, rows of classes with the same name in a "
          "run are taken over. Use it where classes of the same name look different.")
      .free_on_resume();
  d.add("init-norm-eps", o.init_norm_eps, number_codec(kBelowOne))
      .help(
          "Epsilon of the batch norms that init-from was trained with; 0: that of the library whose names it has. Set "
          "0.001 "
          "for TensorFlow's weights (timm's tf_*).")
      .expert()
      .free_on_resume();
  d.add_switch("same-padding", o.same_padding)
      .value_in_older_runs("false")
      .help(
          "EfficientNet, MobileNetV3: pad as TensorFlow does. Set it with init-from for its weights (timm's tf_*, "
          "Hugging "
          "Face's EfficientNet).")
      .expert();
  d.add_switch("zero-init-residual", o.zero_init_residual)
      .help("Start the last batch norm of each residual block at 0 (ResNets). Use it in long runs with large batches.")
      .expert();
  d.add("width", o.width, integer_codec(1, 1024))
      .unit("channels")
      .help(
          "small_cnn, tiny_cnn, resnet9: channels of the first stage; later ones have 2, 4 and, in resnet9, 8 times as "
          "many. Raise it for harder data; time grows with its square.");
  d.add("backbone", o.backbone, text_codec("NAME", false))
      .help(
          "two_stream_convlstm: the network that sees single frames, once for each stream. Use a larger one where "
          "single frames are hard.");
  d.add("lstm-channels", o.lstm_channels, integer_codec(1, 4096))
      .unit("channels")
      .help("two_stream_convlstm: width of each stream's memory over time. Raise it for complex movements.");
  d.add("drop-rate", o.drop_rate, number_codec(kBelowOne))
      .alias({"drop", "dropout"})
      .help(
          "Dropout before the classifier; auto is torchvision's for the network. Raise it where a small data set "
          "overfits.");
  d.add("drop-path-rate", o.drop_path_rate, number_codec(kBelowOne))
      .alias({"drop-path", "stochastic-depth"})
      .help(
          "Stochastic depth of the last residual branch, rising from 0 at the first; auto is torchvision's. Raise it "
          "for large networks in long runs.");
  d.add("freeze", o.freeze, text_codec("PATTERN[,..]", true))
      .help(
          "Frozen parameters: globs over names of parameters or modules, as in conv1,layer1.*; !PATTERN "
          "excludes some, as in *,!fc. Use it with pretrained weights and little data.");
  d.add("freeze-for", o.freeze_for, epochs_or_updates_codec())
      .counted_alias("freeze-epochs", "e", "never")
      .value_in_older_runs("never")
      .help(
          "Epochs or updates, as in 2e or 500u, after which frozen parameters are trained, too; without --freeze all "
          "but the classifier is frozen until then. never: what --freeze names stays frozen. Use 1e to 5e with "
          "pretrained weights and a new classifier.");
  d.add("lora", o.lora, integer_codec(0, 4096))
      .value_in_older_runs("0")
      .help(
          "Low-rank fine-tuning (LoRA): weights are frozen, and each linear layer of a ViT, Swin or ConvNeXt learns a "
          "product of this rank beside them, with alpha twice the rank; the classifier learns as usual. Use 4 to 16 "
          "with init-from where memory is short; 0: off.");
  d.add("teacher", o.teacher, text_codec("RUN|FILE.ts", true))
      .help(
          "Learn from the outputs of this network, too (distillation): the best checkpoint of a run with the same "
          "classes, or FILE.ts with --trust-model. Use it where a large network is good and a small one is wanted.");
  d.add("bn-momentum", o.bn_momentum, number_codec({0, 1}))
      .value_in_older_runs("0")
      .help(
          "Share of the newest batch in batch norm's running statistics; 0: the network's own, 0.1 or 0.01. Lower it "
          "for "
          "small batches, raise it for short runs.")
      .expert();
  d.add_switch("sync-bn", o.sync_bn)
      .alias({"sync-batchnorm"})
      .value_in_older_runs("false")
      .help(
          "Batch norms see the batches of all processes as one, as on one device; each process holds one replica. Use "
          "it "
          "where a batch per device is below 16 or so.");
  d.add("precise-bn", o.precise_bn, integer_codec(0, 1'000'000'000))
      .value_in_older_runs("0")
      .unit("images")
      .help(
          "Recompute batch norm's running statistics after the last update, as the mean over this many training "
          "images; "
          "0: keep those of training. Use 8192 or so where results on validation data jump at the end.")
      .expert();
  d.add_switch("grad-checkpointing", o.grad_checkpointing)
      .alias({"gradient-checkpointing", "activation-checkpointing"})
      .help(
          "Keep only the input of each stage and compute the rest again in the backward pass: less memory, about a "
          "third more work, the same results. Use it where batches do not fit.")
      .free_on_resume();
}

template <template <typename> class Pick>
void declare_optimizer(Declaration& d, OptimOptionsOf<Pick>& o) {
  using Of = OptimOptionsOf<Pick>;
  d.group("optim", "Optimizer");
  d.add("opt", o.opt,
        choice_codec(words_in_order<OptimizerKind>("sgd adam adamw rmsprop nadam lion lamb muon"),
                     {{"SGD", OptimizerKind::sgd},
                      {"Adam", OptimizerKind::adam},
                      {"AdamW", OptimizerKind::adamw},
                      {"RMSprop", OptimizerKind::rmsprop},
                      {"NAdam", OptimizerKind::nadam},
                      {"Lion", OptimizerKind::lion},
                      {"LAMB", OptimizerKind::lamb},
                      {"Lamb", OptimizerKind::lamb},
                      {"Muon", OptimizerKind::muon}}))
      .alias({"optimizer"})
      .help(
          "Optimizer; auto: adamw for the tasks regression and head-pose, else sgd. Use adamw for transformers, lamb "
          "for very large batches; muon moves matrices, adamw the classifier, norms and biases. A resumed run keeps "
          "that of its start.");
  d.add("lr", o.lr, number_codec(kPositive))
      .alias({"learning-rate"})
      .help(
          "Peak learning rate; auto is lr-base x images per update / 256. Set it for pretrained weights, about a tenth "
          "of auto; where lr-base is not given, auto uses 0.4 for one-cycle by sched auto, 0.001 x the square root of "
          "images / 256 for optimizers like adam (lamb 0.003, lion 0.0001), 0.002 where opt auto chose adamw.");
  d.add("lr-base", o.lr_base, number_codec(kPositive))
      .unit("per 256 images")
      .help(
          "Learning rate per 256 images, from which an automatic lr is scaled. Set it in configurations for several "
          "batch sizes.")
      .expert();
  d.add("momentum", o.momentum, number_codec(kBelowOne))
      .help("Momentum of sgd, rmsprop and muon (unless given 0.95). Rarely changed.");
  d.add_switch("nesterov", o.nesterov)
      .help("Nesterov momentum for sgd and muon. Turn it off to compare with programs without.");
  d.add_parts("betas",
              {{"BETA1", o, &Of::beta1, number_codec(kBelowOne)}, {"BETA2", o, &Of::beta2, number_codec(kBelowOne)}}, 2)
      .help(
          "Adam-type optimizers: decay of the first and of the second moment; unless given, lion and rmsprop, whose "
          "alpha "
          "is BETA2, have 0.99. Lower BETA2, to 0.95 or so, where long runs of transformers spike.");
  d.add("eps", o.eps, number_codec(kPositive))
      .help(
          "Adam-type optimizers: added to the denominator; unless given, lamb has 1e-6. Raise it, to 1e-6 or so, where "
          "float16 training is unstable.")
      .expert();
  d.add("weight-decay", o.weight_decay, number_codec(kNotNegative))
      .alias({"wd"})
      .help(
          "Decay of the weights; decoupled for adamw, lion, lamb and muon, added to the gradient otherwise. Use 0.05 "
          "or "
          "so with adamw; as "
          "in timm, biases, norms, layer scales, position embeddings and class tokens do not decay.");
  d.add_switch("decay-norm-and-bias", o.decay_norm_and_bias)
      .help(
          "Decay every parameter: biases, norms, layer scales, position embeddings and class tokens as well. Set it to "
          "compare with plain PyTorch optimizers.")
      .expert();
  d.add("layer-decay", o.layer_decay, number_codec({0, 1, true, false}))
      .unit("per layer")
      .help(
          "Each layer learns with this share of the learning rate of the layer after it; the classifier has all of it. "
          "Use 0.65 to 0.8 to fine-tune transformers; layers are timm's: the stem, each block, the classifier.");
  d.add("backbone-lr", o.backbone_lr, number_codec({0, 100, true, false}))
      .value_in_older_runs("1")
      .unit("of lr")
      .help(
          "Learning rate of all but the classifier, as a share of lr, and of layer-decay's. Use 0.1 to fine-tune "
          "pretrained weights with a new classifier.");
  d.add("clip-grad", o.clip_grad, number_codec(kNotNegative))
      .alias({"clip-grad-norm", "max-grad-norm", "gradient-clip-val"})
      .help("Largest gradient norm or value (see clip-mode); 0: no clipping. Use 1 where the loss spikes.");
  d.add("clip-mode", o.clip_mode, choice_codec<ClipMode>("norm value"))
      .help("Scale all gradients to a total norm, or clip each value. value is rarely needed.")
      .expert();
  d.add_switch("model-ema", o.model_ema)
      .help("Keep an exponential moving average of the weights, which evaluation uses. Use it in long runs.");
  d.add("model-ema-decay", o.model_ema_decay, number_codec(kBelowOne))
      .unit("per update")
      .help(
          "EMA decay per update. Lower it in short runs: the average covers about 1 / (1 - decay) "
          "updates.");
  d.add_switch("model-ema-warmup", o.model_ema_warmup)
      .help(
          "Start with a faster average: decay = min(model-ema-decay, (1 + t) / (10 + t)) at update t. Turn it off to "
          "compare with programs without.")
      .expert();
}

bool has_sched(const ScheduleOptions& o, ScheduleKind kind) { return !o.sched.is_auto() && o.sched.value() == kind; }
bool has_sched(const ResolvedScheduleOptions& o, ScheduleKind kind) { return o.sched == kind; }

template <template <typename> class Pick>
void declare_schedule(Declaration& d, ScheduleOptionsOf<Pick>& o) {
  using Of = ScheduleOptionsOf<Pick>;
  d.group("schedule", "Learning-rate schedule");
  d.add("sched", o.sched,
        choice_codec(words_in_order<ScheduleKind>(
                         "constant step multistep cosine one-cycle polynomial cosine-restarts wsd plateau"),
                     {{"cosineannealinglr", ScheduleKind::cosine},
                      {"CosineAnnealingLR", ScheduleKind::cosine},
                      {"steplr", ScheduleKind::step},
                      {"StepLR", ScheduleKind::step},
                      {"MultiStepLR", ScheduleKind::multistep},
                      {"OneCycleLR", ScheduleKind::one_cycle},
                      {"poly", ScheduleKind::polynomial},
                      {"CosineAnnealingWarmRestarts", ScheduleKind::cosine_restarts},
                      {"cosine_with_restarts", ScheduleKind::cosine_restarts},
                      {"warmup_stable_decay", ScheduleKind::wsd},
                      {"reduce_lr_on_plateau", ScheduleKind::plateau},
                      {"ReduceLROnPlateau", ScheduleKind::plateau}}))
      .alias({"lr-scheduler", "scheduler"})
      .help(
          "Shape of the learning rate; it spans the whole run and is set once per update. Leave it at auto, which is "
          "one-cycle for sgd, images of up to 64 pixels and at least 250 updates, where neither warmup-epochs nor "
          "min-lr is given; else cosine. wsd (warm-up, stable, decay) keeps lr until a cool-down, which may branch off "
          "any checkpoint before it; plateau lowers it when evaluations no longer improve.");
  d.add("warmup-epochs", o.warmup_epochs, number_codec(kNotNegative))
      .alias({"lr-warmup-epochs"})
      .unit("epochs")
      .help(
          "Linear rise from warmup-lr to lr at the start; fractions are allowed. Use 3 to 5 for large batches and "
          "transformers.");
  d.add("warmup-lr", o.warmup_lr, number_codec(kNotNegative))
      .help("Learning rate at the start of the warm-up. Rarely changed.")
      .expert();
  d.add("min-lr", o.min_lr, number_codec(kNotNegative))
      .alias({"lr-min"})
      .help(
          "Learning rate at which cosine, polynomial and wsd end, and below which step and plateau do not fall. Set it "
          "where a run will be continued.");
  d.add_list("decay-milestones", o.decay_milestones, kPositive, "none")
      .unit("epochs")
      .help("multistep: multiply by decay-rate after each of these epochs. Needed with sched multistep.");
  d.add("decay-epochs", o.decay_epochs, number_codec(kPositive))
      .alias({"lr-step-size"})
      .unit("epochs")
      .help("step: epochs between two decays. Set it to about a third of epochs.");
  d.add("decay-rate", o.decay_rate, number_codec({0, 1, true, false}))
      .alias({"lr-gamma"})
      .help("step, multistep and plateau: factor of a decay. Rarely changed.");
  d.add("poly-power", o.poly_power, number_codec(kPositive))
      .help("polynomial: exponent. Use 0.9 to compare with segmentation recipes.")
      .expert();
  d.add_parts("cycle", {{"EPOCHS", o, &Of::cycle_epochs, number_codec(kPositive)},
                        {"MULT", o, &Of::cycle_mult, number_codec({1, 1e6})},
                        {"DECAY", o, &Of::cycle_decay, number_codec({0, 1, true, false})}})
      .used_while([&o] { return has_sched(o, ScheduleKind::cosine_restarts); })
      .value_in_older_runs("10,1,1")
      .help(
          "cosine-restarts: epochs of the first cycle; each next one is MULT times as long and starts at DECAY times "
          "the rate. Choose cycles that fill the run: 10,2 fits 70 epochs.");
  d.add("cooldown", o.cooldown, number_codec(kPositive))
      .unit("epochs")
      .used_while([&o] { return has_sched(o, ScheduleKind::wsd); })
      .value_in_older_runs("auto")
      .help(
          "wsd: epochs at the end in which the rate falls in a straight line to min-lr; auto is a fifth of epochs. Set "
          "it and epochs to cool a checkpoint down in a run of its own: --resume CHECKPOINT --run-dir DIR.");
  d.add_parts("plateau", {{"EVALUATIONS", o, &Of::plateau_patience, integer_codec(0, 1'000'000)},
                          {"THRESHOLD", o, &Of::plateau_threshold, number_codec(kBelowOne)},
                          {"REST", o, &Of::plateau_rest, integer_codec(0, 1'000'000)}})
      .alias({"patience-epochs", "lr-patience"})
      .used_while([&o] { return has_sched(o, ScheduleKind::plateau); })
      .value_in_older_runs("10,0.0001,0")
      .help(
          "plateau: PyTorch's ReduceLROnPlateau with patience EVALUATIONS (see val-every), a relative THRESHOLD and a "
          "cooldown of REST evaluations; the factor is decay-rate.");
  const auto has_one_cycle = [&o] { return has_sched(o, ScheduleKind::one_cycle); };
  d.add_parts("one-cycle", {{"PEAK", o, &Of::one_cycle_pct_start, number_codec({0, 1, true, true})},
                            {"START", o, &Of::one_cycle_div_factor, number_codec({1, 1e12})},
                            {"END", o, &Of::one_cycle_final_div_factor, number_codec({1, 1e12})}})
      .used_while(has_one_cycle)
      .help(
          "one-cycle: the share of all updates at which lr is reached; it starts at lr / START and ends at that / END. "
          "Lower PEAK in long runs.")
      .expert();
  d.add_parts("one-cycle-momentum",
              {{"BASE", o, &Of::one_cycle_base_momentum, number_codec(kBelowOne)},
               {"MAX", o, &Of::one_cycle_max_momentum, number_codec(kBelowOne)}},
              2, &o.one_cycle_momentum)
      .used_while(has_one_cycle)
      .value_in_older_runs("off")
      .help(
          "one-cycle: SGD's momentum, or Adam's beta1, falls from MAX to BASE at the peak of the learning rate and "
          "rises again, as in PyTorch's OneCycleLR. Write off to keep momentum and beta1 as they are.")
      .expert();
}

template <template <typename> class Pick>
void declare_length(Declaration& d, TrainOptionsOf<Pick>& o) {
  d.group("train", "Training length, validation, early stopping");
  d.add("epochs", o.epochs, integer_codec(1, 1'000'000))
      .alias({"max-epochs"})
      .unit("epochs")
      .help(
          "Passes over the training split in total, including those before a resume. Raise it to continue a finished "
          "run, "
          "with the learning rates of a run of that length.");
  d.add("max-updates", o.max_updates, integer_codec(0, 1'000'000'000'000))
      .counted_alias("max-steps", "", "0")
      .unit("updates")
      .help(
          "Stop after this many updates (optimizer steps) of the whole run, which also ends with epochs; 0: no limit. "
          "Use it "
          "for "
          "trials: the schedule spans all epochs.")
      .free_on_resume();
  d.add("max-time", o.max_time_seconds, duration_codec())
      .help(
          "Stop cleanly, with a checkpoint, after this long; run the same command to continue. Set it a little "
          "below a scheduler's limit.")
      .per_process();
  d.add("accumulation-steps", o.accumulation_steps, integer_codec(1, 65536))
      .alias({"grad-accum-steps", "gradient-accumulation-steps", "accumulate-grad-batches"})
      .unit("batches per update")
      .help(
          "Batches whose gradients are averaged into one optimizer update, per replica; auto is 1, or as "
          "total-batch-size needs. Raise it where the batch that you want does not fit.");
  d.add("replicas", o.replicas, integer_codec(1, 4096))
      .value_in_older_runs("1")
      .unit("replicas")
      .help(
          "Logical data-parallel replicas, each with batches, batch-norm statistics and random state of its own. Set "
          "it to a power of two for the same bits on any number of processes that divides it; auto is one for each "
          "process, and a resumed run keeps its number. An update sees replicas x accumulation-steps x batch-size "
          "images; the replicas of one process run one after the other.");
  d.add("total-batch-size", o.total_batch_size, integer_codec(0, 1 << 30))
      .alias({"effective-batch-size", "global-batch-size"})
      .unit("images per update")
      .help(
          "Images in one optimizer update; accumulation-steps becomes this over batch-size x replicas, which must "
          "divide it; 0 leaves accumulation-steps as it is. Set it with batch-size auto to get the same update on "
          "every machine.")
      .free_on_resume();
  d.add_switch("auto-micro-batch", o.auto_micro_batch)
      .help(
          "When memory runs out in an update, repeat it and from then on compute each batch in twice as many "
          "micro-batches, one after the other: batch-size, accumulation-steps and the images of an update stay as they "
          "are. Use it where other programs share the device.")
      .per_process();
  d.add("label-smoothing", o.label_smoothing, number_codec(kBelowOne))
      .alias({"smoothing"})
      .help("Share of the target that is spread over all classes. Use 0.1 in long runs with many classes.");
  d.add("seed", o.seed, unsigned_codec())
      .alias({"seed-everything"})
      .help(
          "Seed of weights, order and augmentation; in eval of the resamples. Vary it to see how much results depend "
          "on chance.")
      .used_in_eval();
  d.add_switch("deterministic", o.deterministic)
      .help(
          "Use only algorithms that give the same bits each time on the same device, and no choice by measured speed: "
          "on a CPU, amp auto is off. Use it to reproduce a run bit by bit; it is slower.");
}

template <template <typename> class Pick>
void declare_evaluation(Declaration& d, TrainOptionsOf<Pick>& o, const ScheduleOptionsOf<Pick>& schedule) {
  using Of = TrainOptionsOf<Pick>;
  const auto decides_rates = [&schedule] { return has_sched(schedule, ScheduleKind::plateau); };
  d.add("val-every", o.val_every, interval_or_share_codec())
      .counted_alias("val-interval", "e", "never")
      .value_in_older_runs("1e")
      .help(
          "Interval of validation; the best checkpoint is saved after it, and the end of a run is always evaluated. "
          "Raise it where evaluation takes long; use 2000u, 0.25e or 10m in long epochs. By time, best and patience "
          "depend on the clock.")
      .used_while(decides_rates);
  d.add_parts("distill", {{"ALPHA", o, &Of::distill_share, number_codec({0, 1})},
                          {"TEMPERATURE", o, &Of::distill_temperature, number_codec({0.1, 100})}})
      .value_in_older_runs("0.9,4")
      .help(
          "With teacher: ALPHA of the loss is KL divergence from its probabilities, both softened by TEMPERATURE (4), "
          "times its square; the rest is that of the labels. Lower ALPHA where the teacher errs.");
  d.add("eval-metric", o.eval_metric, choice_codec<EvalMetric>(eval_metric_choices()))
      .alias({"monitor"})
      .help(
          "Metric that decides which checkpoint is best, and that patience watches; auto is the task's first. Set it "
          "to what you will be judged by.");
  d.add("tta", o.tta, choice_codec<TestTimeAugmentation>("none hflip ten-crop scales"))
      .value_in_older_runs("none")
      .help(
          "Test-time augmentation in validation, eval and predict: averages the outputs (logits) for an image and its "
          "mirror image (hflip), for torchvision's TenCrop, or for the centre of the image in 1, 1.125 and 1.25 times "
          "its "
          "size (scales). Use it for the last percent; for the tasks multiclass, binary and multilabel.")
      .used_while(decides_rates)
      .used_in_inference();
  d.add_parts("patience", {{"EPOCHS", o, &Of::patience, integer_codec(0, 1'000'000)},
                           {"DELTA", o, &Of::min_delta, number_codec(kNotNegative)}})
      .alias({"early-stopping"})
      .help(
          "Early stopping: stop after EPOCHS without an improvement of eval-metric by more than DELTA. Where val-every "
          "is inside epochs, evaluations are counted. Evaluations caused only by a stop do not count. Set it where the "
          "length to train is unknown; 0: never.")
      .free_on_resume();
}

}  // namespace

template <typename AnyOptions>
void declare_training(Declaration& declaration, AnyOptions& options) {
  declare_model(declaration, options.model);
  declare_optimizer(declaration, options.optim);
  declare_schedule(declaration, options.schedule);
  declare_length(declaration, options.train);
  declare_evaluation(declaration, options.train, options.schedule);
}
template void declare_training(Declaration&, Options&);
template void declare_training(Declaration&, ResolvedOptions&);

}  // namespace stoker::config
