#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the golden numbers of tests/model/networks/resnet_test.cpp from torchvision.

Needs torch and torchvision. Fills every model with numbers that depend only on the tensor and element number, so
that the C++ test can do the same without a file.
"""
import numpy as np
import torch
import torchvision

MODELS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")


def uniform(count, stream):
    """float32 numbers in [-1, 1): a multiply-xorshift hash of the element number and the stream number."""
    h = np.arange(count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(stream * 2246822519 & 0xFFFFFFFF)
    h ^= h >> np.uint32(15)
    h *= np.uint32(2246822519)
    h ^= h >> np.uint32(13)
    h *= np.uint32(3266489917)
    h ^= h >> np.uint32(16)
    return (h >> np.uint32(8)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)


def state(model):
    """Parameters, then buffers, in registration order."""
    return list(model.named_parameters()) + list(model.named_buffers())


def fill(model):
    with torch.no_grad():
        for stream, (name, tensor) in enumerate(state(model)):
            if not tensor.is_floating_point():
                continue
            values = torch.from_numpy(uniform(tensor.numel(), stream)).reshape(tensor.shape)
            if tensor.dim() == 4:  # variance 2 / fan_in
                values *= (6 / tensor[0].numel()) ** 0.5
            elif tensor.dim() == 2:
                values *= (3 / tensor.shape[1]) ** 0.5
            elif name.endswith("running_var") or name.endswith("weight"):
                values = 1 + values / 4
            else:
                values = values / 8
            tensor.copy_(values)


def names_hash(model):
    """64-bit FNV-1a of lines "name 64,3,7,7"."""
    h = 0xCBF29CE484222325
    for name, tensor in state(model):
        for byte in (name + " " + ",".join(map(str, tensor.shape)) + "\n").encode():
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def images(channels=3):
    return torch.from_numpy(uniform(2 * channels * 64 * 64, 999)).reshape(2, channels, 64, 64) * 2


def numbers(values):
    return ", ".join(f"{float(v):.9g}" for v in values)


def main():
    torch.set_num_threads(1)
    for name in MODELS:
        model = getattr(torchvision.models, name)()
        count = sum(p.numel() for p in model.parameters())
        print(f"{name}: tensors {len(state(model))}, parameters {count}, names 0x{names_hash(model):016x}")
        if name in ("resnet101", "resnet152"):
            continue
        model = getattr(torchvision.models, name)(num_classes=5)
        fill(model)
        model.eval()
        print("  eval logits:", numbers(model(images()).flatten()))
        model.train()
        loss = torch.nn.functional.cross_entropy(model(images()), torch.tensor([1, 3]))
        loss.backward()
        print("  train loss:", numbers([loss]))
        print("  |conv1.weight.grad|:", numbers([model.conv1.weight.grad.norm()]))
        print("  sum layer4.0.bn1.running_var:", numbers([model.layer4[0].bn1.running_var.sum()]))
    for zero in (False, True):
        torch.manual_seed(7)
        model = torchvision.models.resnet18(num_classes=5, zero_init_residual=zero)
        print(f"seed 7, zero_init_residual={zero}:", numbers(model.conv1.weight.flatten()[:3]),
              "| layer2.0.downsample.0", numbers(model.layer2[0].downsample[0].weight.flatten()[:2]),
              "| fc", numbers(model.fc.weight.flatten()[:2]), "| bn2", numbers([model.layer1[0].bn2.weight.sum()]))


if __name__ == "__main__":
    main()
