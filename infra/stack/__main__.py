"""`python -m stack up|down|status`; `python -m stack airflow …`: Airflow's commands on what `up` has started."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

from bootstrap import Problem
from bootstrap.doctor import DEFAULT_PORTS

from . import airflow_settings
from .home import Home
from .setup import Setup, shown
from .stack import Stack


def up(stack: Stack) -> int:
    """Start the stack, or say that it runs."""
    before = Setup.of(stack.home)
    if before and before.database != stack.setup.database and not stack.running:
        print(
            f"Airflow's database was {shown(before.database)} here and is {shown(stack.setup.database)} now: runs and "
            f"connections of before stay in {before.rows(stack.home)}"
        )
    print("starting Spark Connect and Airflow ", end="", flush=True)
    begun = time.monotonic()
    started = stack.start(tied=False)
    print(f" {time.monotonic() - begun:.0f} s" if started else "- already running")
    if unheeded := airflow_settings.unheeded(stack.env):
        print(f"not used, as the stack itself decides it: {', '.join(unheeded)}")
    return status(stack)


def down(stack: Stack) -> int:
    """Stop the stack, if it runs."""
    stack.stop()
    print("stopped")
    return 0


def status(stack: Stack) -> int:
    """Say where everything is; 1 if nothing runs, or something has died."""
    if not stack.servers:
        print("not running; make up starts it")
        return 1
    for server in stack.servers:
        if not server.alive():
            print(f"{server.name} has died: see {server.log}; make up starts it again")
    if "airflow" in stack.ports:
        print(f"Airflow        {stack.airflow_url} (user admin, password in {stack.home.passwords})")
        print(f"runs with      {stack.setup}")
    print(f"Spark Connect  port {stack.ports['spark']} (address with token in {stack.home.connect_url})")
    print(f"logs           {stack.home.logs}")
    return 0 if stack.running else 1


def airflow(stack: Stack, arguments: list[str]) -> int:
    """Run Airflow's command line in the environment of its servers."""
    if not stack.running:
        raise Problem("the stack does not run: make up starts it")
    return subprocess.run(["airflow", *arguments], env=stack.env, check=False).returncode


def _dots() -> Callable[[], None]:
    """A dot a second, however often it is asked."""
    last = time.monotonic()

    def tick() -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            last = time.monotonic()
            print(".", end="", flush=True)

    return tick


def main(arguments: list[str]) -> int:
    """Run one command; a known problem is one line, never a traceback."""
    try:
        return airflow(Stack(), arguments[1:]) if arguments[:1] == ["airflow"] else _own(arguments)
    except Problem as problem:
        print(f"\nclickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nclickjoin: interrupted, everything is stopped", file=sys.stderr)
        return 130


def _own(arguments: list[str]) -> int:
    commands = {"up": up, "down": down, "status": status}
    parser = argparse.ArgumentParser(prog="python -m stack", description="Spark Connect and Airflow on this machine")
    parser.add_argument("command", choices=commands)
    parser.add_argument("--home", help="folder of state and logs (CLICKJOIN_HOME, or .run)")
    for name, default in DEFAULT_PORTS.items():
        option = f"--{name.lower().replace('_', '-')}"
        parser.add_argument(option, default=os.environ.get(name) or default, help="a number, or auto")
    chosen = parser.parse_args(arguments)
    home = Home(chosen.home)
    setup = Setup.given(os.environ, Setup.of(home)) if chosen.command == "up" else None
    stack = Stack(
        home.folder,
        spark_port=chosen.spark_port,
        airflow_port=chosen.airflow_port,
        setup=setup,
        triggerer=True,
        tick=_dots(),
    )
    return commands[chosen.command](stack)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
