# Function definitions with more than MOST parameters, compared with the list of those that have a reason:
#
#   awk -v most=6 -f tools/parameters.awk tools/parameters.txt SOURCES
#
# Prints each definition that is not listed, and each entry of the list that is no such definition. It reads
# the layout that .clang-format gives: a definition begins in column 1, its body is a `{` alone in column 1.
function breach(what) { print what; bad = 1 }
function count(params,    i, c, depth, n) {
    n = params ~ /^ *(void)? *$/ ? 0 : 1
    for (i = 1; i <= length(params); i++) {
        c = substr(params, i, 1)
        if (c == "(" || c == "[") depth++
        else if (c == ")" || c == "]") depth--
        else if (c == "," && !depth) n++
    }
    return n
}
function definition(head,    name, n) {
    gsub(/"([^"\\]|\\.)*"/, "", head)
    gsub(/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)/, "", head)
    if (head !~ /^[A-Za-z_].*[A-Za-z0-9_]\(.*\) *$/) return
    name = head; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
    sub(/^[^(]*\(/, "", head); sub(/\) *$/, "", head)
    if ((n = count(head)) <= most) return
    if ((FILENAME, name) in listed) { met[FILENAME, name]; return }
    breach(FILENAME ": " name " has " n " parameters: pass a struct, or give a reason in " list)
}
FILENAME ~ /parameters\.txt$/ {
    list = FILENAME
    if ($0 ~ /^ *(#|$)/) next
    if ($0 !~ /^ /) { reason = $0 ~ /:$/; if (!reason) breach(FILENAME ":" FNR ": a reason ends with a colon"); next }
    if (!reason) breach(FILENAME ":" FNR ": " $1 " has no reason")
    for (i = 2; i <= NF; i++) listed[$1, $i]
    next
}
FNR == 1 { head = ""; comment = 0 }
/^\/\*/ { comment = 1 }
comment { if (/\*\//) comment = 0; head = ""; next }
/^#/ { continues = /\\$/; head = ""; next }
continues { continues = /\\$/; next }
/^\{/ { definition(head); head = ""; next }
/^$|[;}]$|^[ \t]*\/[*\/]/ { head = ""; next }
{ head = head $0 " " }
END {
    for (entry in listed) {
        if (entry in met) continue
        split(entry, of, SUBSEP)
        breach(list ": " of[1] " has no function " of[2] " with more than " most " parameters")
    }
    exit bad
}
