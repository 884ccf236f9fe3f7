"""LLM-driven search whose model-written code runs only in sealed containers."""
