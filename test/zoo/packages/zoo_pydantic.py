"""pydantic: validation in Rust."""

import pydantic


class Item(pydantic.BaseModel):
    name: str
    price: float


def work():
    return [Item.model_validate_json('{"name": "x", "price": "1.5"}').price, _refused()]


def _refused():
    try:
        Item(name="x", price="much")
    except pydantic.ValidationError as error:
        return error.error_count()
