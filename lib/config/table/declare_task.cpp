// SPDX-License-Identifier: Apache-2.0
// Rows of the group task. Nothing here knows how options are read or shown.
#include <limits>

#include "config/table/declaration.h"
#include "config/task_facts.h"

namespace stoker::config {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();
constexpr Bounds kAboveZero{0, kNoEnd, true};
constexpr Bounds kNotBelowZero{0, kNoEnd};

template <template <typename> class Pick>
void declare_classes(Declaration& d, OptionsOf<Pick>& o) {
  d.group("task", "Task and targets");
  d.add("task", o.data.task, choice_codec<TaskKind>(task_choices()))
      .help(
          "One of several classes, one of two (a single output), any of several labels, numbers, or three angles. Set "
          "it where images do not have one class each.");
  d.add("class-weights", o.task.class_weights, list_codec(kNotBelowZero, "none"))
      .help(
          "multiclass: factor of each class's loss; auto: images / (classes x images of the class). Use auto where "
          "classes are unbalanced.");
  d.add("pos-weight", o.task.pos_weight, list_codec(kAboveZero, "none"))
      .help(
          "binary, multilabel: factor of the loss of positives, one or one per label; auto: negatives / positives. Use "
          "auto where positives are rare.");
  d.add("threshold", o.task.threshold, number_codec({0, 1, true, true}))
      .unit("probability")
      .help(
          "binary, multilabel: probability from which an answer is positive. Raise it where false alarms cost more "
          "than misses; metrics without ranking depend on it.")
      .used_in_inference();
}

template <template <typename> class Pick>
void declare_numbers(Declaration& d, TaskOptionsOf<Pick>& o) {
  using Of = TaskOptionsOf<Pick>;
  d.add("loss", o.loss,
        choice_codec<RegressionLoss>(
            {{"l1", RegressionLoss::l1}, {"l2", RegressionLoss::l2}, {"smooth-l1", RegressionLoss::smooth_l1}}))
      .alias({"regression-loss"})
      .help(
          "regression, head-pose: absolute, squared, or squared below 1 and absolute above (of scaled targets). Take "
          "l1 where targets have outliers.");
  d.add_list("target-mean", o.target_mean, {-kNoEnd, kNoEnd}, "auto")
      .unit("of the target")
      .help(
          "regression, head-pose: the network learns (target - target-mean) / target-scale; auto: mean of the training "
          "split, head-pose 0. Set it to continue training on other data.");
  d.add_list("target-scale", o.target_scale, kAboveZero, "auto")
      .unit("of the target")
      .help(
          "regression, head-pose: see target-mean; auto: standard deviation in the training split, head-pose 45 "
          "degrees. Set it where some targets matter more than others.");
  d.add_parts("pose-head", {{"direct|binned", o, &Of::pose_head,
                             choice_codec<PoseHead>({{"direct", PoseHead::direct}, {"binned", PoseHead::binned}})},
                            {"BINS", o, &Of::pose_bins, integer_codec(2, 1024)},
                            {"RANGE", o, &Of::pose_range, number_codec({0, 180, true, false})},
                            {"WEIGHT", o, &Of::pose_loss_weight, number_codec({0, kNoEnd})}})
      .help(
          "head-pose: learn three angles, or classify each into BINS bins from -RANGE to RANGE degrees whose "
          "expectation is the angle. Take binned to compare with publications that do; WEIGHT is that of the "
          "expectation's loss beside the bins' cross entropy.");
}

}  // namespace

template <typename AnyOptions>
void declare_task(Declaration& declaration, AnyOptions& options) {
  declare_classes(declaration, options);
  declare_numbers(declaration, options.task);
}
template void declare_task(Declaration&, Options&);
template void declare_task(Declaration&, ResolvedOptions&);

}  // namespace stoker::config
