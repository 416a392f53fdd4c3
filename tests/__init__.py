"""The tests, named as sentences: read one after another they are the accounting policy."""
