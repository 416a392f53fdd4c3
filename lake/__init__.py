"""Where tables live: attach, stage, commit, read at a snapshot in a viewer's scope.

The only folder that opens the warehouse. What a table means belongs in `models`, how it is filled
in `sql`, when and in what order in `pipelines`.
"""
