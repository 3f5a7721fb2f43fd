// SPDX-License-Identifier: Apache-2.0
// One update over several replicas: gradients and running statistics of each, added in a tree that depends on the
// number of replicas alone, within this rank and over all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/group/group.h"
#include "engine/run/plan.h"
#include "engine/run/tree_sum.h"
#include "engine/step/lanes.h"
#include "engine/step/learner.h"

namespace stoker::engine {

/// What is counted of an update, by replica.
struct ReplicaCount {
  double loss_sum = 0;
  double score_sum = 0;
  int64_t images = 0;
};

/// One update. For each of own_replicas(), on any lane: begin_replica(), forward and backward passes, end_replica().
/// Then, on the thread that made this: agree() and finish().
///
/// Every replica starts from the buffers as they were when this was made. After finish() gradients are sums over all
/// replicas, a floating point buffer is the one that was there plus the mean of what replicas changed in it, and other
/// buffers are those of replica 0.
class ReplicaSum {
 public:
  /// `group`: null where this rank is alone. `learner`, whose lanes these are, has no gradients.
  ReplicaSum(Learner& learner, Lanes& lanes, int64_t replicas, Group* group);

  void begin_replica(Lane& lane) const;
  /// Takes the gradients of `lane`. `more_follow`: other replicas have not begun, so that memory should be kept free.
  void end_replica(Lane& lane, int64_t replica, const ReplicaCount& count, bool more_follow);

  /// Tells all ranks the counts of all replicas, and whether memory ran out on this one, in which case not all of its
  /// replicas need have ended. Returns whether it did on any: then nothing else may be called. Throws Error{peer_lost};
  /// {bug} when ranks train different networks.
  bool agree(bool ran_out_of_memory);
  /// By replica, after agree().
  const std::vector<ReplicaCount>& counts() const { return counts_; }
  /// Adds over ranks, and gives gradients and buffers to the learner. Throws Error{peer_lost}.
  void finish();

 private:
  struct Part {
    std::vector<at::Tensor> gradients;  ///< by parameter of the optimizer; undefined: it has none
    std::vector<at::Tensor> changes;    ///< of floating point buffers, in their order
  };
  static Part sum_of(Part left, Part right);
  Part take_part(Lane& lane) const;
  void add_up();

  Learner& learner_;
  Lanes& lanes_;
  Group* const group_;
  const RankShare share_;
  const int64_t replicas_;
  TreeSum<Part> sum_;                                      ///< by place among the replicas of this rank
  std::vector<at::Tensor> floats_before_, others_before_;  ///< the buffers of the network
  std::vector<at::Tensor> others_of_first_;  ///< as replica 0 left them; zeros where it is not computed here
  std::vector<ReplicaCount> counts_;
  std::vector<bool> has_gradient_;  ///< by parameter: on any rank, after agree()
  Part total_;
};

}  // namespace stoker::engine
