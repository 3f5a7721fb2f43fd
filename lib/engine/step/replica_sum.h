// SPDX-License-Identifier: Apache-2.0
// One update over several replicas: gradients and running statistics of each, added in a tree that depends on the
// number of replicas alone, within this rank and over all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/group/group.h"
#include "engine/run/plan.h"
#include "engine/run/tree_sum.h"
#include "engine/step/lanes.h"
#include "engine/step/learner.h"
#include "engine/step/rank_sum.h"

namespace stoker::engine {

/// What is counted of an update, by replica.
struct ReplicaCount {
  double loss_sum = 0;
  double score_sum = 0;
  int64_t images = 0;
};

/// The other ranks, as an update sees them.
struct OtherRanks {
  Group* group = nullptr;
  RankSum* sum = nullptr;  ///< of sum_parts_of() the learner; both are null where this rank is alone
};

/// What an update sums over ranks: gradients by parameter of the optimizer, then the changes of floating point buffers.
std::vector<at::Tensor> sum_parts_of(const Learner& learner, Lanes& lanes);

/// One update. For each of own_replicas(), on any lane: begin_replica(), forward and backward passes, end_replica().
/// Then, on the thread that made this: agree() and finish().
///
/// Every replica starts from the buffers as they were when this was made. After finish() gradients are sums over all
/// replicas, a floating point buffer is the one that was there plus the mean of what replicas changed in it, and other
/// buffers are those of replica 0.
///
/// Gradients that all replicas of this rank have are exchanged while others are computed: those of the replicas that
/// are computed last, as many as there are lanes, leave one by one where watch_backward() is called, the rest at the
/// end of its replica.
class ReplicaSum {
 public:
  /// `learner`, whose lanes these are, has no gradients.
  ReplicaSum(Learner& learner, Lanes& lanes, int64_t replicas, const OtherRanks& others);
  ~ReplicaSum();
  ReplicaSum(const ReplicaSum&) = delete;
  ReplicaSum& operator=(const ReplicaSum&) = delete;

  void begin_replica(Lane& lane) const;
  /// Before the last backward pass of the replica that is number `turn` of own_replicas().
  void watch_backward(Lane& lane, int64_t turn);
  /// Takes the gradients of `lane`.
  void end_replica(Lane& lane, int64_t turn, const ReplicaCount& count);

  /// Tells all ranks the counts of all replicas, and whether memory ran out on this one, in which case not all of its
  /// replicas need have ended. Returns whether it did on any: then nothing else may be called. Throws Error{peer_lost};
  /// {bug} when ranks train different networks.
  bool agree(bool ran_out_of_memory);
  /// By replica, after agree().
  const std::vector<ReplicaCount>& counts() const { return counts_; }
  /// Gives gradients and buffers to the learner.
  void finish();

 private:
  struct Part {
    std::vector<at::Tensor> gradients;  ///< by parameter of the optimizer; undefined: it has none
    std::vector<at::Tensor> changes;    ///< of floating point buffers, in their order
    int64_t late = -1;                  ///< the number in late_ of the part that this stands for
  };
  static Part sum_of(Part left, Part right);
  const Part& actual(const Part& part) const;
  void take_rest(Lane& lane, Part& part, bool says_so);
  void put_late_parts();
  void has(size_t tensor);
  at::Tensor take(size_t tensor);
  at::Tensor fold(size_t tensor) const;
  void add_up();
  bool is_late(int64_t turn) const { return turn >= first_late_; }
  int64_t place_of(int64_t turn) const { return (own_[static_cast<size_t>(turn)] - share_.rank) / share_.count; }

  Learner& learner_;
  Lanes& lanes_;
  const OtherRanks ranks_;
  const RankShare share_;
  const int64_t replicas_;
  const std::vector<int64_t> own_;  ///< own_replicas()
  const int64_t first_late_;        ///< the turn from which on parts are not added before all are there
  const size_t parameters_;
  TreeSum<Part> sum_;                                      ///< by place among the replicas of this rank
  std::vector<Part> late_;                                 ///< their tensors come one by one
  std::vector<std::atomic<int64_t>> missing_;              ///< by tensor: replicas of this rank that do not have it yet
  std::atomic<int64_t> early_left_;                        ///< replicas that are not late and have not ended
  std::vector<at::Tensor> floats_before_, others_before_;  ///< the buffers of the network
  std::vector<at::Tensor> others_of_first_;  ///< as replica 0 left them; zeros where it is not computed here
  std::vector<ReplicaCount> counts_;
  std::vector<char> has_gradient_;  ///< by parameter: on this rank, after agree() on any
  Part total_;
};

}  // namespace stoker::engine
