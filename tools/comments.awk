# Takes C sources apart. Prints FILE:LINE:text for each
#
#                    comment, joined to one line (LINE is its first)
#   -v messages=1    run of adjacent string literals, likewise
#   -v code=1        line, without comments and with empty literals
#   -v slashes=1     comment that begins with //
function end_of_run() {
    if (messages && said != "") print name ":" said_at ":" said
    said = ""
}
function on_code(text) {
    if (text ~ /[^ \t\\]/) end_of_run() # a backslash: the macro has another line
    bare = bare text
}
FNR == 1 { end_of_run(); in_comment = 0; name = FILENAME }
/^[ \t]*#/ { end_of_run() }
{
    line = $0; bare = ""
    while (line != "") {
        if (in_comment) {
            sub(/^[ \t]*\*[ \t]+/, "", line)
            end = index(line, "*/")
            comment = comment " " (end ? substr(line, 1, end - 1) : line)
            line = end ? substr(line, end + 2) : ""
            if (!end) continue
            gsub(/[ \t]+/, " ", comment)
            if (!messages && !code && !slashes) print FILENAME ":" comment_at ":" comment
            in_comment = 0
        } else if (match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\*|\/\//)) {
            found = substr(line, RSTART, RLENGTH)
            on_code(substr(line, 1, RSTART - 1))
            line = substr(line, RSTART + RLENGTH)
            if (found == "/*") {
                in_comment = 1; comment_at = FNR; comment = ""
            } else if (found == "//") {
                if (slashes) print FILENAME ":" FNR "://" line
                line = ""
            } else if (found ~ /^"/) {
                if (said == "") said_at = FNR
                said = said substr(found, 2, length(found) - 2)
                bare = bare "\"\""
            } else on_code("''")
        } else {
            on_code(line)
            line = ""
        }
    }
    if (code) print FILENAME ":" FNR ":" bare
}
END { end_of_run() }
