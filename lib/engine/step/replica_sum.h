// SPDX-License-Identifier: Apache-2.0
// One update over several replicas: gradients and running statistics of each, added in a tree that depends on the
// number of replicas alone, within this rank and over all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/group/group.h"
#include "engine/run/plan.h"
#include "engine/step/gradient_hooks.h"
#include "engine/step/learner.h"
#include "engine/step/rank_sum.h"

namespace stoker::engine {

/// Counters of an update, by replica.
struct ReplicaCount {
  double loss_sum = 0;
  double score_sum = 0;
  int64_t images = 0;
};

/// The other ranks, as an update sees them.
struct OtherRanks {
  Group& group = alone();
  RankSum* sum = nullptr;          ///< sum over ranks of sum_parts_of() the learner; null where this rank is alone
  GradientHooks* hooks = nullptr;  ///< hooks of the learner's parameters; null: nothing leaves before its replica ends
};

inline RankShare share_of(const Group& group) { return {group.rank(), group.size()}; }

/// The parameters of the optimizer, in its order.
std::vector<at::Tensor> parameters_of(const Learner& learner);
/// The tensors that an update sums over ranks: parameters_of(), for their gradients, then the floating point buffers of
/// the network, for what changes in them.
std::vector<at::Tensor> sum_parts_of(const Learner& learner);

/// One update. For each of own_replicas(), in their order: begin_replica(), forward and backward passes, end_replica().
/// Then agree() and finish().
///
/// Every replica starts from the buffers as they were when this was made. After finish() gradients are sums over all
/// replicas, a floating point buffer is the one that was there plus the mean of what replicas changed in it, and other
/// buffers are those of replica 0.
///
/// Gradients that all replicas of this rank have are exchanged while others are computed: those of the last replica
/// leave one by one where watch_backward() is called, the rest at its end.
class ReplicaSum {
 public:
  /// `learner` has no gradients.
  ReplicaSum(Learner& learner, int64_t replicas, const OtherRanks& others);
  ~ReplicaSum();
  ReplicaSum& operator=(ReplicaSum&&) = delete;  // not copied, not moved

  /// `turn`: the number of the replica in own_replicas().
  void begin_replica(int64_t turn);
  /// Before the last backward pass of a replica.
  void watch_backward(int64_t turn);
  /// Takes the gradients of the learner, so that those of the next replica begin from nothing.
  void end_replica(int64_t turn, const ReplicaCount& count);

  /// Shares the counts of all replicas with all ranks, and whether memory ran out on this one, in which case not all of
  /// its replicas need have ended. Returns whether it did on any: then nothing else may be called. Throws
  /// Error{peer_lost}; {bug} when ranks train different networks.
  bool agree(bool ran_out_of_memory);
  /// By replica, after agree().
  const std::vector<ReplicaCount>& counts() const { return counts_; }
  /// Gives gradients and buffers to the learner.
  void finish();

 private:
  struct Part {
    std::vector<at::Tensor> gradients;  ///< by parameter of the optimizer; undefined: it has none
    std::vector<at::Tensor> changes;    ///< changes of floating point buffers, in their order
    bool is_last = false;               ///< it stands for last_
  };
  static Part sum_of(Part left, Part right);
  void take_rest(Part& part, bool is_last);
  at::Tensor take(size_t tensor);
  at::Tensor fold(size_t tensor) const;
  bool is_last(int64_t turn) const { return turn + 1 == static_cast<int64_t>(own_.size()); }
  int64_t place_of(int64_t turn) const { return (own_[static_cast<size_t>(turn)] - share_.rank) / share_.count; }

  Learner& learner_;
  const OtherRanks ranks_;
  const RankShare share_;
  const int64_t replicas_;
  const std::vector<int64_t> own_;            ///< own_replicas()
  const std::vector<at::Tensor> parameters_;  ///< parameters_of()
  std::vector<at::Tensor> floats_, others_;   ///< the buffers of the network: with floating point numbers, and the rest
  std::vector<at::Tensor> floats_before_, others_before_;
  std::vector<at::Tensor> others_of_first_;  ///< as replica 0 left them; zeros where it is not computed here
  TreeSum<Part> sum_;                        ///< by place among the replicas of this rank
  Part last_;                                ///< its tensors come one by one
  std::vector<ReplicaCount> counts_;
  std::vector<char> has_gradient_;  ///< by parameter: on this rank, after agree() on any
};

}  // namespace stoker::engine
