#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the golden numbers of tests/model/layers/conv_lstm_test.cpp: the equations of Shi et al. 2015 without
peepholes, written out with one convolution per gate. Needs torch."""
import torch
from torch.nn.functional import conv2d

from resnet_golden import numbers, uniform

B, T, C, HIDDEN, H, W = 2, 3, 3, 2, 4, 5


def weight(shape, stream):
    count = 1
    for size in shape:
        count *= size
    values = torch.from_numpy(uniform(count, stream)).reshape(shape)
    return values * (6 / values[0].numel()) ** 0.5 if len(shape) == 4 else values / 8


def main():
    # As fill_by_formula() numbers them: input.weight, input.bias, hidden.weight.
    w_x, b_x, w_h = weight((4 * HIDDEN, C, 3, 3), 0), weight((4 * HIDDEN,), 1), weight((4 * HIDDEN, HIDDEN, 3, 3), 2)
    clip = torch.from_numpy(uniform(B * T * C * H * W, 999)).reshape(B, T, C, H, W) * 2
    h = c = torch.zeros(B, HIDDEN, H, W)
    states = []
    for t in range(T):
        gate = {}
        for k, name in enumerate("ifgo"):
            part = slice(k * HIDDEN, (k + 1) * HIDDEN)
            gate[name] = conv2d(clip[:, t], w_x[part], b_x[part], padding=1) + conv2d(h, w_h[part], padding=1)
        c = torch.sigmoid(gate["f"]) * c + torch.sigmoid(gate["i"]) * torch.tanh(gate["g"])
        h = torch.sigmoid(gate["o"]) * torch.tanh(c)
        states.append(h)
    states = torch.stack(states, 1)
    print("means:", numbers(states.mean((3, 4)).flatten()))
    print("row:", numbers(states[:, 2, 1, 3].flatten()))


if __name__ == "__main__":
    main()
