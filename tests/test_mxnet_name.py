"""The name ``mxnet``: the very modules of numbagrad, and words for what is missing."""

import importlib
import sys

import pytest

import numbagrad
from numbagrad import absent, mxnet_name


@pytest.fixture
def mxnet():
    mxnet_name.install()
    yield importlib.import_module("mxnet")
    mxnet_name.uninstall()


def test_the_modules_are_the_same_objects(mxnet):
    assert mxnet is numbagrad
    for name, ours in [
        ("mxnet.nd", numbagrad.nd),
        ("mxnet.ndarray", numbagrad.nd),
        ("mxnet.ndarray.random", numbagrad.nd.random),
        ("mxnet.gluon.nn", numbagrad.gluon.nn),
        ("mxnet.gluon.nn.basic_layers", numbagrad.gluon.nn),
        ("mxnet.gluon.data.dataset", numbagrad.gluon.data.dataset),
        ("mxnet.init", numbagrad.initializer),
        ("mxnet.optimizer.optimizer", numbagrad.optimizer),
        ("mxnet.base", numbagrad.base),
    ]:
        assert importlib.import_module(name) is ours, name


def test_every_form_of_import(mxnet):
    space = {}
    exec(
        "import mxnet as mx\n"
        "import mxnet.ndarray as nd\n"
        "import mxnet.gluon.loss\n"
        "from mxnet import autograd, gluon, init\n"
        "from mxnet.gluon import nn\n"
        "from mxnet.gluon.data import ArrayDataset, DataLoader\n"
        "from mxnet.base import MXNetError\n",
        space,
    )
    assert space["mx"] is space["mxnet"] is numbagrad
    assert space["nn"].Dense is numbagrad.gluon.nn.Dense
    assert space["MXNetError"] is numbagrad.MXNetError
    assert isinstance(space["nd"].ones((2,)), numbagrad.nd.NDArray)


def test_our_own_modules_keep_their_identity(mxnet):
    importlib.import_module("mxnet.gluon.nn")
    assert numbagrad.__spec__.name == "numbagrad"
    assert numbagrad.__name__ == "numbagrad"
    assert numbagrad.gluon.nn.__spec__.name == "numbagrad.gluon.nn"


def test_without_it_there_is_no_mxnet(mxnet):
    mxnet_name.uninstall()
    assert not [name for name in sys.modules if name.partition(".")[0] == "mxnet"]
    assert mxnet_name._finder not in sys.meta_path


def test_installed_twice_it_is_there_once(mxnet):
    mxnet_name.install()
    assert sys.meta_path.count(mxnet_name._finder) == 1


def test_another_mxnet_is_not_replaced(monkeypatch):
    monkeypatch.setitem(sys.modules, "mxnet", type(sys)("mxnet"))
    with pytest.raises(ImportError, match="another mxnet"):
        mxnet_name.install()
    assert mxnet_name._finder not in sys.meta_path


# --------------------------------------------------------------------------------------- what is not here yet


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import mxnet.gluon.rnnn", r"gluon\.rnnn is not in numbagrad yet; near: gluon\.nn"),
        ("import mxnet.no.such", r"mx\.no is not in numbagrad yet"),
        ("from mxnet import unheard_of", r"mx\.unheard_of is not in numbagrad yet$"),
        ("from mxnet.gluon import Dense", r"gluon\.Dense is not in numbagrad yet; near: gluon\.nn\.Dense"),
        (
            "from mxnet.initializer import Xavie",
            r"initializer\.Xavie is not in .*; near: initializer\.Xavier",
        ),
    ],
)
def test_importing_what_is_missing(mxnet, statement, words):
    with pytest.raises(ImportError, match=words):
        exec(statement, {})


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("mx.nd.arrray", r"nd\.arrray is not in numbagrad yet; near: nd\.array"),
        ("mx.nd.Dense", r"nd\.Dense is not in numbagrad yet; near: gluon\.nn\.Dense"),
        ("mx.unheard_of", r"mx\.unheard_of is not in numbagrad yet$"),
        ("mx.gluon.nn.dense", r"gluon\.nn\.dense is not in numbagrad yet; near: gluon\.nn\.Dense"),
        ("mx.optimizer.Sdg", r"optimizer\.Sdg is not in numbagrad yet; near: optimizer\.SGD"),
    ],
)
def test_attributes_that_are_missing(expression, words):
    with pytest.raises(AttributeError, match=words):
        eval(expression, {"mx": numbagrad})


def test_one_can_still_ask():
    assert not hasattr(numbagrad.nd, "unheard_of")
    assert getattr(numbagrad, "unheard_of", 5) == 5
    assert hasattr(numbagrad.nd, "array")


def test_the_protocols_of_python_get_the_plain_answer():
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        numbagrad.nd.__wrapped__  # noqa: B018


def test_public_names_of_a_module_without_a_list():
    module = type(sys)("sample")
    exec("import sys\nfrom pathlib import Path\n__name__ = 'sample'\ndef f(): ...\ndef _g(): ...\n", module.__dict__)
    assert absent.public_names(module) == ["f"]
