"""The client of Gradio: a call by its queue, whose answer is a stream of events."""

import asyncio

from gradio_client import Client


async def ask(base):
    assert await asyncio.wait_for(asyncio.to_thread(predict, base), 60) == ["n0", "n1", "n2"]


def predict(base):
    client = Client(f"{base}/gradio/", verbose=False)
    jobs = [client.submit(f"n{number}", api_name="/predict") for number in range(3)]
    return [job.result(timeout=30) for job in jobs]
