"""torch: a step of training."""

import torch


def work():
    weights = torch.ones(10, requires_grad=True)
    (weights * torch.arange(10.0)).sum().backward()
    return weights.grad.tolist()
