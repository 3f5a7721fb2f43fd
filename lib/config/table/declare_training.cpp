// SPDX-License-Identifier: Apache-2.0
// Rows of the groups model, optim, schedule and train. Nothing here knows how options are read or shown.
#include <limits>

#include "config/table/declaration.h"
#include "config/task_facts.h"

namespace stoker::config {
namespace {

constexpr Bounds kNotNegative{0, std::numeric_limits<double>::infinity()};
constexpr Bounds kPositive{0, std::numeric_limits<double>::infinity(), true};
constexpr Bounds kBelowOne{0, 1, false, true};

template <template <typename> class Pick>
void declare_model(Declaration& d, ModelOptionsOf<Pick>& o) {
  d.group("model", "The network");
  d.add("model", o.model, text_codec("NAME", false))
      .alias({"m", "a", "arch"})
      .help(
          "A name of train list models, or FILE.ts with --trust-model. Where none is named: "
          "small_cnn, and above 64 pixels resnet18, or "
          "mobilenet_v3_small on a CPU where resnet18 would take more than an hour.");
  d.add("init-from", o.init_from, text_codec("FILE", true))
      .alias({"pretrained", "weights"})
      .help(
          "The weights to start from: a file (safetensors, or a state dict of torch.save(), .pth), or a run or "
          "checkpoint "
          "of train; empty: random ones.");
  d.add_switch("zero-init-residual", o.zero_init_residual)
      .help("Start the last batch norm of each residual block at 0 (ResNets).");
  d.add("width", o.width, integer_codec(1, 1024))
      .unit("channels")
      .help(
          "small_cnn, tiny_cnn, resnet9: channels of the first stage; later ones have 2, 4 and, in resnet9, 8 times as "
          "many.");
  d.add("backbone", o.backbone, text_codec("NAME", false))
      .help("two_stream_convlstm: the network that sees single frames, once for each stream.");
  d.add("lstm-channels", o.lstm_channels, integer_codec(1, 4096))
      .unit("channels")
      .help("two_stream_convlstm: width of each stream's memory over time.");
  d.add("drop-rate", o.drop_rate, number_codec(kBelowOne))
      .alias({"drop", "dropout"})
      .help("Dropout before the classifier; auto is torchvision's for the network.");
  d.add("drop-path-rate", o.drop_path_rate, number_codec(kBelowOne))
      .alias({"drop-path", "stochastic-depth"})
      .help("Stochastic depth of the last residual branch, rising from 0 at the first; auto is torchvision's.");
  d.add("freeze", o.freeze, text_codec("PATTERN[,..]", true))
      .help(
          "Parameters that do not learn: globs over names of parameters or modules, as in conv1,layer1.*; "
          "!PATTERN lets some learn after all, as in *,!fc.");
  d.add_switch("grad-checkpointing", o.grad_checkpointing)
      .alias({"gradient-checkpointing", "activation-checkpointing"})
      .help(
          "Keep only what goes into each stage and compute the rest again in the backward pass: less memory, "
          "about a third more work, the same results.")
      .free_on_resume();
}

template <template <typename> class Pick>
void declare_optimizer(Declaration& d, OptimOptionsOf<Pick>& o) {
  d.group("optim", "The optimizer");
  d.add("opt", o.opt,
        choice_codec<OptimizerKind>(
            {{"sgd", OptimizerKind::sgd}, {"adam", OptimizerKind::adam}, {"adamw", OptimizerKind::adamw}}))
      .alias({"optimizer"})
      .help(
          "Update rule; auto: adamw for the tasks regression and head-pose, else sgd. A later start keeps that of the "
          "first.");
  d.add("lr", o.lr, number_codec(kPositive))
      .alias({"learning-rate"})
      .help(
          "Peak learning rate; auto is lr-base x batch-size x accumulation-steps x replicas / 256. Where lr-base is "
          "not given, "
          "it is 0.4 when sched auto takes one-cycle, and adam and adamw take 0.001 x the square root of these images "
          "/ 256, or 0.002 when opt auto takes adamw.");
  d.add("lr-base", o.lr_base, number_codec(kPositive))
      .unit("per 256 images")
      .help("What an automatic lr is scaled from.");
  d.add("momentum", o.momentum, number_codec(kBelowOne)).help("SGD's momentum.");
  d.add_switch("nesterov", o.nesterov).help("SGD looks ahead along the momentum (needs momentum above 0).");
  d.add("beta1", o.beta1, number_codec(kBelowOne)).help("Adam: decay of the first moment.");
  d.add("beta2", o.beta2, number_codec(kBelowOne)).help("Adam: decay of the second moment.");
  d.add("eps", o.eps, number_codec(kPositive)).help("Adam: added to the denominator.");
  d.add("weight-decay", o.weight_decay, number_codec(kNotNegative))
      .alias({"wd"})
      .help(
          "Decay of the weights; decoupled for adamw, added to the gradient otherwise. As in timm, biases, norms, "
          "layer "
          "scales, position embeddings and class tokens do not decay.");
  d.add_switch("decay-norm-and-bias", o.decay_norm_and_bias)
      .help("Decay every parameter: biases, norms, layer scales, position embeddings and class tokens as well.");
  d.add("layer-decay", o.layer_decay, number_codec({0, 1, true, false}))
      .unit("per layer")
      .help(
          "Each layer learns with this share of the learning rate of the layer after it; the classifier has all of "
          "it. Layers are timm's: the stem, each block, the classifier.");
  d.add("clip-grad", o.clip_grad, number_codec(kNotNegative))
      .alias({"clip-grad-norm", "max-grad-norm", "gradient-clip-val"})
      .help("Largest gradient norm or value (see clip-mode); 0: no clipping.");
  d.add("clip-mode", o.clip_mode, choice_codec<ClipMode>({{"norm", ClipMode::norm}, {"value", ClipMode::value}}))
      .help("Scale all gradients to a total norm, or cut each value.");
  d.add_switch("model-ema", o.model_ema).help("Keep an exponential moving average of the weights; evaluation uses it.");
  d.add("model-ema-decay", o.model_ema_decay, number_codec(kBelowOne)).unit("per update").help("Decay of the average.");
  d.add_switch("model-ema-warmup", o.model_ema_warmup)
      .help("Start with a faster average: decay = min(model-ema-decay, (1 + t) / (10 + t)) at update t.");
}

bool is_one_cycle(const ScheduleOptions& o) { return !o.sched.is_auto() && o.sched.value() == ScheduleKind::one_cycle; }
bool is_one_cycle(const ResolvedScheduleOptions& o) { return o.sched == ScheduleKind::one_cycle; }

template <template <typename> class Pick>
void declare_schedule(Declaration& d, ScheduleOptionsOf<Pick>& o) {
  d.group("schedule", "How the learning rate moves");
  d.add("sched", o.sched,
        choice_codec<ScheduleKind>({{"constant", ScheduleKind::constant},
                                    {"step", ScheduleKind::step},
                                    {"multistep", ScheduleKind::multistep},
                                    {"cosine", ScheduleKind::cosine},
                                    {"one-cycle", ScheduleKind::one_cycle},
                                    {"polynomial", ScheduleKind::polynomial}},
                                   {{"cosineannealinglr", ScheduleKind::cosine},
                                    {"CosineAnnealingLR", ScheduleKind::cosine},
                                    {"steplr", ScheduleKind::step},
                                    {"StepLR", ScheduleKind::step},
                                    {"MultiStepLR", ScheduleKind::multistep},
                                    {"OneCycleLR", ScheduleKind::one_cycle},
                                    {"poly", ScheduleKind::polynomial}}))
      .alias({"lr-scheduler", "scheduler"})
      .help(
          "Shape over the whole run; set once per update. auto: one-cycle for sgd, images of up to 64 pixels and at "
          "least 250 "
          "updates, where neither warmup-epochs nor min-lr is given; else cosine.");
  d.add("warmup-epochs", o.warmup_epochs, number_codec(kNotNegative))
      .alias({"lr-warmup-epochs"})
      .unit("epochs")
      .help("Linear rise from warmup-lr to lr at the start; fractions are allowed.");
  d.add("warmup-lr", o.warmup_lr, number_codec(kNotNegative)).help("Where the warm-up starts.");
  d.add("min-lr", o.min_lr, number_codec(kNotNegative)).alias({"lr-min"}).help("Where cosine and polynomial end.");
  d.add_list("decay-milestones", o.decay_milestones, kPositive, "none")
      .unit("epochs")
      .help("multistep: multiply by decay-rate after each of these.");
  d.add("decay-epochs", o.decay_epochs, number_codec(kPositive))
      .alias({"lr-step-size"})
      .unit("epochs")
      .help("step: time between two decays.");
  d.add("decay-rate", o.decay_rate, number_codec({0, 1, true, false}))
      .alias({"lr-gamma"})
      .help("step and multistep: factor of a decay.");
  d.add("poly-power", o.poly_power, number_codec(kPositive)).help("polynomial: exponent.");
  const auto has_one_cycle = [&o] { return is_one_cycle(o); };
  const auto momentum_cycles = [&o] { return is_one_cycle(o) && o.one_cycle_momentum; };
  d.add("one-cycle-pct-start", o.one_cycle_pct_start, number_codec({0, 1, true, true}))
      .unit("share of all updates")
      .used_while(has_one_cycle)
      .help("one-cycle: when the peak is reached.");
  d.add("one-cycle-div-factor", o.one_cycle_div_factor, number_codec({1, 1e12}))
      .used_while(has_one_cycle)
      .help("one-cycle: start = lr / this.");
  d.add("one-cycle-final-div-factor", o.one_cycle_final_div_factor, number_codec({1, 1e12}))
      .used_while(has_one_cycle)
      .help("one-cycle: end = start / this.");
  d.add_switch("one-cycle-momentum", o.one_cycle_momentum)
      .used_while(has_one_cycle)
      .before_it_existed("false")
      .help(
          "one-cycle: SGD's momentum, or Adam's beta1, falls while the learning rate rises and rises while it falls, "
          "as "
          "OneCycleLR has it; momentum and beta1 themselves are not used then.");
  d.add("one-cycle-base-momentum", o.one_cycle_base_momentum, number_codec(kBelowOne))
      .used_while(momentum_cycles)
      .help("one-cycle-momentum: at the peak of the learning rate.");
  d.add("one-cycle-max-momentum", o.one_cycle_max_momentum, number_codec(kBelowOne))
      .used_while(momentum_cycles)
      .help("one-cycle-momentum: at the first and the last update.");
}

template <template <typename> class Pick>
void declare_length(Declaration& d, TrainOptionsOf<Pick>& o) {
  d.group("train", "How long and how often");
  d.add("epochs", o.epochs, integer_codec(1, 1'000'000))
      .alias({"max-epochs"})
      .unit("epochs")
      .help(
          "Passes over the training split, of the whole run and not of this start. A finished run goes on when it is "
          "raised, with the learning rates of a run of that length.");
  d.add("max-updates", o.max_updates, integer_codec(0, 1'000'000'000'000))
      .alias({"max-steps"})
      .unit("updates")
      .help(
          "Stop after this many optimizer updates of the whole run; 0: no limit. The schedule still follows "
          "epochs.")
      .free_on_resume();
  d.add("max-time", o.max_time_seconds, duration_codec())
      .help("Stop in good order once this start has run so long; run the same command to go on.")
      .per_process();
  d.add("accumulation-steps", o.accumulation_steps, integer_codec(1, 65536))
      .alias({"grad-accum-steps", "gradient-accumulation-steps", "accumulate-grad-batches"})
      .unit("batches per update")
      .help(
          "Batches whose gradients are averaged into one optimizer update, of each replica; auto is 1, or as "
          "total-batch-size asks.");
  d.add("replicas", o.replicas, integer_codec(1, 4096))
      .before_it_existed("1")
      .unit("replicas")
      .help(
          "Copies of the network in the arithmetic of an update, each with batches, batch statistics and random "
          "numbers of "
          "its own. An update sees replicas x accumulation-steps x batch-size images; its bits are the same for any "
          "number "
          "of devices that divides replicas, if that is a power of two.");
  d.add("total-batch-size", o.total_batch_size, integer_codec(0, 1 << 30))
      .alias({"effective-batch-size", "global-batch-size"})
      .unit("images per update")
      .help(
          "Images in one optimizer update: accumulation-steps becomes this over batch-size x replicas, which must "
          "divide "
          "it; 0 leaves accumulation-steps as it is. With batch-size auto the update stays the same on every machine.")
      .free_on_resume();
  d.add_switch("auto-micro-batch", o.auto_micro_batch)
      .help(
          "When memory runs out in an update, do it again, and from then on compute each batch in twice as many "
          "micro-batches, one after the other: batch-size, accumulation-steps and the images of an update stay as they "
          "are.")
      .per_process();
  d.add("label-smoothing", o.label_smoothing, number_codec(kBelowOne))
      .alias({"smoothing"})
      .help("Share of the target that is spread over all classes.");
  d.add("seed", o.seed, unsigned_codec())
      .alias({"seed-everything"})
      .help("Of weights, order and augmentation; in eval of the resamples.")
      .used_in_eval();
  d.add_switch("deterministic", o.deterministic)
      .help(
          "Only algorithms that give the same bits each time on the same device, and no choice by measured speed: on a "
          "CPU, amp auto is off. Slower.");
}

template <template <typename> class Pick>
void declare_evaluation(Declaration& d, TrainOptionsOf<Pick>& o) {
  d.add("val-every", o.val_every, interval_codec())
      .alias({"val-interval"})
      .help("Epochs between evaluations, as in 5e; the end of a run is evaluated in any case.")
      .free_on_resume();
  d.add("eval-metric", o.eval_metric, choice_codec<EvalMetric>(eval_metric_choices()))
      .alias({"monitor"})
      .help("What decides which checkpoint is best, and what patience watches; auto is the task's first.");
  d.add("tta", o.tta,
        choice_codec<TestTimeAugmentation>(
            {{"none", TestTimeAugmentation::none}, {"hflip", TestTimeAugmentation::hflip}}))
      .help(
          "Test-time augmentation in validation, eval and predict: hflip averages the outputs (logits) for an image "
          "and "
          "for its mirror image, in twice the time. For the tasks multiclass, binary and multilabel.")
      .free_on_resume()
      .used_in_inference();
  d.add("patience", o.patience, integer_codec(0, 1'000'000))
      .alias({"early-stopping"})
      .unit("epochs")
      .help("Stop after so many epochs without improvement; 0: never.")
      .free_on_resume();
  d.add("min-delta", o.min_delta, number_codec(kNotNegative))
      .help("Least change of eval-metric that counts as improvement.")
      .free_on_resume();
}

}  // namespace

template <typename AnyOptions>
void declare_training(Declaration& declaration, AnyOptions& options) {
  declare_model(declaration, options.model);
  declare_optimizer(declaration, options.optim);
  declare_schedule(declaration, options.schedule);
  declare_length(declaration, options.train);
  declare_evaluation(declaration, options.train);
}
template void declare_training(Declaration&, Options&);
template void declare_training(Declaration&, ResolvedOptions&);

}  // namespace stoker::config
