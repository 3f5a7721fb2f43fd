#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the golden numbers of tests/model/networks/torchvision_test.cpp from torchvision 0.14.

Needs torch and torchvision. Weights and images are those of resnet_golden.py: they depend on the tensor and element
number only, so that the C++ test makes the same without a file. Dropout and stochastic depth are off.
"""
import sys

import torch
import torchvision
from torchvision.models.vision_transformer import VisionTransformer

from resnet_golden import fill, images, names_hash, numbers, state, uniform

COMPUTED = ("efficientnet_b0", "efficientnet_b5", "mobilenet_v3_small", "mobilenet_v3_large", "convnext_tiny", "vit_s_16",
            "resnext50_32x4d", "mobilenet_v2", "densenet121", "regnet_y_400mf", "regnet_x_400mf", "efficientnet_v2_s", "swin_t",
            "swin_v2_t")
DRAWN = set(COMPUTED) - {"efficientnet_b5", "mobilenet_v3_large", "resnext50_32x4d", "regnet_x_400mf"}
NAMED = (*(f"efficientnet_b{i}" for i in range(8)), "mobilenet_v3_small", "mobilenet_v3_large", "convnext_tiny", "convnext_small",
         "convnext_base", "convnext_large", "vit_s_16", "vit_b_16", "vit_b_32", "vit_l_16", "resnext50_32x4d", "resnext101_32x8d",
         "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2", "mobilenet_v2", "efficientnet_v2_s", "efficientnet_v2_m",
         "efficientnet_v2_l", *(f"densenet{i}" for i in (121, 161, 169, 201)),
         *(f"regnet_{x}_{size}" for x in "yx" for size in ("400mf", "800mf", "1_6gf", "3_2gf", "8gf", "16gf", "32gf")),
         *(f"swin_{size}" for size in ("t", "s", "b", "v2_t", "v2_s", "v2_b")))


def make(name, num_classes=1000, image_size=224, in_chans=3):
    """The network without dropout and stochastic depth. timm's sizes for the small ViT, which torchvision lacks."""
    options = {"num_classes": num_classes}
    if name == "vit_s_16":
        return VisionTransformer(image_size, 16, 12, 6, 384, 1536, **options)
    if name.startswith("vit"):
        return getattr(torchvision.models, name)(image_size=image_size, **options)
    model = getattr(torchvision.models, name)(**options)
    for module in model.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return model


def first_norm(model):
    """The last batch norm, whose statistics have seen the whole network; None without one."""
    norms = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.BatchNorm2d)]
    return norms[-1] if norms else None


def compute(name):
    model = make(name, num_classes=5, image_size=64)
    fill(model)
    model.eval()
    print("  eval logits:", numbers(model(images()).flatten()))
    model.train()
    loss = torch.nn.functional.cross_entropy(model(images()), torch.tensor([1, 3]))
    loss.backward()
    key, first = next((k, p) for k, p in model.named_parameters() if p.dim() == 4)
    print("  train loss:", numbers([loss]), f"|{key}.grad|:", numbers([first.grad.norm()]))
    norm = first_norm(model)
    if norm:
        print(f"  sum {norm[0]}.running_var:", numbers([norm[1].running_var.sum()]))


def gradients(name):
    """In float64, where rounding flips no relu: the length of all of them, and their product with numbers by formula."""
    model = make(name, num_classes=5, image_size=64)
    fill(model)
    model.double().train()
    torch.nn.functional.cross_entropy(model(images().double()), torch.tensor([1, 3])).backward()
    grads = [p.grad.flatten() for p in model.parameters()]
    products = [g @ torch.from_numpy(uniform(g.numel(), stream)).double() for stream, g in enumerate(grads)]
    print("  gradients:", numbers([sum(g @ g for g in grads).sqrt(), sum(products)]))


def draws(name):
    torch.manual_seed(7)
    model = make(name, num_classes=5, image_size=64)
    for key, parameter in model.named_parameters():
        if parameter.dim() > 1 and parameter.abs().max() > 0 and parameter.std() > 0:
            last = key, parameter
            if key in ("features.0.0.weight", "features.conv0.weight", "stem.0.weight", "features.1.1.mlp.3.weight",
                       "features.1.0.attn.relative_position_bias_table", "conv_proj.weight", "encoder.layers.encoder_layer_3.mlp.3.weight",
                       "encoder.pos_embedding", "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"):
                print(f"  seed 7, {key}:", numbers(parameter.flatten()[:2]))
    print(f"  seed 7, {last[0]}:", numbers(last[1].flatten()[:2]))


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or NAMED:
        model = make(name)
        count = sum(p.numel() for p in model.parameters())
        print(f"{name}: tensors {len(state(model))}, parameters {count}, names 0x{names_hash(model):016x}", flush=True)
        if name in COMPUTED:
            compute(name)
            gradients(name)
            if name in DRAWN:
                draws(name)


if __name__ == "__main__":
    main()
