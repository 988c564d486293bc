"""Curio in a thread of its own; the rest of the program talks to it by a queue."""

import threading

import curio

import erlang


async def _serve(questions, answers):
    while (question := await questions.get()) is not None:
        await curio.sleep(0.001)
        # Blocking calls leave its loop alone in the same way.
        answer = await curio.run_in_thread(erlang.call, "runtime_add", question, question)
        await answers.put(answer)


class Server:
    def __init__(self):
        self.questions, self.answers = curio.UniversalQueue(), curio.UniversalQueue()
        self.thread = threading.Thread(
            target=curio.run, args=(_serve, self.questions, self.answers)
        )
        self.thread.start()

    def stop(self):
        self.questions.put(None)
        self.thread.join()


def from_plain_code(numbers):
    server = Server()
    for number in numbers:
        server.questions.put(number)
    doubled = [server.answers.get() for _ in numbers]
    server.stop()
    return doubled


async def from_a_coroutine(numbers):
    """The queue can be awaited on a loop of asyncio, too."""
    server = Server()
    for number in numbers:
        await server.questions.put(number)
    doubled = [await server.answers.get() for _ in numbers]
    server.stop()
    return doubled
