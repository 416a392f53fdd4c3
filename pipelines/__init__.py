"""When things run and in what order: the pipeline, its laws, its command line, Dagster."""
