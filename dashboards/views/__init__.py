"""One view per question; what several of them share lies one folder up."""
