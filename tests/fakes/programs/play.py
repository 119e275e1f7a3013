"""What a test wants a call to do: fail, wait, say something, leave a child behind."""

import os
import sys
import time

from programs.state import STATE, STORE, read


class Play:
    """The rules of the script that fit this call; a rule with `times` is used up by that many calls."""

    def __init__(self, words):
        self.rules = []
        for number, rule in enumerate(read(os.path.join(STATE, "script.json"), [])):
            wanted = rule["call"].split()
            rest = iter(words)
            if words[0] == wanted[0] and all(word in rest for word in wanted[1:]) and take(number, rule):
                self.rules.append(rule)

    def at(self, stage):
        """Do what the script wants at this stage of the call: write, wait, leave a child, end."""
        for rule in self.rules:
            if rule.get("at", "start") != stage:
                continue
            sys.stdout.write(rule.get("stdout", ""))
            sys.stderr.write(rule.get("stderr", ""))
            sys.stdout.flush()
            sys.stderr.flush()
            if "leaves" in rule and os.fork() == 0:
                os.execv("/bin/sleep", ["left-behind", str(rule["leaves"])])
            time.sleep(rule.get("delay", 0))
            if "status" in rule:
                os._exit(rule["status"])


def take(number, rule):
    for turn in range(rule.get("times", 0)):
        try:
            os.close(os.open(os.path.join(STORE, f"rule-{number}-{turn}"), os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            continue
        return True
    return "times" not in rule
