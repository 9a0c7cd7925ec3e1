# A terminal without anybody in front of it: says in the file NAME which one it is, and copies what is printed there to the file SCREEN.
# Once somebody has opened it (SIGUSR1) it ends when everybody has closed it.
import os
import pty
import signal
import sys
import tty

name, screen = sys.argv[1:]
terminal, end = pty.openpty()
# What is printed stays as it is: no other ends of lines.
tty.setraw(end)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: os.close(end))
with open(screen, "wb", buffering=0) as out:
    with open(name + ".new", "w") as file:
        file.write(os.ttyname(end))
    os.rename(name + ".new", name)
    try:
        while printed := os.read(terminal, 65536):
            out.write(printed)
    except OSError:
        pass  # Nobody has it open any more.
