# Prints the comments of C sources, a line each: FILE:LINE:text. With -v messages=1: the string literals instead.
FNR == 1 { in_comment = 0 }
{
    line = $0; out = ""; said = ""
    while (line != "") {
        if (in_comment) {
            if ((e = index(line, "*/")) > 0) { out = out " " substr(line, 1, e - 1); line = substr(line, e + 2); in_comment = 0 }
            else { out = out " " line; line = "" }
        } else if (match(line, /"([^"\\]|\\.)*"|\/\*/)) {
            if (substr(line, RSTART, 1) == "\"") said = said " " substr(line, RSTART + 1, RLENGTH - 2)
            else in_comment = 1
            line = substr(line, RSTART + RLENGTH)
        } else line = ""
    }
    if (messages) out = said
    if (out != "") print FILENAME ":" FNR ":" out
}
