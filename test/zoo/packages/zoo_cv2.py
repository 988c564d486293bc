"""OpenCV: blur a picture in its own threads."""

import cv2
import numpy


def work():
    picture = numpy.full((64, 64), 100, numpy.uint8)
    return int(cv2.GaussianBlur(picture, (5, 5), 0).mean())
