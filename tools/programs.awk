# Prints the programs that shell scripts and Makefile recipes call: NAME<TAB>FILE, one a line.
# It reads enough shell for the scripts of this tree: quotes, comments, here-documents, command
# substitution, and the words that may precede a command.
function begin_file() {
    text = ""; here = ""; delete_names()
}
function delete_names(    k) { for (k in local_name) delete local_name[k] }
function function_of(line) {
    if (line !~ /^ *[a-z_][a-z0-9_]*\(\)/) return
    sub(/\(\).*/, "", line); gsub(/ /, "", line); local_name[line] = 1
}
# Functions of a file in the same folder that this line sources.
function names_of(    file, line) {
    file = FILENAME; sub(/[^\/]*$/, "", file)
    line = $0; sub(/^[^)]*\)\//, "", line); sub(/"$/, "", line)
    file = file line
    while ((getline line < file) > 0) function_of(line)
    close(file)
}
function finish_file(    n, piece, i) {
    if (name == "") return
    clean(text)
    n = split(cleaned, piece, /[;|&\n(){}]+|`/)
    for (i = 1; i <= n; i++) command(piece[i])
}
# Takes out what is quoted and commented; "$(...)" within double quotes is kept.
function clean(s,    i, c, n, quote, depth, prev) {
    cleaned = ""; quote = ""; depth = 0; n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (c == "\\" && quote != "'") { i++; if (substr(s, i, 1) == "\n") cleaned = cleaned " "; else cleaned = cleaned "_"; continue }
        if (quote == "'") { if (c == "'") quote = ""; continue }
        if (quote == "\"") {
            if (c == "\"") { quote = ""; continue }
            if (c == "$" && substr(s, i + 1, 1) == "(" && substr(s, i + 2, 1) != "(") { outer[++depth] = 1; level[depth] = 0; quote = ""; cleaned = cleaned " ("; i++; continue }
            continue
        }
        if (c == "'" || c == "\"") { quote = c; cleaned = cleaned "_"; continue }
        if (substr(s, i, 3) == "$((") { while (i <= n && substr(s, i, 2) != "))") i++; i++; cleaned = cleaned "_"; continue }
        if (depth && c == "(") level[depth]++
        if (depth && c == ")") {
            if (level[depth] == 0) { depth--; quote = "\""; cleaned = cleaned ")"; continue }
            level[depth]--
        }
        prev = i == 1 ? "\n" : substr(s, i - 1, 1)
        if (c == "#" && prev ~ /[ \t\n;]/) { while (i <= n && substr(s, i, 1) != "\n") i++; cleaned = cleaned "\n"; continue }
        if (c == "$" && substr(s, i + 1, 1) == "{") { while (i <= n && substr(s, i, 1) != "}") i++; cleaned = cleaned "_"; continue }
        if (c == "[" && substr(s, i, 2) == "[[") { while (i <= n && substr(s, i, 2) != "]]") i++; i++; cleaned = cleaned "test"; continue }
        if ((c == ">" || c == "<") && substr(s, i + 1, 1) == "&") { i++; continue }
        cleaned = cleaned c
    }
}
function command(s,    n, w, i, word) {
    n = split(s, w, " ")
    for (i = 1; i <= n; i++) {
        word = w[i]
        if (word ~ /^[A-Za-z_][A-Za-z0-9_]*\+?=/ || word in before) continue
        if (word ~ /^[<>0-9]/) { if (word ~ /[<>]$/) i++; continue }
        if (word == "for" || word == "case" || word == "select" || word == "function") return
        if (word == "timeout" || word == "xargs" || word == "nice" || word == "env" || word == "sudo" || word == "exec" || word == "command") {
            say(word)
            while (i < n && w[i + 1] ~ /^(-|[0-9.]+[smh]?$|[A-Z_]+=|_$|\$)/) { i++; if (w[i] ~ /^-[nPkds]$/) i++ }
            continue
        }
        say(word)
        return
    }
}
function say(word) {
    if (word !~ /^[a-z][a-z0-9_.+-]*$/ || word in builtin || word in local_name) return
    print word "\t" name
}
BEGIN {
    split("if then else elif fi while until do done time ! in @ + -", w, " "); for (i in w) before[w[i]] = 1
    split("true false test echo printf read cd pwd exit return set unset export local shift trap wait kill eval exec command type umask ulimit source getopts break continue esac fi done declare readonly let hash jobs times builtin mapfile shopt", w, " ")
    for (i in w) builtin[w[i]] = 1
}
FNR == 1 { finish_file(); begin_file(); name = FILENAME; make = FILENAME ~ /Makefile$/ }
here != "" { line = $0; sub(/^\t+/, "", line); if (line == here) here = ""; next }
make {
    if (substr($0, 1, 1) != "\t" && !continued) next
    continued = /\\$/
    line = $0; sub(/^\t[@+-]*/, "", line)
    gsub(/\$\$/, "$", line)
    if (line ~ /^\$\((call|Q|if|CC|AR|INSTALL)/) sub(/^\$\(Q\)/, "", line)
    gsub(/\$\([A-Z_a-z]+[^()]*(\([^()]*\)[^()]*)*\)/, "_", line)
    text = text line "\n"
    next
}
{
    if (match($0, /<<-?[ ]*['"\\]?[A-Za-z_]+/) && $0 !~ /<<</) { here = substr($0, RSTART, RLENGTH); sub(/^<<-?[ ]*['"\\]?/, "", here) }
    function_of($0)
    if (/^\. "\$\(dirname "\$0"\)\/.*"$/) names_of()
    line = $0
    sub(/^ *[-A-Za-z0-9_.*\/|:" ]+\)( |$)/, "", line) # a branch of case
    sub(/ in [-A-Za-z0-9_.*\/|:" ]+\) /, " in; ", line) # the first one, beside it
    text = text line "\n"
}
END { finish_file() }
