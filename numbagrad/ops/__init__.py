"""Every op, declared once: name, dtype rule, kernel or expression, VJP, reference, samples."""
