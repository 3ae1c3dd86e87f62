"""Native programs as functions of C99.

`function_text` writes the function of one program. Inputs and outputs are its parameters, small scratch buffers are
arrays of its frame, and larger ones are in the caller's workspace. It allocates nothing and has no state.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from func.backends.c.c_products import write_product
from func.backends.c.declarations import stored_type
from func.backends.c.element_operations import CDefinitions, CScalars
from func.backends.c.expressions import CBuilder
from func.backends.c.loop_nests import Memory, NestWriter, index_text
from func.backends.loops import kernels
from func.backends.loops.buffer_assignment import assign_buffers
from func.backends.loops.interface import ArraySpec
from func.backends.loops.traversal import bodies_of, buffers_of, own_buffers
from func.backends.records import Record

IN_FRAME, FRAME = 1 << 14, 1 << 15
"""Bytes of the largest buffer that is an array of the function's frame, and of all of them together."""
HAS_NAN, HAS_ERROR = 1, 2
"""Bits of the status."""


class FunctionText(Record):
    """The function of a program: its text, and the bytes of workspace that it needs."""

    text: str
    workspace: int


def parameters(program: kernels.NativeProgram, names: Sequence[str]) -> list[str]:
    """The declarations of a program's inputs and outputs of these names: numbers by value, arrays by address."""
    listed: list[str] = []
    for spec, name in zip([*program.inputs, *program.outputs], names, strict=True):
        word, is_input = stored_type(spec.dtype), len(listed) < len(program.inputs)
        if is_input and is_by_value(spec):
            listed.append(f"{word} {name}")
        else:
            listed.append(f"{'const ' if is_input else ''}{word} *restrict {name}")
    return listed


INCLUDES = {
    "complex.h": r"\bcomplex\b|\bc(real|imag)\(",
    "math.h": r"\b(NAN|INFINITY)\b|\b[a-z]\w*\(",
    "stdbool.h": r"\bbool\b|\btrue\b|\bfalse\b",
    "stddef.h": r"\b(ptrdiff_t|size_t|NULL)\b",
    "stdint.h": r"\bu?int\d+_t\b",
    "string.h": r"\bmemcpy\(",
}
"""The headers of the C library, and the texts that need them."""


def prelude(title: str, header: str, text: str) -> str:
    """The head of a file: a title, and the headers that a text needs."""
    needed = [f"#include <{name}>" for name, pattern in INCLUDES.items() if re.search(pattern, text)]
    libraries = [
        f"#ifdef {macro}\n#include <{name}.h>\n#endif"
        for macro, name, mark in (("FUNC_CBLAS", "cblas", "cblas_"), ("FUNC_LAPACK", "lapacke", "LAPACKE_"))
        if mark in text
    ]
    return "\n".join([f"/* {title} */", "", *needed, "", *libraries, *[""][: len(libraries)], f'#include "{header}"'])


CLONES = """\
#ifdef FUNC_TARGETS
#define FUNC_CLONES __attribute__((target_clones(FUNC_TARGETS)))
#else
#define FUNC_CLONES
#endif"""
"""Makes gcc write functions for several processors; the loader chooses one."""


def with_clones(texts: Sequence[str]) -> list[str]:
    """The texts of functions, with a mark on those with loops, for versions for several processors."""
    marked = [FUNCTION.sub("FUNC_CLONES\nstatic", text, count=1) if "for (" in text else text for text in texts]
    return [CLONES, *marked] if marked != list(texts) else marked


FUNCTION = re.compile(r"(?m)^static(?= (?:int|void|bool) (?!func_cholesky_(?:tile|rows)_))")
"""The beginning of a function on arrays. For tiles of Cholesky factors gcc makes slow code with wide vectors but
without fused multiply-add.
"""


def is_by_value(spec: ArraySpec) -> bool:
    """Whether an input is a number, passed by value."""
    return spec.shape == () and spec.dtype.kind != "c"


def function_text(
    program: kernels.NativeProgram, name: str, names: Sequence[str], definitions: CDefinitions
) -> FunctionText:
    """The function `static int name(inputs, outputs, work)`, which returns the bits of its status."""
    return ProgramWriter(program, name, names, definitions).written()


class ProgramWriter:
    """Writes the items of a program."""

    def __init__(
        self, program: kernels.NativeProgram, name: str, names: Sequence[str], definitions: CDefinitions
    ) -> None:
        self.program, self.name, self.names = program, name, names
        self.builder = CBuilder()
        self.memory = Memory()
        self.definitions = definitions
        self.nests = NestWriter(self.builder, CScalars(self.builder, definitions), self.memory)
        self._in_frame: dict[str, list[str]] = {}
        self._in_frame_ids: set[int] = set()
        self._scratch: set[int] = set()
        """The scratch memory of routines, which hold several types."""

    def written(self) -> FunctionText:
        """The text."""
        program = self.program
        self._note_unread()
        self._size_scratch(program.items)
        self._place_frame()
        workspace = self._assign()
        for item in program.items:
            self._top(item)
        if program.flag is not None:
            self._flagged(program.flag, HAS_NAN)
        self.builder.line("return status;")
        listed = [*parameters(program, self.names), "unsigned char *restrict work"]
        body = self.builder.text(1)
        lines = [f"static int {self.name}({', '.join(listed)}) {{", "    int status = 0;"]
        lines += [f"    (void){name};" for name in [*self.names, "work"] if not _mentions(body, name)]
        for name, declarations in self._in_frame.items():
            if _mentions(body, name):
                lines += [f"    {declaration}" for declaration in declarations]
                if not _mentions(_without_targets(body, name), name):  # its readers turned out to be useless
                    lines.append(f"    (void){name};")
        return FunctionText("\n".join([*lines, body, "}"]), workspace)

    # -- memory -----------------------------------------------------------------------------------------------------
    def _note_unread(self) -> None:
        """Find the scratch memory that is written and never read, such as unused results of branches."""
        written: set[int] = set()
        read: set[int] = {id(self.program.flag.buffer.storage)} if self.program.flag is not None else set()

        def visit(items: Sequence[kernels.Item]) -> None:
            for item in items:
                if isinstance(item, kernels.LoopNest):
                    for instruction in item.code:
                        if isinstance(instruction, (kernels.Store, kernels.StoreAt, kernels.Accumulate)):
                            written.add(id(instruction.ref.buffer.storage))
                        elif isinstance(instruction, (kernels.Load, kernels.LoadAt)):
                            read.add(id(instruction.ref.buffer.storage))
                    written.update([id(buffer.storage) for buffer, _ in item.fills])
                elif isinstance(item, kernels.Fill):
                    written.add(id(item.buffer.storage))
                elif isinstance(item, kernels.Copy):
                    written.add(id(item.target.storage))
                    read.add(id(item.source.storage))
                elif isinstance(item, kernels.CountedLoop):
                    pass  # items inside read or write slices
                else:
                    read.update([id(buffer.storage) for buffer in own_buffers(item)])
                for body in bodies_of(item):
                    visit(body)

        visit(self.program.items)
        arena = {id(b.storage) for item in self.program.items for b in buffers_of(item) if b.storage.kind == "arena"}
        self.nests.unread = (written - read) & arena

    def _size_scratch(self, items: Sequence[kernels.Item]) -> None:
        """Give scratch memory of routines the sizes that they need in C."""
        for item in items:
            if isinstance(item, kernels.LibraryCall):
                from func.backends.c.library_routines import scratch_bytes  # for programs with linear algebra only

                size = scratch_bytes(item)
                if size is not None:
                    item.outs[-1].buffer.size = max(1, size)
                    self._scratch.add(id(item.outs[-1].buffer))
            for body in bodies_of(item):
                self._size_scratch(body)

    def _place_frame(self) -> None:
        """Choose the buffers that are arrays of the frame."""
        used = 0
        for item in self.program.items:
            for buffer in buffers_of(item):
                storage = buffer.storage
                if storage.kind != "arena" or id(storage) in self._in_frame_ids or storage.bytes > IN_FRAME:
                    continue
                if used + storage.bytes <= FRAME:
                    used += storage.bytes
                    self._in_frame_ids.add(id(storage))
                    storage.kind = "frame"

    def _assign(self) -> int:
        """Give the other scratch buffers places in the workspace; its size."""
        for item in self.program.items:
            _drop_chunks(item)
        return assign_buffers(self.program.items)

    def _declare(self, buffer: kernels.Buffer) -> None:
        """Name a buffer, in the current block if it is in the workspace."""
        if id(buffer) in self.memory.names:
            return
        word, count = stored_type(buffer.dtype), max(1, buffer.size) * (2 if buffer.dtype.kind == "c" else 1)
        inputs = len(self.program.inputs)
        if buffer.kind == "input":
            name = self.names[buffer.place]
            if is_by_value(self.program.inputs[buffer.place]):
                self.memory.by_value.add(id(buffer))
        elif buffer.kind == "output":
            name = self.names[inputs + buffer.place]
        elif buffer.kind == "constant":
            name = self.definitions.constant(self.program.constants[buffer.place])
        elif buffer.kind == "frame":
            name = self.builder.fresh("m")
            self._in_frame[name] = [f"{word} {name}[{count}];"]
            if id(buffer) in self._scratch:  # aligned for numbers of any type
                room = f"double {name}_room[{-(-count // 8)}];"
                self._in_frame[name] = [room, f"unsigned char *const {name} = (unsigned char *){name}_room;"]
        else:
            name = self.builder.fresh("m")
            start = f"work + {buffer.place}" if buffer.place else "work"
            self.builder.declare(name, f"{word} *restrict {name} = ({word} *)({start});")
        self.memory.names[id(buffer)] = name

    def _top(self, item: kernels.Item) -> None:
        """An item of the program, with the addresses of its memory."""
        used = dict.fromkeys([buffer.storage for buffer in buffers_of(item)])
        if all([buffer.kind != "arena" for buffer in used]):
            for buffer in used:
                self._declare(buffer)
            self._item(item)
            return
        with self.builder.braces():
            for buffer in used:
                self._declare(buffer)
            self._item(item)
        for buffer in used:
            if buffer.kind == "arena":
                del self.memory.names[id(buffer)]

    # -- items ------------------------------------------------------------------------------------------------------
    def _items(self, items: Sequence[kernels.Item]) -> None:
        for item in items:
            with self.builder.braces():
                self._item(item)

    def _item(self, item: kernels.Item) -> None:
        b = self.builder
        if isinstance(item, kernels.LoopNest):
            self.nests.emit(item)
        elif isinstance(item, kernels.Dot):
            write_product(self.nests, item)
        elif isinstance(item, kernels.Fill):
            self.nests.fill(item.buffer, item.value)
        elif isinstance(item, kernels.Copy):
            if id(item.target.storage) in self.nests.unread:
                return
            target, source = self.memory.name(item.target), self.memory.name(item.source)
            if id(item.source) in self.memory.by_value:
                source = f"&{source}"
            b.effect(f"memcpy({target}, {source}, {item.target.bytes});")
        elif isinstance(item, kernels.FlagCheck):
            self._flagged(item.flag, HAS_ERROR)
        elif isinstance(item, kernels.EarlyExit):
            if item.flag is not None:
                self._flagged(item.flag, HAS_NAN)
            with b.braces("if (status != 0) {"):
                b.effect("return status;")
        elif isinstance(item, kernels.LibraryCall):
            from func.backends.c.library_routines import write_routine  # for programs with linear algebra only

            write_routine(self.nests, item)
        elif isinstance(item, kernels.CountedLoop):
            self._loop(item)
        elif isinstance(item, kernels.ConditionalLoop):
            with b.braces("for (;;) {"):
                self._items(item.test)
                with b.braces(f"if (!{self._number(item.flag)} || status != 0) {{"):
                    b.effect("break;")
                self._items(item.body)
        else:
            self._branch(item)

    def _number(self, ref: kernels.StridedRef) -> str:
        """The text of one element."""
        name = self.memory.name(ref.buffer)
        return name if id(ref.buffer) in self.memory.by_value else f"{name}[{ref.offset}]"

    def _flagged(self, flag: kernels.StridedRef, bit: int) -> None:
        if flag.buffer.storage.kind == "arena":
            with self.builder.braces():
                self._declare(flag.buffer.storage)
                self.builder.effect(f"status |= {self._number(flag)} ? {bit} : 0;")
        else:
            self._declare(flag.buffer.storage)
            self.builder.effect(f"status |= {self._number(flag)} ? {bit} : 0;")

    def _loop(self, item: kernels.CountedLoop) -> None:
        b = self.builder
        with b.counted(item.length) as i:
            at = i if not item.reverse else str(item.length - 1 - int(i)) if i.isdigit() else f"{item.length - 1} - {i}"
            for view in item.slices:
                self._slide(view, at)
            self._items(item.ahead)
            self._items(item.body)

    def _slide(self, view: kernels.Buffer, at: str) -> None:
        """The address of a slice in this step."""
        assert view.base is not None
        turn = at
        if view.ring:
            turn = f"({at if at.isidentifier() or at.isdigit() else f'({at})'} & {view.ring - 1})"
        parts = 2 if view.dtype.kind == "c" else 1
        name = self.builder.fresh("p")
        const = "const " if view.storage.kind in ("input", "constant") else ""
        base = self.memory.name(view.base)
        if id(view.base) in self.memory.by_value:
            base = f"&{base}"
        place = index_text(parts * view.start, [(turn, parts * view.step)])
        start = base if place == "0" else f"{base} + {place}"
        self.builder.declare(name, f"{const}{stored_type(view.dtype)} *{name} = {start};")
        self.memory.names[id(view)] = name

    def _branch(self, item: kernels.Branch) -> None:
        b, text = self.builder, self._number(item.index)
        for place, items in enumerate(item.branches):
            if place == len(item.branches) - 1:
                opening = "else {" if place else "{"
            else:
                below = "<= 0" if place == 0 and item.index.buffer.dtype.kind == "i" else f"== {place}"
                opening = f"{'else ' if place else ''}if ({text} {below}) {{"
            with b.braces(opening):
                b.line("/* the branch with the number ", str(place), " */")
                self._items(items)


def _without_targets(text: str, name: str) -> str:
    """The lines that do not begin with the name."""
    return "\n".join([line for line in text.splitlines() if not line.lstrip().startswith(f"{name}[")])


def _mentions(text: str, name: str) -> bool:
    """Whether a name occurs in a text."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        start = text.find(name, end)
    return False


def _drop_chunks(item: kernels.Item) -> None:
    """Forget how loops are cut for threads: the memory for chunks is not needed."""
    if isinstance(item, kernels.LoopNest):
        item.chunkings = []
    for body in bodies_of(item):
        for inner in body:
            _drop_chunks(inner)
