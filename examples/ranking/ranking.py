"""What a ranking computes: the viewer, the words of its features, a small model."""


def viewer(user, count):
    return {"user": user, "items": [f"{user}:{n}" for n in range(count)]}


def commands(viewer):
    """Three reads per item, as features come: a counter, a field, a list."""
    reads = []
    for item in viewer["items"]:
        reads += [
            ["GET", f"clicks:{item}"],
            ["HGET", f"item:{item}", "price"],
            ["LRANGE", f"seen:{item}", 0, 9],
        ]
    return reads


def fill(user, count):
    """The commands that put those features there."""
    writes = []
    for n in range(count):
        item = f"{user}:{n}"
        writes += [
            ["SET", f"clicks:{item}", n * 7 % 101],
            ["HSET", f"item:{item}", "price", n % 13],
            ["RPUSH", f"seen:{item}", n, n + 1],
        ]
    return writes


def vm(viewer, features):
    """The score of each item: here a formula, elsewhere a model."""
    answers = iter(features)
    return [
        (item, int(clicks) - 2 * int(price) + len(seen))
        for item, clicks, price, seen in zip(
            viewer["items"], answers, answers, answers, strict=True
        )
    ]


def filter(scored):
    return [(item, score) for item, score in scored if score > 0]


def sort(kept):
    return sorted(kept, key=lambda pair: -pair[1])[:3]
