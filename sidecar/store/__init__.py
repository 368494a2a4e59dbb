"""The one place that knows SQL: schema, migrations, the one writer, the readers."""
