"""Django's own ASGI handler over our server."""

from __future__ import annotations

import asyncio
import sys
import types
from typing import Any

import django
import httpx
import pytest
from django.conf import settings
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path


async def hello(request: Any, name: str) -> HttpResponse:
    return HttpResponse(f"Hello, {name}")


def sync_form(request: Any) -> JsonResponse:
    return JsonResponse({"method": request.method, **request.POST.dict()})


async def body(request: Any) -> JsonResponse:
    return JsonResponse({"size": len(request.body)})


async def stream(request: Any) -> StreamingHttpResponse:
    async def pieces() -> Any:
        for number in range(3):
            yield f"{number};"
            await asyncio.sleep(0)

    return StreamingHttpResponse(pieces())


def upload(request: Any) -> JsonResponse:
    file = request.FILES["file"]
    kind = type(file).__name__
    return JsonResponse({"name": file.name, "sum": sum(file.read()), "kind": kind})


def visits(request: Any) -> HttpResponse:
    request.session["visits"] = request.session.get("visits", 0) + 1
    response = HttpResponse(str(request.session["visits"]))
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return response


async def fails(request: Any) -> HttpResponse:
    raise ZeroDivisionError


heard: list[str] = []


async def waits(request: Any) -> HttpResponse:
    heard.append("began")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        heard.append("left")
        raise
    return HttpResponse("never")


@pytest.fixture(scope="module")
def application():
    urls: Any = types.ModuleType("served_urls")
    urls.urlpatterns = [
        path("hello/<str:name>/", hello),
        path("form/", sync_form),
        path("body/", body),
        path("stream/", stream),
        path("upload/", upload),
        path("visits/", visits),
        path("fails/", fails),
        path("waits/", waits),
    ]
    sys.modules["served_urls"] = urls
    settings.configure(
        ROOT_URLCONF="served_urls",
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="secret",
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
        ],
    )
    django.setup()
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


def test_django_answers(our_host, application):
    async def main():
        async with our_host.serve(application) as peer:
            base = f"http://127.0.0.1:{peer.port}"
            async with httpx.AsyncClient(base_url=base) as client:
                return [
                    (await client.get("/hello/W%C3%B6rld/")).text,
                    (await client.post("/form/", data={"a": "1"})).json(),
                    (await client.post("/body/", content=b"x" * 100_000)).json(),
                    (await client.get("/stream/")).text,
                    (await client.get("/none/")).status_code,
                ]

    assert our_host.run(main) == [
        "Hello, Wörld",
        {"method": "POST", "a": "1"},
        {"size": 100_000},
        "0;1;2;",
        404,
    ]


def test_django_keeps_sessions_and_takes_files(our_host, application):
    # Larger than what Django keeps in memory.
    data = bytes(range(250)) * 16_000

    async def main():
        async with our_host.serve(application) as peer:
            base = f"http://127.0.0.1:{peer.port}"
            async with httpx.AsyncClient(base_url=base) as client:
                first = await client.get("/visits/")
                cookies = [cookie.split("=")[0] for cookie in first.headers.get_list("set-cookie")]
                second = await client.get("/visits/")
                sent = await client.post("/upload/", files={"file": ("a.bin", data)})
                assert (await client.get("/hello/x")).status_code == 301
                return first.text, second.text, sorted(cookies), sent.json()

    first, second, cookies, sent = our_host.run(main)
    assert (first, second) == ("1", "2")
    assert cookies == ["a", "b", "sessionid"]
    assert sent == {"name": "a.bin", "sum": sum(data), "kind": "TemporaryUploadedFile"}


def test_django_answers_500_and_hears_of_a_client_that_left(our_host, application):
    async def main():
        async with our_host.serve(application) as peer:
            wire = await peer.connect()
            assert (await wire.get("/fails/")).status == 500
            wire.send(b"GET /waits/ HTTP/1.1\r\nHost: test\r\n\r\n")
            while not heard:
                await asyncio.sleep(0)
            await wire.close()
            while peer.server.info()["in_flight"]:
                await asyncio.sleep(0)

    heard.clear()
    our_host.run(main)
    assert heard == ["began", "left"]
