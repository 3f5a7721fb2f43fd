#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the golden learning rates of tests/optim/schedule_test.cpp from torch.optim.lr_scheduler. Needs torch."""
import torch
from torch.optim import lr_scheduler as lr

PEAK, TOTAL, PER_EPOCH = 0.4, 40, 4
UPDATES = (0, 1, 2, 3, 4, 7, 8, 11, 12, 13, 19, 20, 27, 28, 38, 39)


def rates(make):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], PEAK)
    schedule = make(optimizer)
    values = []
    for update in range(TOTAL):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if update + 1 < TOTAL:
            schedule.step()
    return ", ".join(f"{values[update]:.12g}" for update in UPDATES)


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
    print("one cycle:", rates(lambda o: lr.OneCycleLR(o, PEAK, total_steps=TOTAL)))
    print("one cycle 0.1 10 100:", rates(lambda o: lr.OneCycleLR(o, PEAK, total_steps=TOTAL, pct_start=0.1,
                                                                 div_factor=10, final_div_factor=100)))


if __name__ == "__main__":
    main()
