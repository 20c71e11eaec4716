"""`python -m tacit.cli` does what `tacit` does."""

from tacit.cli import main

if __name__ == "__main__":
    main()
