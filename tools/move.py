#!/usr/bin/env python3
"""Moves files, renames identifiers and formats, and carries the mutants over.

    tools/move.py PLAN      PLAN: lines of
        file OLD NEW        a file, or a folder with all that it holds
        word OLD NEW [IN]   an identifier; OLD* and NEW*: all that begin so. IN: the paths to
                            change, before the move, each to its end or to a slash

Paths are renamed in every text, identifiers in every text but the CHANGELOG, include guards follow
their paths, and the C sources are formatted. A mutant is applied to the tree before the move; what
it breaks goes through the same changes as the whole tree, and their difference is the new mutant.
Needs a clean tree and clang-format; commits nothing.
"""
import concurrent.futures, difflib, functools, os, re, subprocess, sys, tempfile

def run(*argv, **kw):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, **kw).stdout

def read(path):
    with open(path, "rb") as f:
        return f.read()

files, words = [], []
for number, line in enumerate(open(sys.argv[1]), 1):
    part = line.split("#")[0].split()
    if not part:
        continue
    if len(part) < 3 or part[0] not in ("file", "word") or (part[0] == "file" and len(part) > 3):
        sys.exit(f"{sys.argv[1]}:{number}: not `file OLD NEW` or `word OLD NEW [IN]`")
    if part[0] == "file":
        files.append((part[1], part[2]))
    else:
        words.append((part[1], part[2], tuple(part[3:])))

if run("git", "status", "--porcelain"):
    sys.exit("the tree is not clean")
tracked = run("git", "ls-files").decode().split("\n")[:-1]
moved = {}
for old, new in files:
    hit = [f for f in tracked if f == old or f.startswith(old.rstrip("/") + "/")]
    if not hit:
        sys.exit(f"{old} does not exist")
    for f in hit:
        moved[f] = new.rstrip("/") + f[len(old.rstrip("/")):]
for new in moved.values():
    if new in tracked and new not in moved:
        sys.exit(f"{new} already exists")

# Of the files' old names in texts: whole paths, and base names that stood for one file alone.
bases = {}
for f in tracked:
    bases.setdefault(os.path.basename(f), []).append(f)
stems = {}
for old, new in moved.items():
    stems[old] = new
    for ext in (".c", ".h", ".sh"):  # tests are named without, relative to tests/
        if old.startswith("tests/") and old.endswith(ext) and ext != ".h":
            stems[old[6:-len(ext)]] = new[6:-len(ext)]
            stems[old[6:]] = new[6:]
paths = re.compile(r"(?<![\w.-])((?:\.\./)*(?:\./)?)(" + "|".join(re.escape(s) for s in sorted(stems, key=len, reverse=True)) +
                   r")(?![\w-])") if stems else None
single = {os.path.basename(o): n for o, n in moved.items()
          if len(bases[os.path.basename(o)]) == 1 and o.endswith((".c", ".h"))}
base = re.compile(r"(?<![\w./-])(" + "|".join(re.escape(s) for s in sorted(single, key=len, reverse=True)) +
                  r")\b") if single else None

@functools.lru_cache(None)
def words_of(path):
    """The pattern of the words that change in a file, and what they become."""
    mine = [(o, n) for o, n, places in words
            if not places or any(path == p or path.startswith(p.rstrip("/") + "/") for p in places)]
    become = dict(mine)
    ends = [re.escape(o[:-1]) + r"(?=\w|\b)" if o.endswith("*") else re.escape(o) + r"\b"
            for o in sorted(become, key=len, reverse=True)]
    return (re.compile(r"\b(?:" + "|".join(ends) + ")") if ends else None), become

def rename(text, path):
    pattern, become = words_of(path)
    def one(m):
        return become.get(m.group()) or become[m.group() + "*"][:-1]
    return pattern.sub(one, text) if pattern else text

def guard(path):
    return re.sub(r"\W", "_", re.sub(r"^include/", "", path)).upper()

def transform(data, old):
    """The bytes of file `old` after the plan."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    new = moved.get(old, old)
    if paths:
        text = paths.sub(lambda m: m.group(1) + stems[m.group(2)], text)
    if base and old != "CHANGELOG.md":
        def short(m):
            to = single[m.group(1)]
            return os.path.basename(to) if os.path.dirname(to) == os.path.dirname(new) else to
        text = base.sub(short, text)
    if old != "CHANGELOG.md":
        text = rename(text, old)
    if old.endswith(".h") and old != new:
        text = re.sub(r"\b" + guard(old) + r"\b", guard(new), text)
    if re.search(r"\.[ch]$", old):
        text = resort(data.decode(), text)
    if re.search(r"\.[ch]$", old) and not re.search(r"\.pb\.[ch]$", old) and not old.startswith("tests/lint/"):
        for _ in range(2): # what one pass gives, a second one may improve
            text = subprocess.run(["clang-format", "--assume-filename=" + new], input=text.encode(), check=True,
                                  stdout=subprocess.PIPE).stdout.decode()
        text = reflow(text)
    return text.encode()

runs = re.compile(r"(?:^#include \"[^\"\n]+\"\n)+", re.M)
def resort(was, now):
    """Runs of includes that were sorted are sorted."""
    kept = iter([m.group().splitlines(True) for m in runs.finditer(was)])
    def one(m):
        lines, before = m.group().splitlines(True), next(kept)
        return "".join(sorted(lines)) if before == sorted(before) else m.group()
    return runs.sub(one, now)

def reflow(text):
    """Moves words of comment lines beyond 100 columns to the line below."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        mark = re.match(r"^(\s*)(/\*\*? ?|\*\s+)\S", lines[i])
        if len(lines[i]) > 100 and mark:
            lead = mark.group(1)
            item = re.match(r"^(\s*\*\s+)- ", lines[i])
            more = item.group(1) + "  " if item else lead + " *  " if mark.group(2).startswith("/**") else \
                lead + " * " if mark.group(2).startswith("/*") else lead + mark.group(2)
            cut = lines[i].rfind(" ", mark.end(), 101)
            if lines[i][cut + 1:] == "*/":  # which does not stand alone
                cut = lines[i].rfind(" ", mark.end(), cut)
            if cut > 0:
                rest, ended = lines[i][cut + 1:], lines[i].endswith("*/")
                lines[i] = lines[i][:cut]
                below = re.match(re.escape(more) + r"(?!- |/)(\S.*)$", lines[i + 1]) if not ended and i + 1 < len(lines) else None
                if below:
                    lines[i + 1] = more + rest + " " + below.group(1)
                else:
                    lines.insert(i + 1, more + rest)
        i += 1
    return "\n".join(lines)

def text_file(f):
    return not re.search(r"\.(npy|npz|bin|gz|png|patch)$|^tests/fuzz/corpus/|/vectors/", f) and os.path.isfile(f) and \
        not os.path.islink(f)

mutants = [f for f in tracked if re.match(r"tests/mutants/.*\.patch$", f)]

def mutated(patch):
    """The files that a mutant changes, each with its bytes."""
    touched = list(dict.fromkeys(re.findall(r"^--- a/(\S+)", read(patch).decode(), re.M)))
    with tempfile.TemporaryDirectory() as d:
        for f in touched:
            os.makedirs(os.path.join(d, os.path.dirname(f)), exist_ok=True)
            with open(os.path.join(d, f), "wb") as out:
                out.write(read(f))
        run("patch", "-p1", "-s", "-f", "-d", d, "-i", os.path.abspath(patch))
        return [(f, read(os.path.join(d, f))) for f in touched]

pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
before = dict(zip(mutants, pool.map(mutated, mutants)))
sources = [f for f in tracked if text_file(f) and f not in mutants]
after = dict(zip(sources, pool.map(lambda f: transform(read(f), f), sources)))

def carried(patch):
    head = read(patch).decode().split("--- a/", 1)[0]
    if paths:
        head = paths.sub(lambda m: m.group(1) + stems[m.group(2)], head)
    text = [head]
    for f, broken in before[patch]:
        new = moved.get(f, f)
        whole = after[f].decode().splitlines(keepends=True)
        other = transform(broken, f).decode().splitlines(keepends=True)
        hunks = list(difflib.unified_diff(whole, other, "a/" + new, "b/" + new))
        if not hunks:
            return patch, None
        for h in hunks:
            text.append(h if h.endswith("\n") else h + "\n\\ No newline at end of file\n")
    return patch, "".join(text)

lost = []
done = list(pool.map(carried, mutants))
for f in sources:
    if after[f] != read(f):
        with open(f, "wb") as out:
            out.write(after[f])
for patch, text in done:
    if text is None:
        lost.append(patch)
        continue
    with open(patch, "w") as out:
        out.write(text)
for old, new in moved.items():
    os.makedirs(os.path.dirname(new) or ".", exist_ok=True)
for step in (1, 2):  # by way of a name of its own, since a new path may be another's old one
    for old, new in moved.items():
        run("git", "mv", *((old, new + ".moved") if step == 1 else (new + ".moved", new)))
for patch in lost:
    print(f"{patch}: no longer changes anything")
sys.exit(1 if lost else 0)
