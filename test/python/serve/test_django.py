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


@pytest.fixture(scope="module")
def application():
    urls: Any = types.ModuleType("served_urls")
    urls.urlpatterns = [
        path("hello/<str:name>/", hello),
        path("form/", sync_form),
        path("body/", body),
        path("stream/", stream),
    ]
    sys.modules["served_urls"] = urls
    settings.configure(ROOT_URLCONF="served_urls", ALLOWED_HOSTS=["*"], SECRET_KEY="secret")
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
