"""
A coordinator in Python, written from docs/PROTOCOL.md, drives nodes in C: secure sums over the
nodes' own examples, all-reduce groups, and products of coded operands.
"""
import traceback

from . import coordinated_allreduce, coordinated_shares, coordinated_sums, harness


def main():
    me = harness.identity("me.key")
    for test in (coordinated_sums, coordinated_allreduce, coordinated_shares):
        try:
            test.run(me)
        except Exception as error:  # an exception is a failed case
            harness.report(False, test.__name__, traceback.format_exc())
    harness.finish()


if __name__ == "__main__":
    main()
