"""The engine that talks to language models, through pydantic-ai."""
