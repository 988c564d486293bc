"""Strawberry: GraphQL under FastAPI."""

from collections.abc import AsyncGenerator

import strawberry
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from strawberry.fastapi import GraphQLRouter


@strawberry.type
class Query:
    @strawberry.field
    def hello(self, name: str) -> str:
        return f"hello {name}"


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int) -> AsyncGenerator[int, None]:
        for number in range(1, to + 1):
            yield number


schema = strawberry.Schema(Query, subscription=Subscription)
app = FastAPI()
app.include_router(GraphQLRouter(schema), prefix="/graphql")


@app.get("/hello", response_class=PlainTextResponse)
async def hello(name: str):
    told = await schema.execute("query ($n: String!) { hello(name: $n) }", {"n": name})
    return told.data["hello"]


@app.post("/echo", response_class=PlainTextResponse)
async def echo(request: Request):
    return (await request.body()).decode()
