"""Channels over Django."""

import django
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import path

if not settings.configured:
    settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="zoo")


def hello(request):
    return HttpResponse(f"hello {request.GET['name']}")


def echo(request):
    return HttpResponse(request.body)


class Echo(AsyncWebsocketConsumer):
    async def receive(self, text_data=None, bytes_data=None):
        await self.send(text_data=text_data)
        await self.close()


urlpatterns = [path("hello", hello), path("echo", echo)]
django.setup()
app = ProtocolTypeRouter(
    {"http": get_asgi_application(), "websocket": URLRouter([path("ws", Echo.as_asgi())])}
)
