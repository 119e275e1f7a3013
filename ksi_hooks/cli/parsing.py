"""The command line's grammar: argparse whose errors are ours, with examples below every help."""

import argparse
from typing import NoReturn

from ksi_hooks.errors import UsageError


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with argparse's sentence and the way to the help."""
        raise UsageError(message, hint=f"{self.prog} --help")


Subparsers = argparse._SubParsersAction  # argparse has no public name for it


def add(subparsers: "Subparsers[Parser]", name: str, about: str, examples: str) -> Parser:
    """Add a subcommand; examples are shown as written."""
    return subparsers.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="examples:\n" + "".join(f"  {line.strip()}\n" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
