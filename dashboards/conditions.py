"""What a page's queries ask for: the days, clusters and teams that the reader has chosen."""

DAYS = "day_on >= $begin_on and day_on < $end_on"
HERE = f"{DAYS} and list_contains($clusters::varchar[], cluster_name)"
TEAMS = "(len($teams::varchar[]) = 0 or list_contains($teams::varchar[], team_name))"
"""All teams, where none is chosen."""
