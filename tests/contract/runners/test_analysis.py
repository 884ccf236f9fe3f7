"""The analysis runner: an agent's script, what it prints, how it ends, and what it leaves behind."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Launch, Runner

Run = Callable[..., tuple[str, dict[str, Any]]]


def follow(runner: Runner, source: str, /, **files: str) -> tuple[str, dict[str, Any]]:
    """(everything that was printed, fields of `done`)."""
    texts = {"analysis.py": textwrap.dedent(source)} | {f"{name}.py": text for name, text in files.items()}
    frame = runner.start(texts, script="analysis.py")
    output = b""
    while frame.type == "output":
        output += frame.body
        following = runner.receive()
        assert following is not None, runner.end()
        frame = following
    assert frame.type == "done"
    return output.decode(), {key: value for key, value in frame.head.items() if key != "type"}


@pytest.fixture
def run(launch: Launch, tmp_path: Path) -> Run:
    """Run a script in a new runner."""
    return lambda source, /, **files: follow(launch("analysis", "--work", str(tmp_path)), source, **files)


DONE = {"exit_code": 0, "signal": None, "disk_full": False}


def test_a_script_prints_imports_the_program_and_ends(run: Run) -> None:
    output, done = run(
        """
        import sys
        import numpy as np
        import scipy.optimize
        import program
        print(__name__, sys.argv, program.f(np.arange(3)).tolist())
        print(scipy.optimize.brentq(lambda x: x - 2, 0, 5))
        """,
        program="def f(x): return x * 2\n",
    )
    assert output == "__main__ ['analysis.py'] [0, 2, 4]\n2.0\n"
    assert done == DONE


def test_stdout_and_stderr_arrive_in_the_order_of_printing(run: Run) -> None:
    output, _ = run(
        """
        import os, sys
        for k in range(50):
            print("out", k)
            print("err", k, file=sys.stderr)
        os.system("echo shell")
        print("end", end="")
        """
    )
    assert output == "".join(f"out {k}\nerr {k}\n" for k in range(50)) + "shell\nend"


def test_output_comes_while_the_script_still_runs(launch: Launch, tmp_path: Path) -> None:
    runner = launch("analysis", "--work", str(tmp_path))
    script = "import time\nprint('early')\ntime.sleep(60)\n"
    started = time.monotonic()
    frame = runner.start({"analysis.py": script}, script="analysis.py")
    assert (frame.type, frame.body) == ("output", b"early\n")
    assert time.monotonic() - started < 30


def test_what_was_printed_before_a_kill_is_kept(run: Run) -> None:
    output, done = run("import os\nprint('before')\nos.kill(os.getpid(), 9)\n")
    assert output == "before\n"
    assert done == {"exit_code": None, "signal": 9, "disk_full": False}


@pytest.mark.parametrize(
    ("statement", "exit_code", "said"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit(256 + 7)", 7, ""),
        ("sys.exit('words')", 1, "words\n"),
        ("os._exit(4)", 4, ""),
        ("atexit.register(print, 'bye')", 0, "bye\n"),
        ("threading.Thread(target=lambda: (time.sleep(.2), print('thread'))).start()", 0, "thread\n"),
    ],
)
def test_a_script_ends_as_a_plain_interpreter_would_end_it(run: Run, statement: str, exit_code: int, said: str) -> None:
    output, done = run(f"import atexit, os, sys, threading, time\n{statement}\n")
    assert (output, done) == (said, DONE | {"exit_code": exit_code})


def test_a_traceback_names_only_the_agents_files_and_no_frame_of_ours(run: Run, tmp_path: Path) -> None:
    output, done = run(
        """
        import os
        from program import f
        os.chdir("/")
        f(0)
        """,
        program="def f(x):\n    return 1 / x\n",
    )
    assert done == DONE | {"exit_code": 1}
    lines = output.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1:3] == ['  File "analysis.py", line 5, in <module>', "    f(0)"]
    assert lines[3:5] == ['  File "program.py", line 2, in f', "    return 1 / x"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert str(tmp_path) not in output
    assert "runner" not in output


def test_chained_and_library_frames_are_shown_without_their_directories(run: Run) -> None:
    output, _ = run(
        """
        import numpy as np
        try:
            np.linalg.inv(np.zeros((2, 2)))
        except Exception as error:
            raise RuntimeError("outer") from error
        """
    )
    assert 'File "numpy/linalg/' in output
    assert output.count('File "analysis.py"') == 2
    assert 'File "/' not in output
    assert output.endswith("RuntimeError: outer\n")


@pytest.mark.parametrize("source", ["def f(:\n", "x = '\0'\n", "x = " + "-" * 100_000 + "1\n"])
def test_a_script_that_does_not_compile_says_so(run: Run, source: str) -> None:
    output, done = run(source)
    assert output
    assert "runner" not in output
    assert done == DONE | {"exit_code": 1}


def test_an_error_in_a_thread_is_printed_without_our_frames(run: Run) -> None:
    output, done = run("import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start()\nt.join()\n")
    assert output.startswith("Exception in thread t:\nTraceback")
    assert output.endswith("ZeroDivisionError: division by zero\n")
    assert done == DONE


def test_the_agents_modules_may_be_named_like_the_runners_own(run: Run) -> None:
    output, _ = run(
        """
        import frames, channel, script
        print(frames.X, channel.X, script.X)
        import session
        """,
        frames="X = 1\n",
        channel="X = 2\n",
        script="X = 3\n",
    )
    assert output.startswith("1 2 3\n")
    assert output.endswith("ModuleNotFoundError: No module named 'session'\n")


def test_the_script_reads_nothing_and_holds_no_descriptor_of_the_channel(run: Run) -> None:
    output, _ = run(
        """
        import os, sys
        print(repr(sys.stdin.read()))
        print(sorted(d for d in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{d}")))
        """
    )
    assert output == "''\n['0', '1', '2']\n"


def test_a_daemonised_grandchild_neither_survives_nor_holds_the_end(run: Run, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    output, done = run(
        f"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print("daemon", os.getpid(), flush=True)
                time.sleep(1.5)
                open({str(marker)!r}, "w").close()
                time.sleep(60)
            os._exit(0)
        os.wait()
        time.sleep(0.2)
        print("parent done")
        """
    )
    assert output.endswith("parent done\n")
    assert done == DONE
    pid = int(output.split()[1])
    assert not Path(f"/proc/{pid}").exists()
    assert not marker.exists()


def test_closing_its_output_does_not_end_a_script(run: Run) -> None:
    output, done = run("import os, time\nprint('a')\nos.close(1)\nos.close(2)\ntime.sleep(0.3)\nos._exit(5)\n")
    assert output == "a\n"
    assert done == DONE | {"exit_code": 5}


def test_a_flood_arrives_whole_in_bounded_frames(launch: Launch, tmp_path: Path) -> None:
    runner = launch("analysis", "--work", str(tmp_path))
    frame = runner.start({"analysis.py": "print('x' * 9_999_999)\n"}, script="analysis.py")
    sizes = []
    while frame.type == "output":
        sizes.append(len(frame.body))
        frame = runner.receive() or frame
    assert sum(sizes) == 10_000_000
    assert max(sizes) <= 256 << 10


def test_many_small_prints_share_frames(launch: Launch, tmp_path: Path) -> None:
    runner = launch("analysis", "--work", str(tmp_path))
    frame = runner.start({"analysis.py": "for k in range(5000): print(k)\n"}, script="analysis.py")
    count = 0
    while frame.type == "output":
        count += 1
        frame = runner.receive() or frame
    assert count < 500


def test_task_data_lies_beside_the_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("1,2\n")
    output, _ = run("print(open('data/train.csv').read(), end='')\n")
    assert output == "1,2\n"


@pytest.mark.parametrize("path", ["../evil.py", "/evil.py", "a/../../evil.py"])
def test_a_file_outside_the_working_directory_is_refused(launch: Launch, tmp_path: Path, path: str) -> None:
    runner = launch("analysis", "--work", str(tmp_path / "work"))
    (tmp_path / "work").mkdir()
    runner.send({"type": "start", "blobs": [["analysis.py", 0], [path, 0]], "script": "analysis.py"})
    assert runner.receive() is None
    assert runner.end()[0] == 76
    assert not list(tmp_path.glob("*.py"))


def test_a_script_that_is_not_among_the_files_is_refused(launch: Launch, tmp_path: Path) -> None:
    runner = launch("analysis", "--work", str(tmp_path))
    runner.send({"type": "start", "blobs": [], "script": "analysis.py"})
    assert runner.receive() is None
    assert runner.end()[0] == 76


def test_a_runner_ends_with_its_channel_while_its_script_sleeps(launch: Launch, tmp_path: Path) -> None:
    runner = launch("analysis", "--work", str(tmp_path))
    script = "import os, time\nprint(os.getpid())\ntime.sleep(600)\n"
    frame = runner.start({"analysis.py": script}, script="analysis.py")
    assert frame.type == "output"
    assert runner.end()[0] == -9
    assert has_ended(int(frame.body))


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or dead and waiting for whoever adopted it, within some seconds."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
