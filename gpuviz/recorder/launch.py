"""The place of this process among those that a launcher started together."""

import os

# Of torchrun and the frameworks that follow it, Open MPI, PMIx, MPICH and Intel MPI, and SLURM; the
# innermost launcher comes first, since SLURM may start a launcher.
_VARIABLES = (
    {"rank": "RANK", "ranks": "WORLD_SIZE"},
    {"rank": "OMPI_COMM_WORLD_RANK", "ranks": "OMPI_COMM_WORLD_SIZE"},
    {"rank": "PMI_RANK", "ranks": "PMI_SIZE"},
    {"rank": "PMIX_RANK"},
    {"rank": "SLURM_PROCID", "ranks": "SLURM_STEP_NUM_TASKS"},
)


def launch_fields() -> dict[str, int]:
    """Return the ``rank`` of this process and the number of ``ranks``, as far as they are known."""
    for names in _VARIABLES:
        texts = {field: os.environ.get(name, "") for field, name in names.items()}
        if texts["rank"].isdecimal():
            return {field: int(text) for field, text in texts.items() if text.isdecimal()}
    return {}
