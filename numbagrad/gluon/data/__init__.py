"""Datasets, samplers and the loader."""

from numbagrad.gluon.data.dataloader import DataLoader
from numbagrad.gluon.data.dataset import ArrayDataset, Dataset, SimpleDataset
from numbagrad.gluon.data.sampler import (
    BatchSampler,
    FilterSampler,
    IntervalSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "FilterSampler",
    "IntervalSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SimpleDataset",
]
