"""`python -m simphys` is the command `simphys`."""

from simphys.app.entry import main

if __name__ == "__main__":
    main()
