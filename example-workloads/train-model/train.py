"""Logistic regression by gradient descent: with PyTorch where the image has it, else with NumPy."""

import hashlib
import random
import sys
from pathlib import Path

try:
    import torch
except ImportError:
    torch = None

SAMPLES, HELD_OUT, FEATURES = 2000, 500, 8
STEPS, RATE = 200, 0.5
WANTED_ACCURACY = 0.9

Rows = list[list[float]]
Labels = list[float]


def generate(count: int, rng: random.Random) -> tuple[Rows, Labels]:
    """Points with a label: on which side of a plane each lies, with some noise."""
    rows = [[rng.gauss(0, 1) for _ in range(FEATURES)] for _ in range(count)]
    plane = [(-1) ** i * (i + 1) for i in range(FEATURES)]
    labels = [float(sum(map(float.__mul__, row, map(float, plane))) + rng.gauss(0, 1) > 0) for row in rows]
    return rows, labels


def report(step: int, loss: float) -> None:
    """Print the loss now and then."""
    if step % 40 == 0 or step == STEPS:
        print(f"step {step:3} of {STEPS}  loss {loss:.4f}")


def train_torch(rows: Rows, labels: Labels, test: Rows, file: Path) -> list[bool]:
    """Train, save as `file`.pt, and return what the model says of the test rows."""
    torch.manual_seed(0)
    x, y = torch.tensor(rows), torch.tensor(labels)
    model = torch.nn.Linear(FEATURES, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        report(step, loss.item())
    torch.save(model.state_dict(), file.with_suffix(".pt"))
    return (model(torch.tensor(test)).squeeze(1) > 0).tolist()


def train_numpy(rows: Rows, labels: Labels, test: Rows, file: Path) -> list[bool]:
    """The same by hand, saved as `file`.npz."""
    import numpy as np

    x, y = np.array(rows), np.array(labels)
    weights, bias = np.zeros(FEATURES), 0.0
    for step in range(1, STEPS + 1):
        p = 1 / (1 + np.exp(-(x @ weights + bias)))
        report(step, float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))))
        weights -= RATE * x.T @ (p - y) / len(y)
        bias -= RATE * float(np.mean(p - y))
    np.savez(file.with_suffix(".npz"), weights=weights, bias=bias)
    return list(np.array(test) @ weights + bias > 0)


def main() -> None:
    """Train, test, and end with a line for sha256sum --check."""
    out = Path(sys.argv[1])
    out.mkdir(exist_ok=True)
    rng = random.Random(1)
    rows, labels = generate(SAMPLES, rng)
    test, expected = generate(HELD_OUT, rng)
    print(f"training with {'PyTorch' if torch else 'NumPy'}")
    train, suffix = (train_torch, ".pt") if torch else (train_numpy, ".npz")
    said = train(rows, labels, test, out / "model")
    accuracy = sum(a == b for a, b in zip(said, map(bool, expected), strict=True)) / HELD_OUT
    print(f"accuracy {accuracy:.3f}")
    if accuracy < WANTED_ACCURACY:
        sys.exit(f"accuracy is below {WANTED_ACCURACY}")
    file = (out / "model").with_suffix(suffix)
    print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file}")


main()
