# Function definitions with more than MOST parameters, compared with the list of those that have a reason:
#
#   awk -v code=1 -f tools/comments.awk SOURCES | awk -v most=6 -f tools/parameters.awk tools/parameters.txt -
#
# Prints each definition that is not listed, and each entry of the list that is no such definition. It reads
# the layout that .clang-format gives: a definition begins in column 1, its body is a `{` alone in column 1.
# Functions that macros define are not counted.
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
function open_in(text) { return gsub(/\(/, "", text) - gsub(/\)/, "", text) }
function definition(head,    name, n) {
    gsub(/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)/, "", head)
    if (head !~ /^ *[A-Za-z_].*[A-Za-z0-9_]\(.*\) *$/) return
    name = head; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
    sub(/^[^(]*\(/, "", head); sub(/\) *$/, "", head)
    if ((n = count(head)) <= most) return
    if ((file, name) in listed) { met[file, name]; return }
    breach(file ": " name " has " n " parameters: pass a struct, or give a reason in " list)
}
FILENAME ~ /parameters\.txt$/ {
    list = FILENAME
    if ($0 ~ /^ *(#|$)/) next
    if ($0 !~ /^ /) { reason = $0 ~ /:$/; if (!reason) breach(FILENAME ":" FNR ": a reason ends with a colon"); next }
    if (!reason) breach(FILENAME ":" FNR ": " $1 " has no reason")
    for (i = 2; i <= NF; i++) listed[$1, $i]
    next
}
{
    if (index($0, file ":") != 1) head = ""
    file = $0; sub(/:.*/, "", file)
    sub(/^[^:]*:[0-9]*:/, "")
}
/^ *#/ { continues = /\\$/; head = ""; next }
continues { continues = /\\$/; next }
/^\{/ { definition(head); head = ""; next }
/[;}] *$/ || (/^ *$/ && open_in(head) == 0) { head = ""; next }
{ head = head $0 " " }
END {
    for (entry in listed) {
        if (entry in met) continue
        split(entry, of, SUBSEP)
        breach(list ": " of[1] " has no function " of[2] " with more than " most " parameters")
    }
    exit bad
}
