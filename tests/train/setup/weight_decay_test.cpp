// SPDX-License-Identifier: Apache-2.0
// Which parameters of a network weight decay reaches, from the options to the weights.
#include <gtest/gtest.h>

#include <set>

#include "tests/config/resolved_words.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

const std::string kOneDimensional = "one-dimensional";

/// The last parts of the names ("weight", "class_token") of parameters that one update leaves unchanged whose
/// gradients are zero. Biases and other parameters of one dimension are all called "one-dimensional".
std::set<std::string> spared_by_decay(const std::string& model, const std::string& opt,
                                      const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"--model",       model, "--opt",      opt,  "--weight-decay", "0.5",
                                    "--num-classes", "11",  "--img-size", "32", "--in-chans",     "3"};
  words.insert(words.end(), more.begin(), more.end());
  config::ResolvedOptions options = fixtures::resolved(words, {}).options;
  options.model.drop_rate = 0.0;
  options.model.drop_path_rate = 0.0;
  options.precision.channels_last = false;
  options.precision.amp = false;
  engine::Learner learner = build_learner(options, torch::kCPU);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : learner.model->parameters()) {
    parameter.fill_(1);
    parameter.mutable_grad() = torch::zeros_like(parameter);
  }
  learner.optimizer->step(0.1);
  std::set<std::string> spared;
  for (const auto& item : learner.model->named_parameters()) {
    if (item.value().ne(1).any().item<bool>()) continue;
    spared.insert(item.value().dim() <= 1 ? kOneDimensional : item.key().substr(item.key().rfind('.') + 1));
  }
  return spared;
}

using Names = std::set<std::string>;

TEST(WeightDecayTest, SparesWhatTimmSpares) {
  EXPECT_EQ(spared_by_decay("convnext_tiny", "sgd"), (Names{kOneDimensional, "layer_scale"}));
  EXPECT_EQ(spared_by_decay("vit_s_16", "adamw"), (Names{kOneDimensional, "class_token", "pos_embedding"}));
  EXPECT_EQ(spared_by_decay("swin_t", "adamw"), (Names{kOneDimensional, "relative_position_bias_table"}));
  EXPECT_EQ(spared_by_decay("swin_v2_t", "adamw"), (Names{kOneDimensional, "logit_scale", "weight"})) << "of cpb_mlp";
  for (const char* opt : {"sgd", "adamw"}) EXPECT_EQ(spared_by_decay("resnet18", opt), Names{kOneDimensional}) << opt;
}

TEST(WeightDecayTest, SparesThemInABackboneToo) {
  EXPECT_EQ(spared_by_decay("two_stream_convlstm", "sgd", {"--backbone", "convnext_tiny"}),
            (Names{kOneDimensional, "layer_scale"}));
}

TEST(WeightDecayTest, ReachesEveryParameterWhenAsked) {
  EXPECT_EQ(spared_by_decay("vit_s_16", "adamw", {"--decay-norm-and-bias"}), Names{});
  EXPECT_EQ(spared_by_decay("convnext_tiny", "sgd", {"--decay-norm-and-bias"}), Names{});
}

}  // namespace
}  // namespace stoker::train
