"""Django, without a database."""

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import path

if not settings.configured:
    settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="zoo")


async def hello(request):
    return HttpResponse(f"hello {request.GET['name']}")


def echo(request):
    return HttpResponse(request.body)


urlpatterns = [path("hello", hello), path("echo", echo)]
django.setup()
app = get_asgi_application()
