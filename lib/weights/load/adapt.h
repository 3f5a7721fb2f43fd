// SPDX-License-Identifier: Apache-2.0
// How a tensor of one network becomes that of a similar one: other input channels, another image size, another epsilon.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace stoker::weights {

/// Whether the shapes are the same but for sides of 1.
bool same_but_for_ones(at::IntArrayRef one, at::IntArrayRef other);

/// The first convolution [O, I, h, w] for images of `channels`: to 1 the sum over I, which is what a gray image in all
/// channels gives; from 1 or 3 to more its channels over and over, scaled so that the sum stays (timm's rule, extended
/// to I = 1). Undefined where neither fits.
torch::Tensor adapt_input_channels(const torch::Tensor& weight, int64_t channels);

/// Position embeddings [1, 1 + n * n, E] of square images at `tokens` = 1 + m * m: the first stays, the others are
/// resampled bicubically with antialiasing, as timm's resample_abs_pos_embed(). Undefined where n or m is no whole
/// number.
torch::Tensor resample_positions(const torch::Tensor& positions, int64_t tokens);

/// Weights of a batch norm with `ours` as epsilon that evaluates as `weight` [C] does with `theirs`, given its running
/// variance [C]: w sqrt((v + ours) / (v + theirs)).
torch::Tensor rescale_norm(const torch::Tensor& weight, const torch::Tensor& variance, double theirs, double ours);

}  // namespace stoker::weights
