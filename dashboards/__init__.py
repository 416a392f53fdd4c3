"""What a reader sees: the only folder that knows Streamlit; one view per question."""
