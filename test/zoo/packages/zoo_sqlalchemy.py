"""SQLAlchemy: SQLite in memory; with a server (ZOO_POSTGRES) PostgreSQL by asyncpg too."""

import os

from sqlalchemy import create_engine, text

SERVER = os.environ.get("ZOO_POSTGRES", "")


def work():
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            return connection.execute(text("select 6 * 7")).scalar()
    finally:
        engine.dispose()


async def work_async():
    if not SERVER:
        return work()
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(SERVER.replace("postgresql:", "postgresql+asyncpg:"))
    try:
        async with engine.connect() as connection:
            return (await connection.execute(text("select 6 * 7"))).scalar()
    finally:
        await engine.dispose()
