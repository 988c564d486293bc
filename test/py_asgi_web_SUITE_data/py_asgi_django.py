"""A Django project in one file."""

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

import erlang


async def hello(request, name):
    return HttpResponse(f"Hello, {name}")


def form(request):
    return JsonResponse({"method": request.method, **request.POST.dict()})


def double(request, number):
    return HttpResponse(str(erlang.call("py_asgi_web_double", number)))


async def stream(request):
    async def pieces():
        for number in range(3):
            yield f"{number};"

    return StreamingHttpResponse(pieces())


def cookies(request):
    response = HttpResponse("baked")
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return response


urlpatterns = [
    path("hello/<str:name>", hello),
    path("form", form),
    path("double/<int:number>", double),
    path("stream", stream),
    path("cookies", cookies),
]

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="secret", LOGGING_CONFIG=None
    )
    django.setup()

app = get_asgi_application()
