"""How the process of a command begins and ends: what the script and `-m` call."""

import errno
import os
import signal
import socket
import sys
from threading import Thread

# What ends the process in one line, and how it is called there.
ENDINGS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
# What a device that takes no output answers; files of one's own have names.
UNWRITABLE = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EPIPE)


def main() -> None:
    """Run the command, and tell every error that nothing foresaw in one line.

    With QDTHEORY_DEBUG=1 such an error shows its traceback.
    """
    end_at_interrupts()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        # A name that the terminal's encoding lacks is shown escaped.
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    # Without the interpreter's clean-up: as it ends, it no longer hears Ctrl-C.
    os._exit(_flushed(_status()))


def _status() -> int:
    """Exit status of the command, once it has run."""
    try:
        from qdtheory.commands.cli import app

        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        if os.environ.get("QDTHEORY_DEBUG"):
            raise
        if not isinstance(error, BrokenPipeError):
            _complain(error)
        return 1
    return 0


def _complain(error: Exception) -> None:
    """Tell an unforeseen error in one line."""
    # Late, as all imports here: until `main` runs, Ctrl-C shows a traceback.
    from qdtheory.commands.outputs import complain, line_of

    said = " ".join(str(error).split())
    told = f"{type(error).__name__}: {said:.300}; QDTHEORY_DEBUG=1 shows where"
    match error:
        case MemoryError():
            told = "there is not enough memory for this; ask for less at a time"
        case OSError(filename=None, errno=number) if number in UNWRITABLE:
            told = f"standard output: {error.strerror}"
        case OSError(filename=str()):
            told = line_of(error)
        case OSError():
            told = error.strerror or str(error)
    complain(told)


def _flushed(status: int) -> int:
    """Write what is left of the output; the status, 1 if it cannot be written."""
    try:
        for stream in filter(None, (sys.stderr, sys.stdout)):
            stream.flush()
    except OSError as error:
        if status == 0 and not isinstance(error, BrokenPipeError):
            _complain(error)
        return status or 1
    return status


def end_at_interrupts() -> None:
    """End the process at Ctrl-C or SIGTERM, at once and with one line.

    XLA's threads go on after a KeyboardInterrupt, with a client that the interpreter
    destroys as it ends: it dies of a segmentation fault, or after seconds. Python's own
    handlers wait for the compiler too. So the signal itself tells a thread, which ends
    the process without clean-up; files are whole before they have their names.
    """
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup makes it
            signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(sending.fileno())
    Thread(target=_end, args=(receiving, sending), daemon=True).start()


def _end(receiving: socket.socket, _open: socket.socket) -> None:
    """Wait for the signal, and end the process."""
    (number,) = receiving.recv(1)
    # A progress bar may be drawn, with the cursor hidden.
    clean = "\r\x1b[2K\x1b[?25h" if os.isatty(2) else ""
    os.write(2, f"{clean}qdtheory: {ENDINGS.get(number, 'ended')}\n".encode())
    os._exit(128 + number)
