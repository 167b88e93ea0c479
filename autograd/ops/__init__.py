from .algebra import mul
