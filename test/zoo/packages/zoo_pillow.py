"""Pillow: draw, write and read a picture."""

import io

from PIL import Image


def work():
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "red").resize((32, 32)).save(file, "PNG")
    return list(Image.open(file).getpixel((1, 1)))
