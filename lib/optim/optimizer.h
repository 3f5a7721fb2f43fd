// SPDX-License-Identifier: Apache-2.0
// Optimizers over all parameters at once. SGD, Adam and AdamW: fused or foreach kernels on CUDA, one pass over memory
// per parameter on the CPU; the others: foreach kernels. Arithmetic is torch.optim's, or that of the papers. State is
// kept and saved by parameter name.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/options.h"
#include "optim/rules.h"
#include "optim/schedule.h"

namespace stoker::optim {

struct KernelLists;

// Optimizer steps on the CPU: each reads and writes every value once. Only this module includes this file.

/// Whether element i of both lies at the same place in memory: same shape, strides equal wherever they
/// matter.
bool same_layout(const torch::Tensor& a, const torch::Tensor& b);
/// `tensor` itself when it has the layout of `like`, else a copy that has.
torch::Tensor with_layout_of(const torch::Tensor& like, const torch::Tensor& tensor);

/// Moves `parameter`. All tensors: float32 on the CPU, dense, of one layout. `momentum` may be undefined
/// when rule.momentum is 0.
void one_pass_sgd(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& momentum,
                  const SgdRule& rule);
/// `step` is 1 for the first step.
void one_pass_adam(const torch::Tensor& parameter, const torch::Tensor& gradient, const torch::Tensor& exp_avg,
                   const torch::Tensor& exp_avg_sq, const AdamRule& rule, int64_t step);

struct NamedParameter {
  std::string name;
  torch::Tensor tensor;  ///< float32 leaf that requires grad
  double lr_scale = 1;   ///< its share of the learning rate, > 0
  bool decays = true;    ///< false: no weight decay, as for parameters with fewer than two dimensions
  bool thaws = false;    ///< has no gradient at first; Adam counts its steps from thaw() on
  bool is_classifier = false;

  /// Whether Muon orthogonalises it; AdamW moves the rest.
  bool is_hidden_matrix() const { return tensor.dim() > 1 && decays && !is_classifier; }
};

/// How many tensors of its size the optimizer keeps for a parameter.
int states_of(const NamedParameter& parameter, const config::ResolvedOptimOptions& options);

/// A tensor of the optimizer's state, "momentum.<parameter>" and the like.
struct NamedState {
  std::string name;
  torch::Tensor tensor;
};

class Optimizer {
 public:
  /// Weight decay leaves alone what timm leaves alone: parameters with fewer than two dimensions (norms and biases)
  /// and those that do not decay by their NamedParameter. With decay_norm_and_bias it reaches all.
  /// All parameters are on one device, and stay there.
  Optimizer(std::vector<NamedParameter> parameters, const config::ResolvedOptimOptions& options);

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  std::vector<torch::Tensor> gradients() const;  ///< gradients of parameters that have one

  /// One update with the rates of a schedule, or a learning rate alone. Rates with a momentum need the momentum option
  /// of SGD and RMSprop to be above 0. With `found_inf` (float32 [1] on the device, 0 or 1) set to 1 nothing changes;
  /// fused kernels read it on the device without a host sync, others read it on the host. Parameters without a gradient
  /// are left alone.
  void step(const UpdateRates& rates, const torch::Tensor& found_inf = {});
  void zero_grad();  ///< frees the gradients
  /// From now on foreach operations instead of fused kernels or one pass: for measuring what these bring.
  void use_plain_kernels() { plain_ = true; }
  /// Whether one kernel of the device steps many parameters and reads found_inf there.
  bool is_fused() const;

  /// All state tensors, created if need be, in a fixed order: for saving, and for restoring with copy_().
  std::vector<NamedState> state();
  /// Adam's t; skipped steps do not count. A host sync after fused steps that were given found_inf.
  int64_t steps_taken() const;
  /// `begun_at`: by name, parameters whose averages began after that many of these steps, as begun_at() has them.
  void set_steps_taken(int64_t steps, const std::map<std::string, int64_t>& begun_at = {});
  /// Parameters whose averages Adam corrects for fewer steps than those of the others: they were thawed later.
  std::map<std::string, int64_t> begun_at() const;
  /// From the next step on, parameters that thaw have gradients: Adam's t of these begins at 1. A host sync as above.
  void thaw();

 private:
  /// The parameters of one step(): those with a gradient, one weight decay, one share of the learning rate, one
  /// beginning and one kind; entry i of each list together.
  struct Group {
    double weight_decay = 0;
    double lr_scale = 1;
    int64_t begun_at = 0;
    bool is_matrix = false;  ///< LAMB adapts the steps of these, Muon orthogonalises them
    std::vector<torch::Tensor> parameters, gradients, first, second;
  };

  void create_state(size_t index);
  std::vector<Group> groups();
  SgdRule sgd_rule(const Group& group, const UpdateRates& rates) const;
  AdamRule adam_rule(const Group& group, const UpdateRates& rates) const;
  bool decays(size_t index) const;
  bool is_matrix(size_t index) const;
  /// The step of optimizers without kernels of their own.
  void step_by_foreach(const KernelLists& lists, const Group& group, const UpdateRates& rates) const;
  void step_on_cpu(const Group& group, const UpdateRates& rates) const;
  void step_on_device(const Group& group, const UpdateRates& rates, const torch::Tensor& found_inf) const;

  config::ResolvedOptimOptions options_;
  std::vector<NamedParameter> parameters_;
  std::vector<torch::Tensor> first_;   ///< momentum or exp_avg, one per parameter; undefined until needed
  std::vector<torch::Tensor> second_;  ///< exp_avg_sq or square_avg
  std::vector<int64_t> begun_at_;      ///< value of steps_ from which a parameter is trained, one per parameter
  bool plain_ = false;
  int64_t steps_ = 0;      ///< steps requested that were not skipped on the host
  torch::Tensor skipped_;  ///< float32 [1] on the device: how many of them fused kernels skipped; or undefined
};

}  // namespace stoker::optim
