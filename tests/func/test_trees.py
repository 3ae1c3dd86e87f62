"""Trees: sums and products over their leaves, and files of them."""

import collections
import json
import zipfile

import numpy as np
import pytest

import func
from func import tree
from func.errors import ArgumentError, ProgramFileError, TracerConversionError, UnsupportedArrayError

Pair = collections.namedtuple("Pair", "a b")
SOME = {"w": np.array([[3.0, 0.0]]), "b": (4.0, None)}
OTHER = {"w": np.array([[1.0, 2.0]]), "b": (0.5, None)}


def test_products_and_norms():
    assert tree.vdot(SOME, OTHER) == 5.0
    assert tree.vdot([np.array([1j])], [np.array([2j])]) == 2
    assert tree.vdot([], []) == tree.norm({}) == 0
    assert tree.norm(SOME) == 5.0
    assert tree.norm(SOME, np.inf) == 4.0


def test_sums_keep_dtypes():
    found = tree.axpy(-0.5, {"w": np.ones(2, np.float32)}, {"w": np.ones(2, np.float32)})
    assert found["w"].dtype == np.float32
    np.testing.assert_array_equal(found["w"], [0.5, 0.5])
    zeros = tree.zeros_like({"a": np.ones(2, np.float32), "b": 3})
    assert zeros["a"].dtype == np.float32 and zeros["b"].shape == ()


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit], ids=["eager", "jit"])
def test_derivatives_of_products_and_norms(wrap):
    gradient = wrap(func.grad(tree.vdot))(SOME, OTHER)
    np.testing.assert_array_equal(gradient["w"], OTHER["w"])
    at_zero = wrap(func.grad(tree.norm))(tree.zeros_like(SOME))
    assert tree.norm(at_zero) == 0.0
    hessian = wrap(func.hessian(lambda p: tree.norm(p) ** 2))({"w": np.zeros(2)})
    np.testing.assert_array_equal(hessian["w"]["w"], 2 * np.eye(2))
    batch = func.vmap(lambda a, t: tree.axpy(a, t, t))(np.arange(2.0), {"w": np.ones((2, 3))})
    np.testing.assert_array_equal(batch["w"], [[1.0] * 3, [2.0] * 3])


def test_products_of_unlike_trees():
    with pytest.raises(ArgumentError, match=r"func.tree.vdot takes trees of one structure"):
        tree.vdot({"a": 1.0}, {"b": 1.0})
    with pytest.raises(ArgumentError, match=r"the leaf \['a'\] has \(2, 3\) and \(3, 2\)"):
        tree.vdot({"a": np.ones((2, 3))}, {"a": np.ones((3, 2))})
    with pytest.raises(ArgumentError, match=r"alpha must be a number, not an array of shape \(2,\)"):
        tree.axpy(np.ones(2), 1.0, 1.0)
    with pytest.raises(UnsupportedArrayError):
        tree.vdot("x", "y")


TREES = [
    3.0,
    True,
    2**40,
    1j,
    float("nan"),
    None,
    [],
    {},
    {"file": 1, "a/b": [np.float32(2), (None, ())], "../z": np.ones((2, 0), np.int8)},
    np.arange(6.0).reshape(2, 3).T,
    [np.arange(3)[::-1], np.zeros((), bool)],
]


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_files_give_trees_back(value, tmp_path):
    path = tmp_path / "tree.npz"
    tree.save(value, path)
    for found in (tree.load(path), tree.load(path, like=value)):
        assert tree.structure(found) == tree.structure(value)
        for one, other in zip(tree.leaves(found), tree.leaves(value), strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other, strict=isinstance(one, np.ndarray))


def test_files_of_other_classes_need_an_example(tmp_path):
    path = str(tmp_path / "tree.npz")
    for value in (Pair(1.0, np.ones(2)), {1: 2.0}, collections.OrderedDict(a=1.0)):
        tree.save(value, path)
        with pytest.raises(ArgumentError, match="pass like="):
            tree.load(path)
        assert tree.structure(tree.load(path, like=value)) == tree.structure(value)


def test_files_are_read_by_numpy_and_hold_no_pickle(tmp_path):
    path = tmp_path / "tree.npz"
    tree.save({"w": func.tensor([1.0, 2.0], requires_grad=True), "half": np.array([1.0, -2.0], np.float16)}, path)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["['w']"], [1.0, 2.0])
        assert archive["['half']"].dtype == np.float16
    pytest.importorskip("ml_dtypes")
    tree.save({"w": np.array([1.0, 2.0], "bfloat16")}, path)
    assert tree.load(path)["w"].dtype.name == "bfloat16"


def test_leaves_that_files_cannot_hold(tmp_path):
    path = tmp_path / "tree.npz"
    for leaf in ("text", np.array([object()]), 10**30, np.array(["text"]), object()):
        with pytest.raises(UnsupportedArrayError, match=r"the leaf \['a'\] is not an array of numbers"):
            tree.save({"a": leaf}, path)
    with pytest.raises(TracerConversionError):
        func.jit(lambda x: (tree.save({"x": x}, path), x)[1])(1.0)
    assert not path.exists()


class Key:
    """A key whose repr does not tell which it is."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return "key"

    def __lt__(self, other):
        return self.number < other.number


def test_leaves_of_one_name_are_not_lost(tmp_path):
    with pytest.raises(ArgumentError, match=r"two leaves have the name \[key\]"):
        tree.save({Key(1): 1.0, Key(2): 2.0}, tmp_path / "tree.npz")


def test_files_that_do_not_fit_the_example(tmp_path):
    path = tmp_path / "tree.npz"
    tree.save({"a": np.ones(2)}, path)
    for like, message in [
        ({"b": np.ones(2)}, r"lacks \['b'\] and has \['a'\]"),
        ({"a": np.ones(3)}, r"\['a'\] has shape \(2,\) in the file, but \(3,\)"),
        ({"a": 1.0}, r"\['a'\] has shape \(2,\) in the file, but \(\)"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            tree.load(path, like=like)


def test_other_and_damaged_files(tmp_path):
    path = tmp_path / "tree.npz"
    with pytest.raises(FileNotFoundError):
        tree.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(ProgramFileError, match=r"not a file written by func\.tree\.save"):
        tree.load(path)
    np.savez(path, a=1.0)
    with pytest.raises(ProgramFileError, match=r"not a file written by func\.tree\.save"):
        tree.load(path)
    tree.save([1.0, [2.0]], path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["tree.json"])
    for key, wrong in [("version", 2), ("tree", 7), ("tree", {"set": [0]}), ("leaves", 3), ("tree", {"list": [-1]})]:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, json.dumps({**document, key: wrong}) if name == "tree.json" else data)
        with pytest.raises(ProgramFileError):
            tree.load(path)
    data = b"".join([*members.values()])
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        with pytest.raises(ProgramFileError):
            tree.load(path)
