#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints golden numbers of tests/model/networks/{peer_cnn,resnet9}_test.cpp and tests/model/loss_test.cpp from PyTorch.
Needs torch."""
import torch
from torch import nn

from resnet_golden import fill, names_hash, numbers, state, uniform


def block(fan_in, fan_out):
    return [nn.Conv2d(fan_in, fan_out, 3, padding=1, bias=False), nn.BatchNorm2d(fan_out), nn.ReLU()]


def peer(channels=1, classes=10):
    return nn.Sequential(*block(channels, 32), *block(32, 32), nn.MaxPool2d(2), *block(32, 64), *block(64, 64),
                         nn.MaxPool2d(2), *block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(128, classes))


class Conv(nn.Sequential):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.conv = nn.Conv2d(fan_in, fan_out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(fan_out)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


class Stage(nn.Module):
    def __init__(self, fan_in, fan_out, residual):
        super().__init__()
        self.down = Conv(fan_in, fan_out)
        if residual:
            self.first, self.second = Conv(fan_out, fan_out), Conv(fan_out, fan_out)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.down(x), 2)
        return x + self.second(self.first(x)) if hasattr(self, "first") else x


class ResNet9(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = Conv(3, width)
        self.layer1, self.layer2 = Stage(width, 2 * width, True), Stage(2 * width, 4 * width, False)
        self.layer3 = Stage(4 * width, 8 * width, True)
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.fc(x.amax((2, 3))) * 0.125


def main():
    torch.set_num_threads(1)
    model = ResNet9(64, 10)
    print(f"resnet9: parameters {sum(p.numel() for p in model.parameters())}, tensors {len(state(model))}, "
          f"names 0x{names_hash(model):016x}")
    model = ResNet9(8, 5)
    fill(model)
    images = torch.from_numpy(uniform(2 * 3 * 32 * 32, 999)).reshape(2, 3, 32, 32) * 2
    print("  eval logits:", numbers(model.eval()(images).flatten()))
    loss = nn.functional.cross_entropy(model.train()(images), torch.tensor([1, 3]))
    loss.backward()
    print("  train loss:", numbers([loss]), "|stem.conv.weight.grad|:", numbers([model.stem.conv.weight.grad.norm()]))
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
