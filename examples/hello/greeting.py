"""A module of one's own: nothing in it knows of Erlang."""


def greet(name: str, excited: bool = False) -> str:
    return f"Hello, {name}{'!' if excited else '.'}"
