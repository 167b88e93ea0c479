"""Run `python -m benchmarks.fuzz`."""

from .run import main

if __name__ == "__main__":  # workers import this file, too
    main()
