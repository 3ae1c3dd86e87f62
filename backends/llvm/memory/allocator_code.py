"""The caching allocator as LLVM IR: the four functions of a NumPy handler, and one that frees memory.

A block of at least `LEAST` bytes has a capacity: its size rounded up, eight classes between two powers of two. A freed
block becomes the head of the list of its class, its first word the address of the next one. A new array takes
the head of its class, or a new block of NumPy's own handler. Smaller blocks go to that handler unchanged, which has a
cache for the smallest.

The lists do not raise the peak memory of the process. Before a new block, it frees waiting ones until blocks in use and
waiting blocks together stay below the largest use so far. (Sizes are rounded, but no code touches the pages behind an
array.) A thread goes to NumPy's handler if another one uses the lists.
"""

from __future__ import annotations

from typing import Any

from func.backends.ir import (
    ArrayType,
    Function,
    FunctionType,
    GlobalVariable,
    IntType,
    IRBuilder,
    Module,
    PointerType,
    Type,
    Value,
    VoidType,
)
from func.backends.llvm.memory.allocator_names import BASE, LIMIT, NAMES, PEAK, RELEASE, USED, WAITING

VOID, POINTER = VoidType(), PointerType()
BIT, BYTE, INT, WORD = IntType(1), IntType(8), IntType(32), IntType(64)

LEAST_LOG, MOST_LOG, STEPS_LOG = 16, 40, 3
LEAST, MOST = 1 << LEAST_LOG, (1 << MOST_LOG) - 1
"""Bytes of the smallest and of the largest block that waits. Below, the C library keeps the pages of a block."""
CLASSES = (MOST_LOG - LEAST_LOG + 1) << STEPS_LOG
WORD_SIZE = 8

CONTEXT, MALLOC, CALLOC, REALLOC, FREE = range(5)
"""The words of a PyDataMemAllocator."""
_LOCK, _HEADS = "func_memory_lock", "func_memory_heads"
_EXTERNALS: dict[str, tuple[Type, ...]] = {
    "llvm.ctlz.i64": (WORD, WORD, BIT),
    "malloc_usable_size": (WORD, POINTER),
    "memset": (POINTER, POINTER, INT, WORD),
}


class _Builder(IRBuilder):
    """Writes one function of the module."""

    def __init__(self, module: Module, name: str, result: Type, *parameters: Type, is_public: bool = False) -> None:
        function = Function(module, FunctionType(result, parameters), name)
        function.linkage = "" if is_public else "internal"
        self.args: list[Value] = [*function.args]
        super().__init__(function.append_basic_block())

    def variable(self, name: str) -> Any:
        """The address of a variable."""
        return self.module.get_global(name)

    def get(self, name: str, kind: Type = WORD) -> Value:
        """The value of a variable."""
        return self.load(self.variable(name), typ=kind)

    def external(self, name: str, *args: Value) -> Value:
        """The result of a function of the C library or of LLVM."""
        if name not in self.module.globals:
            result, *parameters = _EXTERNALS[name]
            Function(self.module, FunctionType(result, parameters), name)
        return self.call(self.variable(name), args)

    def base(self, place: int, result: Type, *args: Value) -> Value:
        """The result of a function of NumPy's handler."""
        table = self.get(BASE, POINTER)
        context, address = [
            self.load(self.gep(table, [WORD(at)], source_etype=WORD), typ=POINTER) for at in (CONTEXT, place)
        ]
        return self.call_pointer(address, FunctionType(result, [POINTER, *[x.type for x in args]]), [context, *args])

    def waits(self, size: Value) -> Value:
        """Whether a block of a size may wait."""
        return self.icmp_unsigned("<=", self.sub(size, WORD(LEAST)), WORD(MOST - LEAST))

    def head(self, place: Value) -> Value:
        """The address of the head of the list of a class."""
        return self.gep(self.variable(_HEADS), [place], source_etype=POINTER)

    def taken(self) -> Value:
        """Whether the lists are this thread's now."""
        pair = self.cmpxchg(self.variable(_LOCK), INT(0), INT(1), "acquire", "monotonic")
        return self.extract_value(pair, 1)

    def give_back(self) -> None:
        """Let other threads use the lists."""
        self.store_atomic(INT(0), self.variable(_LOCK), "release", 4)


def allocator_module() -> Module:
    """The functions `NAMES` of a PyDataMemAllocator, and `void RELEASE(i64 bytes)`, which frees down to that limit."""
    module = Module("func_memory")
    GlobalVariable(module, INT, _LOCK).initializer = INT(0)
    for name in (LIMIT, WAITING, USED, PEAK):
        GlobalVariable(module, WORD, name).initializer = WORD(0)
    GlobalVariable(module, POINTER, BASE).initializer = POINTER(None)
    heads = GlobalVariable(module, ArrayType(POINTER, CLASSES), _HEADS)
    heads.initializer = heads.value_type(None)
    capacity, class_of = _emit_capacity(module), _emit_class_of(module)
    pop = _emit_pop(module)
    trim = _emit_trim(module, pop)
    take = _emit_take(module, class_of, pop, trim)
    _emit_malloc(module, capacity, take)
    _emit_calloc(module, capacity, take)
    _emit_realloc(module, capacity)
    _emit_free(module, capacity, class_of)
    _emit_release(module, trim)
    return module


def _emit_capacity(module: Module) -> Function:
    """A function of a size that may wait: the size of its class."""
    b = _Builder(module, "capacity", WORD, WORD)
    (size,) = b.args
    log = b.sub(WORD(63), b.external("llvm.ctlz.i64", b.sub(size, WORD(1)), BIT(1)))
    last = b.sub(b.shl(WORD(1), b.sub(log, WORD(STEPS_LOG))), WORD(1))
    b.ret(b.and_(b.add(size, last), b.not_(last)))
    return b.function


def _emit_class_of(module: Module) -> Function:
    """A function of a capacity: the number of its class."""
    b = _Builder(module, "class_of", WORD, WORD)
    (size,) = b.args
    log = b.sub(WORD(63), b.external("llvm.ctlz.i64", size, BIT(1)))
    step = b.and_(b.lshr(size, b.sub(log, WORD(STEPS_LOG))), WORD((1 << STEPS_LOG) - 1))
    b.ret(b.add(b.shl(b.sub(log, WORD(LEAST_LOG)), WORD(STEPS_LOG)), step))
    return b.function


def _emit_pop(module: Module) -> Function:
    """A function of a class and its capacity: a block that waited, or null."""
    b = _Builder(module, "pop", POINTER, WORD, WORD)
    place, size = b.args
    head = b.head(place)
    block = b.load(head, typ=POINTER)
    with b.if_then(b.icmp_unsigned("!=", block, POINTER(None))):
        b.store(b.load(block, typ=POINTER), head)
        b.store(b.sub(b.get(WAITING), size), b.variable(WAITING))
    b.ret(block)
    return b.function


def _emit_trim(module: Module, pop: Function) -> Function:
    """A function of a number of bytes: frees blocks, the largest first, until no more than these wait."""
    b = _Builder(module, "trim", VOID, WORD)
    (most,) = b.args
    done = b.append_basic_block("done")
    with b.goto_block(done):
        b.ret_void()
    with b.loop(WORD(CLASSES)) as index:
        place = b.sub(WORD(CLASSES - 1), index)
        log = b.add(b.lshr(place, WORD(STEPS_LOG)), WORD(LEAST_LOG))
        steps = b.or_(b.and_(place, WORD((1 << STEPS_LOG) - 1)), WORD(1 << STEPS_LOG))
        size = b.shl(steps, b.sub(log, WORD(STEPS_LOG)))
        again, following = b.append_basic_block("again"), b.append_basic_block("following")
        b.branch(again)
        b.position_at_end(again)
        onwards = b.append_basic_block("onwards")
        b.cbranch(b.icmp_unsigned("<=", b.get(WAITING), most), done, onwards)
        b.position_at_end(onwards)
        block = b.call(pop, [place, size])
        freeing = b.append_basic_block("freeing")
        b.cbranch(b.icmp_unsigned("!=", block, POINTER(None)), freeing, following)
        b.position_at_end(freeing)
        b.base(FREE, VOID, block, size)
        b.branch(again)
        b.position_at_end(following)
    b.branch(done)
    return b.function


def _emit_take(module: Module, class_of: Function, pop: Function, trim: Function) -> Function:
    """A function of a capacity: a waiting block, or null if a new one may be made; counts it as in use."""
    b = _Builder(module, "take", POINTER, WORD)
    (size,) = b.args
    with b.if_then(b.taken(), likely=True):
        used = b.add(b.get(USED), size)
        b.store(used, b.variable(USED))
        block = b.call(pop, [b.call(class_of, [size]), size])
        with b.if_then(b.icmp_unsigned("==", block, POINTER(None))):
            before = b.get(PEAK)
            peak = b.select(b.icmp_unsigned("<", before, used), used, before)
            b.store(peak, b.variable(PEAK))
            b.call(trim, [b.sub(peak, used)])
        b.give_back()
        b.ret(block)
    b.ret(POINTER(None))
    return b.function


def _emit_malloc(module: Module, capacity: Function, take: Function) -> None:
    b = _Builder(module, NAMES[0], POINTER, POINTER, WORD, is_public=True)
    _, size = b.args
    with b.if_then(b.waits(size)):
        whole = b.call(capacity, [size])
        block = b.call(take, [whole])
        with b.if_then(b.icmp_unsigned("!=", block, POINTER(None))):
            b.ret(block)
        b.ret(b.base(MALLOC, POINTER, whole))
    b.ret(b.base(MALLOC, POINTER, size))


def _emit_calloc(module: Module, capacity: Function, take: Function) -> None:
    b = _Builder(module, NAMES[1], POINTER, POINTER, WORD, WORD, is_public=True)
    _, count, each = b.args
    size = b.mul(count, each)  # NumPy has made sure that it does not overflow
    with b.if_then(b.waits(size)):
        whole = b.call(capacity, [size])
        block = b.call(take, [whole])
        with b.if_then(b.icmp_unsigned("!=", block, POINTER(None))):
            b.ret(b.external("memset", block, INT(0), size))
        b.ret(b.base(CALLOC, POINTER, WORD(1), whole))
    b.ret(b.base(CALLOC, POINTER, count, each))


def _emit_realloc(module: Module, capacity: Function) -> None:
    b = _Builder(module, NAMES[2], POINTER, POINTER, POINTER, WORD, is_public=True)
    _, block, size = b.args
    with b.if_then(b.waits(size)):
        b.ret(b.base(REALLOC, POINTER, block, b.call(capacity, [size])))
    b.ret(b.base(REALLOC, POINTER, block, size))


def _emit_free(module: Module, capacity: Function, class_of: Function) -> None:
    """The block waits, unless there would be too many, or it is smaller than its size, after a resize behind NumPy's
    back.
    """
    b = _Builder(module, NAMES[3], VOID, POINTER, POINTER, WORD, is_public=True)
    _, block, size = b.args
    with b.if_then(b.and_(b.waits(size), b.icmp_unsigned("!=", block, POINTER(None)))):
        whole = b.call(capacity, [size])
        fits = b.icmp_unsigned("<=", whole, b.external("malloc_usable_size", block))
        with b.if_then(fits, likely=True), b.if_then(b.taken(), likely=True):
            used = b.get(USED)
            counted = b.icmp_unsigned("<=", whole, used)
            b.store(b.select(counted, b.sub(used, whole), WORD(0)), b.variable(USED))
            waiting = b.add(b.get(WAITING), whole)
            may_wait = b.icmp_unsigned("<=", waiting, b.get(LIMIT))
            with b.if_then(may_wait, likely=True):
                head = b.head(b.call(class_of, [whole]))
                b.store(b.load(head, typ=POINTER), block)
                b.store(block, head)
                b.store(waiting, b.variable(WAITING))
            b.give_back()
            with b.if_then(may_wait, likely=True):
                b.ret_void()
    b.base(FREE, VOID, block, size)
    b.ret_void()


def _emit_release(module: Module, trim: Function) -> None:
    b = _Builder(module, RELEASE, VOID, WORD, is_public=True)
    (most,) = b.args
    with b.if_then(b.taken(), likely=True):
        b.call(trim, [most])
        b.give_back()
    b.ret_void()
