"""Judges the pairs of a file by a compiler; what takes its process down is judged alone."""
import json
import os
import select
import signal
import tempfile
from pathlib import Path

import pairs
from compilers import BuildError
from devices import DEVICES

# of a program without an answer: pocl's and Intel's compilers run then
PATIENCE = {"opencl": 240, "c": 20, "cuda": 30, "hip": 60}


def in_process(compiler, built, programs):
    """Answers of a process for programs, in order, and how it ended; its first answer is that it has loaded."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(read)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        with os.fdopen(write, "w") as pipe:
            answer(compiler, built, programs, pipe)
        os._exit(0)
    os.close(write)
    answers, data, end = [], b"", None
    while True:
        ready, _, _ = select.select([read], [], [], PATIENCE[compiler.target])
        if not ready:
            os.kill(process, signal.SIGKILL)
            end = f"no end within {PATIENCE[compiler.target]} s"
            break
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        data += chunk
        *lines, data = data.split(b"\n")
        answers += [json.loads(line) for line in lines]
    os.close(read)
    _, status = os.waitpid(process, 0)
    if end is None and os.WIFSIGNALED(status):
        end = signal.Signals(os.WTERMSIG(status)).name
    return answers, end


def answer(compiler, built, programs, pipe):
    """What a process says of programs; after an error of a device nothing it says counts."""
    say = lambda *words: (pipe.write(json.dumps(words) + "\n"), pipe.flush())  # noqa: E731
    try:
        device = DEVICES[compiler.target](built, compiler)
    except (OSError, RuntimeError) as error:
        say("unbuilt", str(error))
        return
    say("loaded", "")
    for printed in programs:
        try:
            why = printed.judge(device.run(printed))
        except (AttributeError, OSError, RuntimeError) as error:
            say("error", str(error))
            return
        say("wrong" if why else "same", why or "")


def stem(programs):
    """The name of the file that some programs share."""
    return f"pairs_{programs[0].place[0]}_{programs[0].place[1]}_{len(programs)}"


def judge(compiler, programs, folder=None):
    """A verdict for each of some programs that share a source: `same`, or what is wrong."""
    if folder is None:
        with tempfile.TemporaryDirectory() as folder:
            return judge(compiler, programs, Path(folder))
    try:
        source = pairs.merged(p.source for p in programs)
        built = compiler.build(source, folder, stem(programs), programs[0].batch)
    except BuildError as error:
        return alone(compiler, programs) if len(programs) > 1 else [("unbuilt", str(error))]
    if compiler.kind == "only":
        return [("compiled", "")] * len(programs)
    verdicts = []
    while len(verdicts) < len(programs):
        left = programs[len(verdicts) :]
        answers, end = in_process(compiler, built, left)
        if not answers or answers[0][0] == "unbuilt":
            why = answers[0][1] if answers else end or "no answer"
            if len(programs) > 1:
                return verdicts + alone(compiler, left)
            return [("unbuilt", why)]
        found = [tuple(words) for words in answers[1:]]
        verdicts += found
        if end is not None and len(found) < len(left):
            verdicts.append(("died", end))
        elif not found:
            verdicts.append(("died", "no answer"))
    return verdicts


def alone(compiler, programs):
    """Each in a source and a process of its own."""
    return [verdict for printed in programs for verdict in judge(compiler, [printed])]


def confirmed(compiler, programs, folder):
    """Verdicts, of which those that are not `same` are found again in a source of its own."""
    verdicts = judge(compiler, programs, folder)
    if compiler.kind == "built":
        return verdicts  # of the source of all of them alone
    for k, (verdict, why) in enumerate(verdicts):
        if verdict not in ("same", "compiled") and len(programs) > 1:
            again = judge(compiler, [programs[k]])[0]
            verdicts[k] = again if again[0] != "same" else ("together", f"{verdict}: {why}")
    return verdicts
