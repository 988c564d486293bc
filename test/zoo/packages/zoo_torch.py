"""torch: a step of training, and a loader with processes of its own."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def work():
    weights = torch.ones(10, requires_grad=True)
    (weights * torch.arange(10.0)).sum().backward()
    loader = DataLoader(TensorDataset(torch.arange(8)), batch_size=2, num_workers=2)
    return [weights.grad.tolist(), sum(int(batch.sum()) for (batch,) in loader)]
