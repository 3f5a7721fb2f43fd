#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Updates of a torchvision network by PyTorch itself and by `train bench step`, in turns on the same device: images/s of
both. Needs Python's torch and torchvision. Called by scripts/gpu_truth.sh."""
import argparse
import json
import subprocess
import sys
import time

import torch
import torchvision


def pytorch_images_per_second(args):
    device = torch.device(args.device)
    torch.backends.cudnn.benchmark = True
    model = getattr(torchvision.models, args.model)().to(device, memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(args.batch_size, 3, args.img_size, args.img_size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(1000, (args.batch_size,), device=device)

    def update():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    for _ in range(5):
        update()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(args.updates):
        update()
    torch.cuda.synchronize()
    return args.updates * args.batch_size / (time.perf_counter() - begin)


def our_images_per_second(args):
    run = subprocess.run([args.train, "bench", "step", "--device", args.device, "--model", args.model, "--img-size",
                          str(args.img_size), "--batch-size", str(args.batch_size), "--bf16", "--channels-last", "--json"],
                         check=True, capture_output=True, text=True)
    return json.loads(run.stdout)["images_per_second"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--img-size", type=int, default=224)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    theirs, ours = [], []
    for _ in range(args.turns):
        theirs.append(pytorch_images_per_second(args))
        torch.cuda.empty_cache()
        ours.append(our_images_per_second(args))
    factor = sorted(ours)[len(ours) // 2] / sorted(theirs)[len(theirs) // 2]
    print(f"{args.model} bfloat16 channels-last: PyTorch {torch.__version__} {theirs}, train {ours}: {factor:.2f} times")
    sys.exit(0 if factor >= 1 else 1)


if __name__ == "__main__":
    main()
