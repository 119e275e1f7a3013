"""The `ksi` command: finds the subcommand, and is the one place where its exceptions stop."""

import argparse
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ksi_hooks import __version__
from ksi_hooks.cli.parsing import Parser
from ksi_hooks.errors import KsiError, UsageError

COMMANDS = {
    "run": "make a cluster, run a script with it, delete the cluster",
    "list": "list clusters",
    "show": "show one cluster",
    "delete": "delete clusters",
    "config": "show every setting and where it comes from",
    "doctor": "check what clusters need on this node",
    "install": "write hooks, units and settings for a site",
}
EXAMPLES = """\
examples:
  ksi run ./workload.sh            a cluster for one script
  ksi list                         my clusters
  ksi doctor                       what is missing on this node
  ksi install --set registry_dir=/shared/ksi

`ksi COMMAND --help` tells more. Settings: --config, else $KSI_CONFIG, else etc/ksi/ksi.yaml
in the directory of the interpreter's installation or above it, up to /etc/ksi/ksi.yaml.
"""
INTERRUPTED = 130


def entry() -> None:
    """Run as the console script."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit status; errors become one sentence and a hint."""
    args = argparse.Namespace(debug=False)
    try:
        parser = _parser(argv)
        parser.parse_args(argv, args)
        return _flushed(dispatch(args) if args.subcommand else _usage(parser))
    except KsiError as error:
        if args.debug:
            traceback.print_exc()
        _complain(str(error), error.hint)
        return error.exit_status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`ksi list | head`): write no more, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a missing right: the surroundings, not the program
        if args.debug:
            raise
        where = f": {error.filename}" if error.filename else ""
        _complain(f"{error.strerror or error}{where}", "--debug shows what was tried")
        return 1
    except Exception as error:
        if args.debug:
            raise
        _complain(f"internal error: {type(error).__name__}: {error}", f"report it with {_keep_traceback()}")
        return 1


def dispatch(args: argparse.Namespace) -> int:
    """Call the subcommand; raises KsiError."""
    main = _module(args.subcommand).main
    if args.subcommand == "run":
        from ksi_hooks.cli import site

        return int(main(args, site.of(args).settings))
    return int(main(args))


def _usage(parser: Parser) -> int:
    parser.print_help(sys.stderr)
    return UsageError.exit_status


def _parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        prog="ksi",
        description="Kubernetes clusters for jobs: kind on Podman, one per job.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ksi {__version__}")
    _add_common(parser, None, False)
    subparsers = parser.add_subparsers(dest="subcommand", metavar="COMMAND")
    for name, about in COMMANDS.items():
        if name not in argv:  # only the wanted subcommand is imported
            subparsers.add_parser(name, help=about)
            continue
        _module(name).add_parser(subparsers)
        _add_common(subparsers.choices[name], argparse.SUPPRESS, argparse.SUPPRESS)
    return parser


def _add_common(parser: argparse.ArgumentParser, config: str | None, debug: bool | str) -> None:
    parser.add_argument("--config", metavar="FILE", type=Path, default=config, help="the settings file")
    parser.add_argument("--debug", action="store_true", default=debug, help="show tracebacks")


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"ksi_hooks.cli.{command}")


def _flushed(status: int) -> int:
    sys.stdout.flush()  # here, where a reader that has gone is still expected
    return status


def _complain(sentence: str, hint: str) -> None:
    print(f"ksi: error: {sentence}", file=sys.stderr)
    if hint:
        print(f"ksi: hint: {hint}", file=sys.stderr)


def _keep_traceback() -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="ksi-traceback-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(traceback.format_exc())
            return f"the traceback in {file.name}"
    except OSError:
        return "what --debug shows"


if __name__ == "__main__":
    entry()
