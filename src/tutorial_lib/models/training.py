"""Training: one step of Adam, and the loop that chapter 08 writes around it."""

import numpy as np

from tutorial_lib.contract import checked, require
from tutorial_lib.models.copying import BATCH, TinyModel, loss_and_gradients, sample_sequences


@checked
def adam_step(arrays: list[np.ndarray], gradients: list[np.ndarray], memory: object, rate: float):
    """Move each array against its gradient, by steps that hardly depend on the gradient's size.

    Adam divides a running mean of the gradients by the root of a running mean of their squares;
    both means start at 0, which the two divisors make up for. An entry moves by about `rate` where
    its gradients agree from step to step, and by less where they do not.

    Returns the new arrays, and the memory for the next step: (steps, means, squares). The first
    step has None.

    Source: Kingma and Ba (2015), algorithm 1, with beta_1 = 0.9 and beta_2 = 0.98.
    """
    zeros = [np.zeros(array.shape) for array in arrays]
    steps, means, squares = memory or (0, zeros, zeros)
    steps += 1
    means = [mean + 0.1 * (dW - mean) for mean, dW in zip(means, gradients, strict=True)]
    squares = [s + 0.02 * (dW**2 - s) for s, dW in zip(squares, gradients, strict=True)]
    new_arrays = []
    for array, mean, square in zip(arrays, means, squares, strict=True):
        divisor = np.sqrt(square / (1 - 0.98**steps)) + 1e-8
        new_arrays.append(array - rate * mean / (1 - 0.9**steps) / divisor)
    return new_arrays, (steps, means, squares)


@checked
def train(
    model: TinyModel,
    rng: np.random.Generator,
    *,
    steps: "integer",
    rate: float = 5e-3,
    differentiate: callable = loss_and_gradients,
):
    """Train on new sequences in each step, and yield each step's number, loss and new model.

    Introduced in chapter 08. `rate` is how far an entry moves in a step at most, or nearly so;
    `differentiate` is a function that returns what `copying.loss_and_gradients` does.

    Yields
    ------
    step, loss, model : from 1; the loss before the step; the TinyModel after it

    Raises
    ------
    ValueError : steps below 0, a rate that is not above 0 and at most 1
    FloatingPointError : the loss is NaN or infinite
    """
    require(
        steps >= 0 and 0 < rate <= 1,
        ValueError,
        f"steps={steps} and rate={rate}; expected 0 steps or more and a rate above 0, at most 1, "
        f"since all entries begin near 0. Give numbers such as 300 and 5e-3.",
    )
    adam_memory = None
    for step in range(1, steps + 1):
        ids, known = sample_sequences(rng, BATCH)
        loss, gradients = differentiate(model, ids, known)
        if not np.isfinite(loss):
            raise FloatingPointError(f"The loss of step {step} is {loss}. Lower the rate.")
        arrays, adam_memory = adam_step(model.arrays, gradients, adam_memory, rate)
        model = TinyModel.of(arrays)
        yield step, loss, model
