#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints golden numbers of tests/model/peer_cnn_test.cpp and loss_test.cpp from PyTorch. Needs torch."""
import torch
from torch import nn

from resnet_golden import fill, names_hash, numbers, state, uniform


def block(fan_in, fan_out):
    return [nn.Conv2d(fan_in, fan_out, 3, padding=1, bias=False), nn.BatchNorm2d(fan_out), nn.ReLU()]


def peer(channels=1, classes=10):
    return nn.Sequential(*block(channels, 32), *block(32, 32), nn.MaxPool2d(2), *block(32, 64), *block(64, 64),
                         nn.MaxPool2d(2), *block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(128, classes))


def main():
    torch.set_num_threads(1)
    model = peer()
    print(f"peer_cnn: tensors {len(state(model))}, names 0x{names_hash(model):016x}")
    fill(model)
    images = torch.from_numpy(uniform(28 * 28, 999)).reshape(1, 1, 28, 28) * 2
    print("  eval logits:", numbers(model.eval()(images).flatten()))
    torch.manual_seed(7)
    model = peer(3, 5)
    print("  seed 7:", numbers(model[0].weight.flatten()[:3]), "|", numbers(model[19].bias))

    logits = torch.from_numpy(uniform(4 * 6, 5)).reshape(4, 6) * 4
    labels = torch.tensor([0, 5, 2, 2])
    for smoothing in (0, 0.1, 0.5):
        loss = nn.CrossEntropyLoss(reduction="sum", label_smoothing=smoothing)
        print(f"smoothing {smoothing}:", numbers([loss(logits, labels), loss(logits.bfloat16().float(), labels)]))


if __name__ == "__main__":
    main()
