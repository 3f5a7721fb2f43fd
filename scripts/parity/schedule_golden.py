#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the golden numbers of tests/optim/schedule_test.cpp and optimizer_test.cpp from torch.optim.lr_scheduler.
Needs torch."""
import math

import torch
from torch.optim import lr_scheduler as lr

PEAK, TOTAL, PER_EPOCH = 0.4, 40, 4
UPDATES = (0, 1, 2, 3, 4, 7, 8, 11, 12, 13, 19, 20, 27, 28, 38, 39)


def values_of(make, read, optimizer=None):
    """What `read` finds in the optimizer's group at each of UPDATES."""
    optimizer = optimizer or torch.optim.SGD([torch.zeros(1, requires_grad=True)], PEAK, momentum=0.9)
    schedule = make(optimizer)
    values = []
    for update in range(TOTAL):
        values.append(read(optimizer.param_groups[0]))
        optimizer.step()
        if update + 1 < TOTAL:
            schedule.step()
    return ", ".join(f"{values[update]:.12g}" for update in UPDATES)


def rates(make):
    return values_of(make, lambda group: group["lr"])


def momenta(make):
    return values_of(make, lambda group: group["momentum"])


def beta1s(make):
    adam = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], PEAK)
    return values_of(make, lambda group: group["betas"][0], adam)


def trained(make_optimizer, updates=12):
    """A weight that starts at 1, after each update under one cycle; update t has the gradient weight + cos(t)."""
    weight = torch.ones(1, requires_grad=True)
    optimizer = make_optimizer([weight])
    schedule = lr.OneCycleLR(optimizer, 0.1, total_steps=updates)
    values = []
    for update in range(updates):
        weight.grad = weight.detach() + math.cos(update)
        optimizer.step()
        values.append(weight.item())
        if update + 1 < updates:
            schedule.step()
    return ", ".join(f"{value:.8g}" for value in values)


def plateau(values, mode, **rule):
    """The rate after each of `values`, which ReduceLROnPlateau gets in turn."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], PEAK)
    schedule = lr.ReduceLROnPlateau(optimizer, mode, min_lr=0.001, **rule)
    rates = []
    for value in values:
        optimizer.step()
        schedule.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    return ", ".join(f"{rate:.12g}" for rate in rates)


def warmed(after, warmup=8):
    """Linear warm-up from peak/10 over `warmup` updates, then `after` from its own update 0."""
    def make(o):
        return lr.SequentialLR(o, [lr.LinearLR(o, 0.1, 1, warmup), after(o)], [warmup])
    return make


def main():
    print("step:", rates(lambda o: lr.StepLR(o, 3 * PER_EPOCH, 0.1)))
    print("multistep:", rates(lambda o: lr.MultiStepLR(o, [2 * PER_EPOCH, 7 * PER_EPOCH], 0.2)))
    print("cosine:", rates(lambda o: lr.CosineAnnealingLR(o, TOTAL, 0.01)))
    print("cosine, warm-up 2 epochs:", rates(warmed(lambda o: lr.CosineAnnealingLR(o, TOTAL - 8, 0.01))))
    if hasattr(lr, "PolynomialLR"):
        print("polynomial 2:", rates(lambda o: lr.PolynomialLR(o, TOTAL, 2.0)))
        print("polynomial 1:", rates(lambda o: lr.PolynomialLR(o, TOTAL, 1.0)))
    print("cosine restarts 2 epochs, x 2:", rates(
        lambda o: lr.CosineAnnealingWarmRestarts(o, 2 * PER_EPOCH, 2, 0.01)))
    print("cosine restarts 3 epochs, warm-up 2 epochs:", rates(warmed(
        lambda o: lr.CosineAnnealingWarmRestarts(o, 3 * PER_EPOCH, 1, 0.01))))
    print("wsd, warm-up 2 epochs, 3 down:", rates(lambda o: lr.SequentialLR(
        o, [lr.LinearLR(o, 0.1, 1, 8), lr.ConstantLR(o, 1, 20), lr.LinearLR(o, 1, 0.025, 12)], [8, 28])))
    print("plateau, max:", plateau([50, 60, 60, 60.005, 60.01, 59, 61, 61, 61, 61, 61, 61, 61, 61], "max", factor=0.1,
                                   patience=2))
    print("plateau, min, rest 2:", plateau([1, 0.9, 0.95, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.85, 0.849999, float("nan"), 0.9],
                                           "min", factor=0.5, patience=1, cooldown=2))
    print("one cycle:", rates(lambda o: lr.OneCycleLR(o, PEAK, total_steps=TOTAL)))
    print("one cycle 0.1 10 100:", rates(lambda o: lr.OneCycleLR(o, PEAK, total_steps=TOTAL, pct_start=0.1,
                                                                 div_factor=10, final_div_factor=100)))
    print("one cycle, momentum:", momenta(lambda o: lr.OneCycleLR(o, PEAK, total_steps=TOTAL)))
    print("one cycle, beta1:", beta1s(lambda o: lr.OneCycleLR(o, PEAK, total_steps=TOTAL)))
    print("one cycle, momentum 0.1 0.5 0.8:", momenta(lambda o: lr.OneCycleLR(
        o, PEAK, total_steps=TOTAL, pct_start=0.1, base_momentum=0.5, max_momentum=0.8)))
    print("one cycle, SGD:", trained(lambda w: torch.optim.SGD(w, 0.1, momentum=0.9, nesterov=True)))
    print("one cycle, AdamW:", trained(lambda w: torch.optim.AdamW(w, 0.1, weight_decay=0.05)))


if __name__ == "__main__":
    main()
