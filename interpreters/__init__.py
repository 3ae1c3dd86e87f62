"""The engine: the meaning of a traced function.

Primitives applied to tracers come in. Each interpreter (grad, jvp, vmap, stage, transpose) gives them one meaning.
Values, derivatives, batches or the equations of a Program come out, and `compile` turns Programs into code.
"""

if __name__ != "func.interpreters":
    raise ImportError(
        "the engine is imported as 'func.interpreters'; importing the folder as a top-level module "
        "would register every primitive twice"
    )
