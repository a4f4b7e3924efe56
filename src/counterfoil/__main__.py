"""Entry point of the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the commands and run one; Ctrl-C ends it without a traceback, even while they load."""
    try:
        from counterfoil.cli import main as commands
        from counterfoil.cli.process_end import end_process
    except KeyboardInterrupt:
        print("counterfoil: stopped before it began", file=sys.stderr)
        sys.exit(130)
    try:
        commands()
    except SystemExit as end:
        end_process(end.code if isinstance(end.code, int) else 0)


if __name__ == "__main__":
    main()
