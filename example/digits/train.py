#!/usr/bin/env python3
"""Trains the perceptron of this folder with NumPy, and writes data/weights.txt.

    python3 train.py

It reads data/train.txt, and data/test.txt only to print the accuracy at the end. The same version of NumPy on the same
kind of CPU gives the same file.
"""
import os
import pathlib

# One thread, so that sums are always computed in the same order.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "data"
HIDDEN = 64
# Chosen by leaving out each quarter of train.txt in turn.
EPOCHS = 600
BATCH = 32


def read_images(name):
    """One image per line: its digit, a space and 64 characters, 0 to 9 and a to g, for the values 0 to 16."""
    lines = (FOLDER / name).read_text().split("\n")[:-1]
    digits = np.array([int(line[0]) for line in lines])
    images = np.array([[int(c, 17) for c in line[2:]] for line in lines], dtype=np.float64)
    return images, digits


def changed(images, rng):
    """Turns, shears, scales and shifts each image a little, and changes its contrast."""
    n = len(images)
    angle = rng.uniform(-0.2, 0.2, n)
    shear = rng.uniform(-0.15, 0.15, n)
    wide, high = rng.uniform(0.85, 1.15, (2, n))
    across, down = rng.uniform(-0.7, 0.7, (2, n))
    y, x = np.mgrid[0:8, 0:8] - 3.5
    cos, sin = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    from_x = (cos * x - sin * y + shear[:, None, None] * y) * wide[:, None, None] + across[:, None, None] + 3.5
    from_y = (sin * x + cos * y) * high[:, None, None] + down[:, None, None] + 3.5
    framed = np.pad(images.reshape(n, 8, 8), ((0, 0), (1, 2), (1, 2)))
    from_x, from_y = np.clip(from_x + 1, 0, 9), np.clip(from_y + 1, 0, 9)
    left, top = from_x.astype(int), from_y.astype(int)
    right, bottom = from_x - left, from_y - top
    row = np.arange(n)[:, None, None]
    made = (framed[row, top, left] * (1 - right) * (1 - bottom) + framed[row, top, left + 1] * right * (1 - bottom)
            + framed[row, top + 1, left] * (1 - right) * bottom + framed[row, top + 1, left + 1] * right * bottom)
    contrast = rng.uniform(0.8, 1.3, n)[:, None, None]
    return np.clip(made * contrast, 0, 16).reshape(n, 64)


def forward(weights, x):
    first, first_bias, second, second_bias = weights
    hidden = np.maximum(x @ first + first_bias, 0)
    z = hidden @ second + second_bias
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return hidden, z / z.sum(axis=1, keepdims=True)


def train(images, digits):
    """Adam on the cross entropy, with a learning rate that falls to zero."""
    rng = np.random.default_rng(18)
    weights = [rng.normal(0, np.sqrt(2 / 64), (64, HIDDEN)) / 8, np.zeros(HIDDEN),
               rng.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, 10)), np.zeros(10)]
    moments = [np.zeros_like(w) for w in weights]
    squares = [np.zeros_like(w) for w in weights]
    steps = EPOCHS * (len(images) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for begin in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[begin:begin + BATCH]
            x = changed(images[chosen], rng)
            hidden, y = forward(weights, x)
            y[np.arange(BATCH), digits[chosen]] -= 1
            y /= BATCH
            back = (y @ weights[2].T) * (hidden > 0)
            gradients = [x.T @ back, back.sum(axis=0), hidden.T @ y, y.sum(axis=0)]
            step += 1
            rate = 2e-3 * (1 + np.cos(np.pi * step / steps)) / 2
            for i, g in enumerate(gradients):
                g = g + 1e-5 * weights[i]
                moments[i] = 0.9 * moments[i] + 0.1 * g
                squares[i] = 0.999 * squares[i] + 0.001 * g * g
                weights[i] -= rate * (moments[i] / (1 - 0.9 ** step)) / (np.sqrt(squares[i] / (1 - 0.999 ** step)) + 1e-8)
    return weights


def write_weights(weights):
    """Each array as a line with its name and its dimensions, and a line with its elements, row by row."""
    names = ("first", "first_bias", "second", "second_bias")
    with open(FOLDER / "weights.txt", "w") as out:
        for name, w in zip(names, weights):
            out.write(" ".join([name, *map(str, w.shape)]) + "\n")
            out.write(" ".join("%.5g" % v if abs(v) > 1e-5 else "0" for v in w.ravel()) + "\n")


def main():
    images, digits = read_images("train.txt")
    weights = train(images, digits)
    write_weights(weights)
    for name in ("train.txt", "test.txt"):
        images, digits = read_images(name)
        right = (forward(weights, images)[1].argmax(axis=1) == digits).mean()
        print(f"{name}: {len(digits)} images, accuracy {right:.4f}")


if __name__ == "__main__":
    main()
