"""Batches of independent problems, shared out among JAX's devices."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

ROWS = "rows"


def over_devices(
    solve: Callable[..., Any],
    batch: Any,
    *given: Any,
    devices: Sequence[Any] | None = None,
) -> Any:
    """Apply a function to each row of a batch, the rows shared out among devices.

    The rows are sharded over a mesh of all devices, and what is given to each row lies
    on all of them. Each device takes its rows in turn and waits for no other. A row has
    the result that it has alone, up to rounding, as XLA compiles it anew.
    """
    lengths = {len(leaf) for leaf in jax.tree.leaves(batch)}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            "batch: expected arrays with one and the same number of rows, at least 1, "
            f"got {sorted(lengths)}"
        )
    (size,) = lengths
    chosen = jax.devices() if devices is None else list(devices)
    chosen = chosen[:size]
    mesh = jax.make_mesh(
        (len(chosen),), (ROWS,), axis_types=(AxisType.Auto,), devices=chosen
    )
    # Shards have one size: some devices solve the last row once more.
    rows = jnp.minimum(jnp.arange(size + -size % len(chosen)), size - 1)
    padded = jax.tree.map(lambda leaf: leaf[rows], batch)
    padded = jax.device_put(padded, NamedSharding(mesh, PartitionSpec(ROWS)))
    given = jax.device_put(given, NamedSharding(mesh, PartitionSpec()))
    return jax.tree.map(lambda leaf: leaf[:size], _run(solve, mesh, padded, given))


@partial(jax.jit, static_argnums=(0, 1))
def _run(solve: Callable[..., Any], mesh: Mesh, batch: Any, given: tuple) -> Any:
    def of_one_device(rows: Any, given: tuple) -> Any:
        # Loops end at different times: mapped together, all would run to the last.
        return jax.lax.map(lambda row: solve(row, *given), rows)

    return jax.shard_map(
        of_one_device,
        mesh=mesh,
        in_specs=(PartitionSpec(ROWS), PartitionSpec()),
        out_specs=PartitionSpec(ROWS),
        check_vma=False,
    )(batch, given)
