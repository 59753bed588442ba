"""A preload as ``gpuviz.dask``, for workers with a simulated GPU."""

import click

from gpuviz.dask.preload import record_worker
from tests.integration.dask import gpu_tasks


@click.command()
@click.option("--directory", required=True)
async def dask_setup(worker, directory):
    await record_worker(worker, directory, device=gpu_tasks.gpu)
