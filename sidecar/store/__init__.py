"""The one place that knows SQL: schema, migrations, the one writer, the readers.

Each name is imported from its own module: a start looks for damage before it loads the rest of this.
"""
