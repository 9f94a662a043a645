"""Compiled loops on flat arrays and sizes, by family. No Python objects, no shapes, no tape."""
