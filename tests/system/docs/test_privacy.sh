#!/bin/bash
# docs/PRIVACY.md: its example and the reported cost of a training follow from its formulas. Prints
# TAP.
. "$(dirname "$0")/../../support/tap.sh"

cat >accountant.py <<'END'
"""The formulas of docs/PRIVACY.md."""
import math
def cost(d, u, t, s):
    g = math.ceil((2**18 + math.sqrt(d) / 2) ** 2)
    b2, n = g + 3 * (2**16) ** 2, u - t
    s2 = max(1, math.ceil(s * s * b2 / n))
    tau = 10 * sum(math.exp(-2 * math.pi**2 * s2 * k / (k + 1)) for k in range(1, n))
    return g, s2, tau, (math.sqrt(b2 / (n * s2)) + math.sqrt(d + 3) * tau) ** 2 / 2
def epsilon(rho, delta):
    at = lambda a: a * rho + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
    return max(0, min(at(1 + math.exp(i / 2000)) for i in range(-12000, 24000)))
END
/usr/bin/python3 - "$R/docs/PRIVACY.md" >out 2>err <<'END'
import re, sys
sys.path.insert(0, ".")
from accountant import cost, epsilon
text = open(sys.argv[1]).read()
d, u, t, s, delta = map(float, re.search(
    r"d = (\d+) parameters, U = (\d+), T = (\d+), S = (\d+), delta = (\S+):", text).groups())
rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\S+) \| (\S+) \| (\S+) \|$", text, re.M)
assert len(rows) == 3, rows
for rounds, g, s2, tau, rho, eps in rows:
    mine = cost(d, int(u), int(t), s)
    assert all(abs(float(a) / b - 1) < 1e-8 for a, b in ((g, mine[0]), (s2, mine[1]))), mine
    assert abs(float(tau) - mine[2]) < 1e-12 and abs(float(rho) / (int(rounds) * mine[3]) - 1) < 1e-8, mine
    assert abs(float(eps) - epsilon(int(rounds) * mine[3], delta)) < 1e-4, eps
END
report $? "the example follows from the formulas"

run train spiral --by gradients --aggregate secure --simulate --examples 60 --survivors 3 -n 4 \
    --same-host-domains --clip 1 --noise 1.5 --epochs 2 --json -o m.npz
[ $code = 0 ] && /usr/bin/python3 - >>err 2>&1 <<'END'
import json, sys
sys.path.insert(0, ".")
from accountant import cost, epsilon
o = json.load(open("out"))["aggregate"]
rho = o["rounds"] * cost(100, 3, 1, 1.5)[3] # for any d, since tau is 0
print(o, epsilon(rho, o["delta"]))
assert abs(o["epsilon"] / epsilon(rho, o["delta"]) - 1) < 1e-4
END
report $? "the reported cost of a training follows from the formulas"

echo "1..$n"
