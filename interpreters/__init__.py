"""The engine: core types, primitive rows, one file per interpreter, and the Program."""

if __name__ != "func.interpreters":
    raise ImportError(
        "the engine is imported as 'func.interpreters'; importing the folder as a top-level module "
        "would register every primitive twice"
    )
