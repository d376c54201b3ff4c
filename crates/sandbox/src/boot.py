# First Python of a template. Runs twice: as found, then again with the worker loaded ahead of the C library, so that the clock and
# the random source of the whole process are the worker's. Argument: file name of the worker, which lies in the current folder.
import os
import sys

name = sys.argv[1]
path = os.path.join(os.getcwd(), name)
if "LD_PRELOAD" not in os.environ:
    os.execve(
        sys.executable,
        [sys.executable, "-s", "-B", "-X", "utf8", "-c", sys.orig_argv[sys.orig_argv.index("-c") + 1], name],
        {**os.environ, "LD_PRELOAD": "./" + name},
    )
del os.environ["LD_PRELOAD"]
os.chdir("/")
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("traderharness_worker", path)
worker = module_from_spec(spec)
sys.modules["traderharness_worker"] = worker
spec.loader.exec_module(worker)
serve = worker.serve
del worker, spec, path, name, module_from_spec, spec_from_file_location
serve()
