# Prints the comments of C sources, a line each: FILE:LINE:text.
FNR == 1 { in_comment = 0 }
{
    line = $0; out = ""
    while (line != "") {
        if (in_comment) {
            if ((e = index(line, "*/")) > 0) { out = out " " substr(line, 1, e - 1); line = substr(line, e + 2); in_comment = 0 }
            else { out = out " " line; line = "" }
        } else {
            gsub(/"([^"\\]|\\.)*"/, "", line)
            if ((b = index(line, "/*")) > 0) { line = substr(line, b + 2); in_comment = 1 }
            else line = ""
        }
    }
    if (out != "") print FILENAME ":" FNR ":" out
}
