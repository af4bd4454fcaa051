"""Fills, reads and changes an index of Kopf, and prints memory and CPU time on one line."""
import gc
import random
import sys
import time

from kopf._core.engines.indexing import Index


def resident() -> int:
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * 4096


def main() -> None:
    objects, keys, operations = map(int, sys.argv[1:])
    names = [f'pod-{number:08}' for number in range(objects)]
    uids = [f'{number:08x}-0000-4000-8000-000000000000' for number in range(objects)]
    order = random.Random(1)
    gc.collect()
    before = resident()
    index: Index[str, str] = Index()
    for number in range(objects):
        identity = ('default', names[number], uids[number])
        index._replace(identity, {f'claim-{number % keys:08}': names[number]})
    gc.collect()
    memory = resident() - before

    wanted = [f'claim-{order.randrange(keys):08}' for _ in range(operations)]
    found = 0
    began = time.process_time_ns()
    for key in wanted:
        for value in index[key]:
            found += len(value)
            break
    lookup = time.process_time_ns() - began
    assert found == operations * len(names[0])

    changed = [order.randrange(objects) for _ in range(operations)]
    began = time.process_time_ns()
    for number in changed:
        identity = ('default', names[number], uids[number])
        index._replace(identity, {f'claim-{(number + 1) % keys:08}': names[number]})
    update = time.process_time_ns() - began
    print(memory / objects, lookup / operations, update / operations)


main()
