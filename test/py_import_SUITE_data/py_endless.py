"""A module that is never done."""

while True:
    pass
