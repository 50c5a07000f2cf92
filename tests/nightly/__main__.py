"""`python -m tests.nightly` prints what runs nightly only, and what stands for it every time, as a Markdown table."""

from . import table

if __name__ == "__main__":
    print(table())
