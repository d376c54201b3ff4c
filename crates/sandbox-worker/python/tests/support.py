"""Loads the modules of the worker without the worker, under the names it gives them."""

import pathlib
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent.parent


def load(name, file, **given):
    module = types.ModuleType(name)
    module.__dict__.update(given)
    sys.modules[name] = module
    exec(compile((HERE / file).read_text(encoding="utf-8"), file, "exec"), module.__dict__)
    return module
