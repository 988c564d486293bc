"""PyYAML: its C loader."""

import yaml


def work():
    return yaml.load("a: [1, 2, {b: c}]", Loader=yaml.CSafeLoader)["a"][:2]
