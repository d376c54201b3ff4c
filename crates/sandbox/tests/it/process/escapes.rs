//! Ways out, tried one by one: each is blocked or harmless, and none sees what it must not.
//!
//! In the code, `OUTSIDE` stands for a folder with a file `secret` that is not the workspace, `HOST` for the number of this process,
//! `TEMPLATE` for the number of the template.

use super::{interpreter, limits, run_in};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use traderharness_sandbox::host::NoCalls;
use traderharness_sandbox::protocol::{Limits, WorkerEnded};
use traderharness_sandbox::{Ended, Pool};

/// What must come of an attempt.
#[derive(Debug, Clone, Copy)]
enum Expect {
    /// This exception is raised, by the kernel layer or by the interpreter.
    Raises(&'static str),
    /// The import filter names it.
    Refused,
    /// It runs, and gives only this (JSON).
    Gives(&'static str),
    /// The process is ended by itself or by the host; nothing else happens.
    Ends,
}

use Expect::{Ends, Gives, Raises, Refused};

/// Reaches a module that the import filter refuses by name.
const REACH: &str =
    "import sys\nos = sys.modules['os']\nposix = sys.modules['posix']\nimport_module = sys.modules['importlib'].import_module\n";

const CORPUS: &[(&str, Expect)] = &[
    // Files outside, by every library. complaint SB-4
    ("open('OUTSIDE/secret').read()", Raises("PermissionError")),
    ("import os\nresult = os.open('OUTSIDE/secret', os.O_RDONLY)", Raises("PermissionError")),
    ("import os\nos.open('OUTSIDE/secret', os.O_PATH)", Gives("null")),
    ("import os\nfd = os.open('OUTSIDE', os.O_PATH)\nos.open('secret', os.O_RDONLY, dir_fd=fd)", Raises("PermissionError")),
    ("import os\nfd = os.open('OUTSIDE/secret', os.O_PATH)\nopen(f'/proc/self/fd/{fd}').read()", Raises("PermissionError")),
    ("import io\nio.FileIO('OUTSIDE/secret').read()", Raises("PermissionError")),
    ("from pathlib import Path\nPath('OUTSIDE/secret').read_text()", Raises("PermissionError")),
    ("import pandas as pd\npd.read_csv('OUTSIDE/secret')", Raises("PermissionError")),
    ("import pandas as pd\npd.read_csv('/etc/passwd')", Raises("PermissionError")),
    ("import pandas as pd\npd.read_pickle('OUTSIDE/secret')", Raises("PermissionError")),
    ("import pandas as pd\npd.read_json('file://OUTSIDE/secret')", Refused),
    ("import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('OUTSIDE/new')", Raises("OSError")),
    ("import pandas as pd\npd.DataFrame({'a': [1]}).to_pickle('../not-there-before')", Raises("PermissionError")),
    ("import numpy as np\nnp.load('OUTSIDE/secret', allow_pickle=True)", Raises("PermissionError")),
    ("import numpy as np\nnp.fromfile('OUTSIDE/secret', dtype='u1')", Raises("PermissionError")),
    ("import numpy as np\nnp.memmap('OUTSIDE/secret', mode='r')", Raises("PermissionError")),
    ("import numpy as np\nnp.genfromtxt('OUTSIDE/secret')", Refused),
    ("import numpy as np\nnp.ones(3).tofile('OUTSIDE/secret')", Raises("PermissionError")),
    ("import linecache\nresult = linecache.getlines('OUTSIDE/secret')", Gives("[]")),
    ("import fileinput\nlist(fileinput.input('OUTSIDE/secret'))", Raises("PermissionError")),
    ("import sqlite3\nsqlite3.connect('OUTSIDE/secret').execute('select 1 from sqlite_master')", Raises("OperationalError")),
    ("import zipfile\nzipfile.ZipFile('OUTSIDE/secret', 'a')", Raises("PermissionError")),
    ("import tokenize\ntokenize.open('OUTSIDE/secret')", Raises("PermissionError")),
    ("import logging\nlogging.FileHandler('OUTSIDE/log')", Raises("PermissionError")),
    ("open('OUTSIDE/new', 'w')", Raises("PermissionError")),
    ("open('OUTSIDE/secret', 'a').write('x')", Raises("PermissionError")),
    ("open('../not-there-before', 'w')", Raises("PermissionError")),
    ("open('/tmp/traderharness-escape', 'w')", Raises("PermissionError")),
    ("open('/dev/shm/traderharness-escape', 'w')", Raises("PermissionError")),
    ("import os\nos.truncate('OUTSIDE/secret', 0)", Raises("PermissionError")),
    ("import os\nos.remove('OUTSIDE/secret')", Raises("PermissionError")),
    ("import os\nos.rename('OUTSIDE/secret', 'mine')", Raises("PermissionError")),
    ("import os\nopen('a', 'w')\nos.rename('a', 'OUTSIDE/a')", Raises("PermissionError")),
    ("import os\nos.chmod('OUTSIDE/secret', 0o777)", Raises("FileNotFoundError")),
    ("import os\nos.chown('OUTSIDE/secret', 1, 1)", Raises("PermissionError")),
    ("import os\nos.utime('OUTSIDE/secret', (1, 1))", Raises("FileNotFoundError")),
    ("import os\nos.chmod(os.__file__, 0o777)", Raises("PermissionError")),
    ("import os\nos.setxattr('OUTSIDE/secret', 'user.a', b'x')", Raises("PermissionError")),
    ("import os\nos.listdir('OUTSIDE')", Raises("PermissionError")),
    ("import os\nresult = list(os.walk('/'))", Gives("[]")),
    ("import glob\nresult = glob.glob('/etc/*')", Gives("[]")),
    ("import os\nos.chdir('OUTSIDE')\nopen('secret')", Raises("PermissionError")),
    // Links and special files.
    ("import os\nos.symlink('OUTSIDE/secret', 'link')", Raises("PermissionError")),
    ("import os\nos.link('OUTSIDE/secret', 'link')", Raises("PermissionError")),
    ("import os\nopen('a', 'w')\nos.link('a', 'b')", Raises("PermissionError")),
    ("import os\nos.mkfifo('fifo')", Raises("PermissionError")),
    ("import os\nos.mknod('node')", Raises("PermissionError")),
    (
        "import io, tarfile\nt = tarfile.open('x.tar', 'w')\ni = tarfile.TarInfo('l')\ni.type, i.linkname = tarfile.SYMTYPE, 'OUTSIDE/secret'\nt.addfile(i)\nt.close()\nt = tarfile.open('x.tar')\nt.extractall('d', filter='fully_trusted')\nopen('d/l').read()",
        Raises("FileNotFoundError"),
    ),
    // Other processes and the machine. complaint SB-8
    ("open('/proc/self/environ').read()", Raises("PermissionError")),
    ("open('/proc/HOST/environ').read()", Raises("PermissionError")),
    ("open('/proc/TEMPLATE/environ').read()", Raises("PermissionError")),
    ("open('/proc/TEMPLATE/mem', 'wb')", Raises("PermissionError")),
    ("open('/proc/self/mem', 'wb')", Raises("PermissionError")),
    ("open('/proc/self/maps').read()", Raises("PermissionError")),
    ("import os\nresult = sorted(os.environ)", Gives("[\"HOME\",\"LC_ALL\",\"TMPDIR\",\"TZ\"]")),
    ("import os\nresult = os.getenv('PATH')", Gives("null")),
    ("import os\nos.kill(HOST, 0)", Raises("PermissionError")),
    ("import os\nos.kill(TEMPLATE, 9)", Raises("PermissionError")),
    ("import os\nos.kill(0, 9)", Raises("PermissionError")),
    ("import os\nos.kill(-1, 9)", Raises("PermissionError")),
    ("import os\nos.killpg(TEMPLATE, 9)", Raises("PermissionError")),
    ("import os\nos.pidfd_open(TEMPLATE)", Raises("PermissionError")),
    ("import os\nos.setpgid(0, 0)", Raises("PermissionError")),
    ("import os\nos.setsid()", Raises("PermissionError")),
    ("import os\nos.nice(-5)", Raises("PermissionError")),
    ("import os\nos.sched_setscheduler(TEMPLATE, 0, os.sched_param(0))", Raises("PermissionError")),
    // What is not to be read is not described either: no size, no time, no owner, no number of a process.
    ("import os\nos.stat('OUTSIDE/secret')", Raises("FileNotFoundError")),
    ("import os\nos.lstat('OUTSIDE/secret')", Raises("FileNotFoundError")),
    ("import os\nos.stat('secret', dir_fd=os.open('OUTSIDE', os.O_PATH))", Raises("FileNotFoundError")),
    ("import os\nos.fstat(os.open('OUTSIDE/secret', os.O_PATH))", Raises("OSError")),
    ("import os\nos.stat('/proc/TEMPLATE')", Raises("FileNotFoundError")),
    ("import os\nos.stat('/proc/self')", Raises("FileNotFoundError")),
    ("import os\nos.stat('/etc/hostname')", Raises("FileNotFoundError")),
    ("import os\nos.readlink('/proc/self')", Raises("FileNotFoundError")),
    ("import os\nos.readlink('/proc/self/exe')", Raises("FileNotFoundError")),
    ("import os\nos.readlink('/proc/self/fd/3')", Raises("FileNotFoundError")),
    ("import os\nos.chdir('/proc')\nos.readlink('self')", Raises("FileNotFoundError")),
    ("import os\nos.getpriority(os.PRIO_PROCESS, TEMPLATE)", Raises("PermissionError")),
    ("import os\nos.getpgid(TEMPLATE)", Raises("PermissionError")),
    ("import os\nos.getsid(0)", Raises("PermissionError")),
    ("import os\nos.getloadavg()", Raises("OSError")),
    ("import os\nos.statvfs('.')", Raises("PermissionError")),
    ("import os\nos.sysconf('SC_PHYS_PAGES')", Raises("OSError|PermissionError")),
    // A lock that another agent's worker could feel.
    ("REACHf = sys.modules['fcntl']\nf.flock(os.open(os.__file__, os.O_RDONLY), f.LOCK_EX)", Raises("PermissionError|KeyError")),
    // New processes, threads, programs.
    ("import os\nwhile True: os.fork()", Raises("PermissionError")),
    ("import os\nos.system('echo x > pwned')\nresult = os.path.exists('pwned')", Gives("false")),
    ("import os\nos.execv('/bin/sh', ['sh', '-c', 'echo x > pwned'])", Raises("PermissionError")),
    ("import os\nos.posix_spawn('/bin/sh', ['sh', '-c', 'echo x > pwned'], {})", Raises("PermissionError")),
    ("import os\nos.popen('id').read()", Raises("PermissionError")),
    ("import subprocess\nsubprocess.run(['id'])", Refused),
    ("REACHimport_module('subprocess').run(['/bin/id'])", Raises("ImportError|PermissionError")),
    ("REACHt = sys.modules['threading'].Thread(target=print)\nt.start()", Raises("RuntimeError")),
    ("REACHsys.modules['_thread'].start_new_thread(print, ())", Raises("RuntimeError")),
    ("import multiprocessing", Refused),
    ("import os\nos.memfd_create('x')", Raises("PermissionError")),
    ("import os\nos.eventfd(0)", Raises("PermissionError")),
    ("import os\nos.unshare(0x10000000) if hasattr(os, 'unshare') else os.fork()", Raises("PermissionError")),
    // Network.
    ("import socket", Refused),
    ("REACHimport_module('socket').socket()", Refused),
    ("import pandas as pd\npd.read_csv('http://127.0.0.1:9/x.csv')", Refused),
    ("import urllib.request", Refused),
    // Native code.
    ("import ctypes", Refused),
    ("REACHimport_module('ctypes')", Raises("ModuleNotFoundError")),
    ("REACHdel sys.modules['ctypes']\nimport_module('ctypes').CDLL(None)", Refused),
    ("REACHimport_module('_ctypes')", Refused),
    // The same with the messages out of the way: the kernel maps nothing that can be executed.
    ("REACHsys.meta_path.pop(0)\nimport_module('_ctypes')", Raises("ImportError")),
    ("REACHsys.meta_path.pop(0)\nimport_module('_socket').socket()", Raises("ImportError|PermissionError")),
    ("REACHsys.meta_path.pop(0)\nimport_module('subprocess').run(['/bin/id'])", Raises("ImportError|PermissionError")),
    ("import numpy as np\nnp.ctypeslib.load_library('libc.so.6', '/lib')", Raises("ImportError")),
    (
        "import shutil, sys\nsys.path.insert(0, '.')\nopen('evil.so', 'wb').write(b'\\x7fELF')\nREACHimport_module('importlib.machinery').ExtensionFileLoader('evil', './evil.so').create_module(import_module('importlib.util').spec_from_file_location('evil', './evil.so'))",
        Raises("ImportError"),
    ),
    (
        "import sqlite3\nc = sqlite3.connect(':memory:')\nc.enable_load_extension(True)\nc.load_extension('/lib/x86_64-linux-gnu/libc.so.6')",
        Raises("OperationalError|AttributeError"),
    ),
    ("REACHm = sys.modules['mmap']\nm.mmap(-1, 4096, prot=7)", Raises("PermissionError")),
    // Walks through the interpreter. complaint SB-3
    (
        "c = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]\nresult = c.__init__.__globals__['system']('echo x > pwned') != 0",
        Gives("true"),
    ),
    (
        "result = [c for c in object.__subclasses__() if c.__name__ == 'FileIO' or c.__name__ == '_IOBase'] and open.__self__.open('OUTSIDE/secret')",
        Raises("PermissionError"),
    ),
    (
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nf.f_globals['__builtins__'].open('OUTSIDE/secret')",
        Raises("PermissionError"),
    ),
    (
        "try:\n    raise ValueError\nexcept ValueError as e:\n    g = e.__traceback__.tb_frame.f_globals\nresult = sorted(k for k in g if not k.startswith('__'))",
        Gives("[\"g\"]"),
    ),
    ("result = '{0.__class__.__base__.__subclasses__}'.format(1)[:9]", Gives("\"<built-in\"")),
    ("result = '{0.__globals__}'.format(lambda: 0).count('CARGO')", Gives("0")),
    (
        "type(lambda: 0)(compile('open(\"OUTSIDE/secret\")', '<x>', 'exec'), {'__builtins__': __builtins__})()",
        Raises("PermissionError"),
    ),
    ("def f(): pass\nf.__code__ = f.__code__.replace(co_code=b'\\x00' * 8000)\nf()", Ends),
    ("import gc\nresult = sum('CARGO' in str(o) for o in gc.get_objects() if type(o) is dict and 'HOME' in o)", Gives("0")),
    ("import gc\nresult = len([f for f in gc.get_objects() if getattr(f, '__name__', '') == 'serve'])", Gives("0")),
    ("import sys\nresult = 'traderharness_worker' in sys.modules", Gives("false")),
    ("class A:\n    def __del__(self):\n        open('OUTSIDE/pwned', 'w')\nA()\nresult = A()", Raises("Unserialisable")),
    ("class A(dict):\n    def __class__(self): return open('OUTSIDE/secret')\nresult = [A(a=1)]", Gives("[{\"a\":1}]")),
    ("import builtins\nbuiltins.open = builtins.exec = builtins.compile = print\nresult = 1", Gives("1")),
    ("import json\njson.JSONEncoder.encode = json.dumps = lambda *a, **k: '\"forged\"'\nresult = 1", Gives("1")),
    (
        "import pickle\nclass A:\n    def __reduce__(self): return (open, ('OUTSIDE/secret',))\npickle.loads(pickle.dumps(A()))",
        Raises("PermissionError"),
    ),
    (
        "import pandas as pd\npd.eval('@pd.io.common.os.system(\"echo x > pwned\")')\nresult = 1",
        Raises("SyntaxError|UndefinedVariableError|ValueError"),
    ),
    ("import sys\nsys.setrecursionlimit(10**9)\ndef f(): return [f()]\nf()", Ends),
    ("import sys\nsys._debugmallocstats()\nsys.stdout.write('x')", Gives("null")),
    // The job's socket and its frames.
    ("import os\nos.close(3)\nwhile True: pass", Ends),
    ("import os\nos.dup2(os.open('f', os.O_RDWR | os.O_CREAT), 3)\nwhile True: pass", Ends),
    ("import os\nos.write(3, b'\\xff\\xff\\xff\\xff')\nwhile True: pass", Ends),
    ("import os\nos.write(3, b'\\x05\\x00\\x00\\x00hello')\nwhile True: pass", Ends),
    (
        "import os, json, struct\nb = json.dumps({'type': 'confined', 'layers': {'landlock': 0, 'seccomp': False, 'rlimits': False, 'no_new_privs': False}}).encode()\nos.write(3, struct.pack('<I', len(b)) + b)\nwhile True: pass",
        Ends,
    ),
    (
        "import os, json, struct\nb = json.dumps({'type': 'call', 'id': 99, 'method': 'x', 'args': {}}).encode()\nos.write(3, struct.pack('<I', len(b)) + b)\nwhile True: pass",
        Ends,
    ),
    (
        "import os, json, struct\nb = json.dumps({'type': 'output', 'text': 'x' * 100000}).encode()\nos.write(3, struct.pack('<I', len(b)) + b)\nwhile True: pass",
        Ends,
    ),
    (
        "import os, json, struct\nb = json.dumps({'type': 'ended', 'ended': {'how': 'finished', 'result': 1}}).encode()\nos.write(3, struct.pack('<I', len(b)) + b)\nwhile True: pass",
        Gives("1"),
    ),
    ("import os\nos._exit(0)", Ends),
    ("import os\nos.abort()", Ends),
    (
        "import os\ndef is_open(f):\n    try: os.fstat(f)\n    except OSError: return False\n    return True\nresult = [f for f in range(1024) if is_open(f)]",
        Gives("[0,1,2,3]"),
    ),
    (
        "import os\nresult = [os.readlink(f'/proc/self/fd/{f}') for f in range(3)]",
        Gives("[\"/dev/null\",\"/dev/null\",\"/dev/null\"]"),
    ),
    // Limits and the process itself.
    ("REACHr = import_module('resource')\nr.setrlimit(r.RLIMIT_AS, (-1, -1))", Raises("ImportError|PermissionError")),
    ("import os\nos.setuid(0)", Raises("PermissionError")),
    ("import os\nos.setgroups([])", Raises("PermissionError")),
    ("import os\nos.chroot('.')", Raises("PermissionError")),
    ("import os\nos.sched_setaffinity(0, {0})", Raises("PermissionError")),
    ("import os\nos.reboot() if hasattr(os, 'reboot') else os.setsid()", Raises("PermissionError")),
    (
        "import os\nfds = []\ntry:\n    while True: fds.append(os.dup(0))\nexcept OSError:\n    result = len(fds) <= 64",
        Gives("true"),
    ),
    ("REACHf = sys.modules['fcntl']\nf.fcntl(3, f.F_SETOWN, HOST)", Raises("PermissionError")),
    ("REACHf = sys.modules['fcntl']\nf.ioctl(0, 0x5412, b'x')", Raises("PermissionError")),
    ("b = bytearray(10**12)", Raises("MemoryError")),
    ("x = 'a'\nwhile True: x += x", Ends),
    ("import os\nfor i in range(10**6): os.mkdir(f'd{i}')", Ends),
    ("input()", Raises("EOFError")),
    ("breakpoint()", Gives("null")),
    ("import sys\nresult = sys.stdin.read()", Gives("\"\"")),
    ("import pandas as pd\npd.read_clipboard()", Raises("PyperclipException|ImportError|PermissionError")),
];

#[test]
fn no_way_out() {
    let Some(interpreter) = interpreter() else { return };
    assert!(CORPUS.len() >= 60);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "SECRET-4711").unwrap();
    let pool = Pool::new(interpreter, 2);
    pool.warm().unwrap();
    let template = pool.template_pid().unwrap();
    let next = AtomicUsize::new(0);
    let failures = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((code, expected)) = CORPUS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let code = code
                        .replace("REACH", REACH)
                        .replace("OUTSIDE", &outside.path().to_string_lossy())
                        .replace("HOST", &std::process::id().to_string())
                        .replace("TEMPLATE", &template.to_string());
                    if let Err(what) = attempt(&pool, &code, *expected) {
                        failures.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(pool.template_pid(), Some(template), "the template survives them all");
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["secret"]);
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "SECRET-4711");
}

fn attempt(pool: &Pool, code: &str, expected: Expect) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let bounds = Limits { memory_bytes: 128 << 20, ..limits(400) };
    let ran = run_in(pool, folder.path(), code, bounds, &mut NoCalls);
    let shown = format!("{ran:?}");
    let as_expected = match (&ran.ended, expected) {
        (Ended::Worker(WorkerEnded::Raised { exception, .. }), Raises(names)) => names.split('|').any(|name| name == exception),
        (Ended::Memory { .. }, Raises(name)) => name == "MemoryError",
        (Ended::Worker(WorkerEnded::Unserialisable { .. }), Raises(name)) => name == "Unserialisable",
        (Ended::Worker(WorkerEnded::Disallowed { .. }), Refused) => true,
        (Ended::Worker(WorkerEnded::Raised { exception, message, .. }), Refused) => {
            exception == "ImportError" && message.contains(" cannot be imported: ")
        }
        (Ended::Finished(value), Gives(text)) => *value == serde_json::from_str::<Value>(text).unwrap(),
        (
            Ended::TimedOut { .. } | Ended::Died { .. } | Ended::Hostile { .. } | Ended::Memory { .. } | Ended::OverQuota { .. },
            Ends,
        ) => true,
        _ => false,
    };
    let clean = !shown.contains("SECRET-4711") && !shown.contains("CARGO_") && !folder.path().join("pwned").exists();
    if as_expected && clean && ran.worker_exited {
        Ok(())
    } else {
        Err(format!("{code:?}\n    expected {expected:?}, got {shown}"))
    }
}
