"""Machine code of a kernel: blocks, loops, and the way that a tile takes through the main loop."""

import collections
import dataclasses
import re
import subprocess

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_\w+):")
TARGET = re.compile(r"`\((\.L_\w+)\)")


@dataclasses.dataclass
class Instruction:
    name: str  # with its modifiers: HMMA.16816.F32.BF16
    operands: str
    predicate: str = ""

    @property
    def op(self):
        return self.name.split(".")[0]

    def target(self):
        """The label that it may jump to. A CALL of a label inside the kernel never comes back; one of a function does."""
        found = TARGET.search(self.operands) if self.op in ("BRA", "CALL", "JMP") else None
        return found and found.group(1)

    def falls_through(self):
        conditional = self.predicate or self.operands.split("`")[0]  # BRA P0, `(.L_1)
        return bool(conditional) or not (self.target() or self.op in ("EXIT", "RET"))


class Block:
    def __init__(self):
        self.instructions, self.next = [], []


def disassemble(nvdisasm, cubin):
    """Instructions and labels of each kernel in an object."""
    done = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True)
    kernels, lines = {}, None
    for text in done.stdout.splitlines():
        if text.startswith(".text."):
            lines = kernels.setdefault(text[len(".text."):].rstrip(":"), [])
        elif lines is not None:
            if found := INSTRUCTION.match(text):
                lines.append(Instruction(found.group(3), found.group(4), found.group(2) or ""))
            elif found := LABEL.match(text):
                lines.append(found.group(1))
    return kernels


def make_blocks(lines):
    """Basic blocks in the order of the code, with the numbers of those that may follow."""
    blocks, labels, ended = [Block()], {}, False
    for line in lines:
        if isinstance(line, str):
            if blocks[-1].instructions:
                blocks.append(Block())
            labels[line] = len(blocks) - 1
            ended = False
            continue
        if ended:
            blocks.append(Block())
        blocks[-1].instructions.append(line)
        ended = bool(line.target()) or line.op in ("EXIT", "RET")
    for number, block in enumerate(blocks):
        last = block.instructions[-1] if block.instructions else None
        if last is None or last.falls_through():
            block.next += [number + 1] if number + 1 < len(blocks) else []
        if last and last.target() in labels:
            block.next.append(labels[last.target()])
    return blocks


def find_loops(blocks):
    """{first block: its blocks} of the loops, and the jumps back that close them."""
    back, state = set(), {}
    stack = [(0, iter(blocks[0].next))]
    state[0] = "open"
    while stack:
        block, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            state[block] = "done"
            stack.pop()
        elif following not in state:
            state[following] = "open"
            stack.append((following, iter(blocks[following].next)))
        elif state[following] == "open":
            back.add((block, following))
    before = collections.defaultdict(list)
    for number, block in enumerate(blocks):
        for following in block.next:
            before[following].append(number)
    loops = collections.defaultdict(set)
    for last, first in back:
        loops[first].add(first)
        work = [last]
        while work:
            block = work.pop()
            if block not in loops[first]:
                loops[first].add(block)
                work += before[block]
    return loops, back


class Loop:
    """A loop around the products of a tile. Loops inside it run as often as `trips` says (once, where it does not)."""

    def __init__(self, blocks, first, members, inner, back):
        self.blocks, self.first, self.members, self.back = blocks, first, members, back
        self.inner = inner  # {first block: blocks} of the loops inside it
        self.trips = collections.Counter()

    def instructions(self):
        return [i for number in sorted(self.members) for i in self.blocks[number].instructions]

    def trips_of(self, block):
        return next((self.trips[first] for first, members in self.inner.items() if block in members and self.trips[first]), 1)

    def path(self, worth):
        """The way once around with the most `worth(instruction)` and then the fewest instructions."""
        values = {number: (sum(map(worth, self.blocks[number].instructions)) * self.trips_of(number),
                           -len(self.blocks[number].instructions) * self.trips_of(number)) for number in self.members}
        best = {}  # block: (worth, -length, way from there)
        for block in reversed(self._order()):
            ways = [best[n] for n in self.blocks[block].next if n in self.members and (block, n) not in self.back]
            ends = any((block, n) in self.back and n == self.first for n in self.blocks[block].next)
            ways = [way for way in ways if way] + ([(0, 0, [])] if ends else [])
            most = max(ways, key=lambda way: way[:2], default=None)
            best[block] = most and (most[0] + values[block][0], most[1] + values[block][1], [block, *most[2]])
        return best[self.first][2]

    def _order(self):
        """Blocks such that each stands before those that follow it."""
        order, seen = [], set()

        def visit(block):
            seen.add(block)
            for following in self.blocks[block].next:
                if following in self.members and following not in seen and (block, following) not in self.back:
                    visit(following)
            order.append(block)

        visit(self.first)
        return order[::-1]

    def count(self, path):
        """Executed instructions by full name."""
        counts = collections.Counter()
        for block in path:
            for instruction in self.blocks[block].instructions:
                name = "NOP" if instruction.predicate == "!PT" else instruction.name
                counts[name] += self.trips_of(block)
        return counts


def total(counts, op):
    return sum(count for name, count in counts.items() if name.split(".")[0] == op)


def spills(instructions):
    """Loads and stores of registers that do not suffice."""
    return sum(i.op in ("LDL", "STL") for i in instructions)


def loop_of_tiles(lines, product):
    """Instructions of the loop that computes tiles: of those with products and copies of tiles ahead, the longer is exact."""
    loops = [loop.instructions() for loop in loops_of(lines)]
    return min((loop for loop in loops if any(i.op == product for i in loop) and any(i.op in ("LDGSTS", "STS") for i in loop)),
               key=len, default=None)


def loops_of(lines):
    blocks = make_blocks(lines)
    loops, back = find_loops(blocks)
    return [Loop(blocks, first, members, {f: m for f, m in loops.items() if f != first and m < members}, back)
            for first, members in sorted(loops.items(), key=lambda item: len(item[1]))]
