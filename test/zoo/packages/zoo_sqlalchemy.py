"""SQLAlchemy: SQLite in memory."""

from sqlalchemy import create_engine, text


def work():
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            return connection.execute(text("select 6 * 7")).scalar()
    finally:
        engine.dispose()
