// SPDX-License-Identifier: Apache-2.0
// peer_cnn against the nn.Sequential it copies. Golden numbers: scripts/parity/plain_golden.py with
// torch 1.13.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "model/model.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

std::shared_ptr<ImageModel> peer_model(int64_t in_chans, int64_t num_classes) {
  ModelSpec spec;
  spec.name = "peer_cnn";
  spec.in_chans = in_chans;
  spec.num_classes = num_classes;
  return make_model(spec);
}

TEST(PeerCnnTest, HasTheNamesOfAPythonSequential) {
  const auto model = peer_model(1, 10);
  EXPECT_EQ(state_of(*model).size(), 32U);
  EXPECT_EQ(names_hash(*model), 0xe91425ce128c9ee1U);
  EXPECT_EQ(model->head_prefix(), "19.");
  EXPECT_TRUE(model->named_parameters().contains("19.weight"));
}

TEST(PeerCnnTest, ComputesWhatThePythonSequentialDoes) {
  const auto model = peer_model(1, 10);
  fill_by_formula(*model);
  model->eval();
  const torch::Tensor logits = model->forward(uniform_numbers(28 * 28, 999).reshape({1, 1, 28, 28}) * 2);
  EXPECT_TRUE(near_golden(logits,
                          {-1.08642673, 0.195414618, -0.261829883, -3.98532987, 1.85984159, -0.414446324, -0.0929973274,
                           0.850934088, -0.240797639, -0.0331644416},
                          1e-5))
      << logits;
}

TEST(PeerCnnTest, DrawsThePythonSequentialsFirstWeightsForASeed) {
  torch::manual_seed(7);
  auto parameters = peer_model(3, 5)->named_parameters();
  EXPECT_TRUE(
      near_golden(parameters["0.weight"].flatten().slice(0, 0, 3), {0.0134416921, -0.115930706, 0.0612806119}, 1e-5));
  EXPECT_TRUE(near_golden(parameters["19.bias"],
                          {0.0876381844, -0.0272583049, 0.00291709928, 0.0754254535, -0.0319516957}, 1e-5));
}

}  // namespace
}  // namespace stoker::model
